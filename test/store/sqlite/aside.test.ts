import { Worker } from 'node:worker_threads'
import { expect, it, onTestFinished, vi } from 'vitest'
import { createAside } from '../../../src/store/sqlite/aside.ts'
import { newFile } from './set-up.ts'

function open() {
  const aside = createAside(newFile())
  onTestFinished(async () => {
    for (const _ of ['once', 'and again, which does no harm']) await aside.close()
  })
  return aside
}

// Where no thread may be started: the process under the permission model.
it('statements in a thread answer their first row, one after the other', async () => {
  const calls: string[] = []
  for (const name of ['ref', 'unref'] as const)
    vi.spyOn(Worker.prototype, name).mockImplementation(() => void calls.push(name))
  onTestFinished(() => void vi.restoreAllMocks())
  const aside = open()
  const [table, row] = await Promise.all([
    aside.runStatement('CREATE TABLE notes AS SELECT ? AS text', 'seen'),
    aside.runStatement('SELECT text FROM notes'),
  ])
  expect([table, row]).toEqual([undefined, { text: 'seen' }])
  expect(calls).toEqual(['unref', 'ref', 'ref', 'unref']) // The thread keeps the process alive meanwhile, and no longer.
})

it('statements in a thread that fail are rejected with the code of SQLite, and those whose thread ends with that', async () => {
  const aside = open()
  const failure = { message: 'no such table: absent', errcode: 1 }
  await expect(aside.runStatement('SELECT * FROM absent')).rejects.toMatchObject(failure)
  const closing = aside.close()
  await expect(aside.runStatement('SELECT 1')).rejects.toThrow('the thread that runs its statements has ended')
  await closing
})
