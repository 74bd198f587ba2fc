import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, it } from 'vitest'
import { listQueues, sqliteQueue } from '../../src/queues-sqlite.ts'
import { testObserver } from './observe-cases.ts'
import { newFile } from './sqlite/set-up.ts'

const path = newFile(afterAll)
const folder = dirname(path)

describe('an observer of a queue in a SQLite file', () => {
  testObserver({
    open: (name, observe) => sqliteQueue({ path, name, observe, onError() {} }),
    list: () => listQueues({ path, timeoutMs: 1_000 }),
    countsRetries: true,
    async read() {
      if (!existsSync(path)) return readdirSync(folder)
      const database = new DatabaseSync(path, { readOnly: true, timeout: 5_000 })
      const tables = database.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'table'").all()
      const rows = tables.map(({ name }) => database.prepare(`SELECT * FROM ${name}`).all())
      database.close()
      return { tables, rows, files: readdirSync(folder) }
    },
  })

  it.each([
    ['CREATE TABLE hookline_queue_schema (version); INSERT INTO hookline_queue_schema VALUES (6)', '6'],
    ['CREATE TABLE theirs (a)', 'no queues'],
  ])('is refused where it does not know the tables, which stay as they are: %s', async (sql, found) => {
    const file = join(folder, `${randomUUID()}.sqlite`)
    const database = new DatabaseSync(file)
    database.exec(sql)
    database.close()
    const before = readFileSync(file)

    const observer = sqliteQueue({ path: file, observe: true })

    const refusal = { code: 'queue_unavailable', message: expect.stringContaining(found) }
    await expect(observer.counts()).rejects.toMatchObject(refusal)
    expect(readFileSync(file)).toEqual(before)
    expect(readdirSync(folder).filter((name) => join(folder, name).startsWith(file))).toHaveLength(1)
  })
})
