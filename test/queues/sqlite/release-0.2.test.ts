/** A file of today is one of release 0.2, but for a table of its own: processes of both may use it at once. */

import { DatabaseSync } from 'node:sqlite'
import { expect, it } from 'vitest'
import { manualClock } from '../../../src/testing/manual-clock.ts'
import { leaveJobs, withoutChance } from '../../support/left-jobs.ts'
import { sqliteQueueHere } from '../../support/sqlite.ts'
import { newFile } from './set-up.ts'

it('a file of SQLite is what release 0.2 left after the same calls', async () => {
  const path = newFile()
  const clock = manualClock(Date.UTC(2026, 0, 15))
  const queue = sqliteQueueHere({ path, name: 'orders', clock })
  await leaveJobs(queue, new Date(clock.now() + 3_600_000))
  const database = new DatabaseSync(path)
  const tables = database
    .prepare("SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE '%uses%' ORDER BY name")
    .all()
  const rows = tables
    .filter(({ sql }) => `${sql}`.startsWith('CREATE TABLE'))
    .map(({ name }) => [name, database.prepare(`SELECT * FROM ${name} ORDER BY 1`).all().map(readable)])
  database.close()
  await queue.close({ graceMs: 0 })
  await expect(withoutChance({ tables, rows: Object.fromEntries(rows) })).toMatchFileSnapshot('release-0.2.txt')
})

function readable(row: Record<string, unknown>): object {
  const columns = Object.entries(row).map(([name, value]) => {
    if ((name === 'owner' || name === 'claim') && value !== null) return [name, 'R']
    return [name, value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value]
  })
  return Object.fromEntries(columns)
}
