import { describe, expect, it, onTestFinished } from 'vitest'
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
describe('statements in a thread', () => {
  it('answer their first row, one after the other', async () => {
    const aside = open()
    const [table, row] = await Promise.all([
      aside.runStatement('CREATE TABLE notes AS SELECT ? AS text', 'seen'),
      aside.runStatement('SELECT text FROM notes'),
    ])
    expect([table, row]).toEqual([undefined, { text: 'seen' }])
  })

  it('that fail are rejected with the code of SQLite, and those whose thread ends with that', async () => {
    const aside = open()
    const failure = { message: 'no such table: absent', errcode: 1 }
    await expect(aside.runStatement('SELECT * FROM absent')).rejects.toMatchObject(failure)
    const asked = expect(aside.runStatement('SELECT 1')).rejects.toThrow(
      'the thread that runs its statements has ended',
    )
    await aside.close()
    await asked
  })
})
