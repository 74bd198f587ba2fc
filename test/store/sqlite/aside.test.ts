import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { newFile } from './set-up.ts'

afterEach(() => {
  vi.doUnmock('node:worker_threads')
  vi.resetModules()
})

async function open(mayStartThreads: boolean) {
  vi.resetModules()
  const Worker = class {
    constructor() {
      throw Object.assign(new Error('Access to this API has been restricted.'), { code: 'ERR_ACCESS_DENIED' })
    }
  }
  if (!mayStartThreads) vi.doMock('node:worker_threads', () => ({ Worker }))
  const { createAside } = await import('../../../src/store/sqlite/aside.ts')
  const aside = createAside(newFile())
  onTestFinished(async () => {
    for (const _ of ['once', 'and again, which does no harm']) await aside.close()
  })
  return aside
}

describe.each([
  ['in a thread', true],
  ['where none may be started', false],
])('statements %s', (_where, mayStartThreads) => {
  it('answer their first row, one after the other', async () => {
    const aside = await open(mayStartThreads)
    const [table, row] = await Promise.all([
      aside.runStatement('CREATE TABLE notes AS SELECT ? AS text', 'seen'),
      aside.runStatement('SELECT text FROM notes'),
    ])
    expect([table, row]).toEqual([undefined, { text: 'seen' }])
  })

  it('that fail are rejected with the code of SQLite', async () => {
    const aside = await open(mayStartThreads)
    await expect(aside.runStatement('SELECT * FROM absent')).rejects.toMatchObject({
      message: 'no such table: absent',
      errcode: 1,
    })
  })
})

it('a statement whose thread ends is rejected', async () => {
  const aside = await open(true)
  const asked = aside.runStatement('SELECT 1')
  asked.catch(() => {})
  await aside.close()
  await expect(asked).rejects.toThrow('the thread that runs its statements has ended')
})
