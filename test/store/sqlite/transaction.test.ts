/** Jobs that are pushed in a transaction of the caller's, over a connection of its own to the file. */

import { DatabaseSync } from 'node:sqlite'
import { expect, it } from 'vitest'
import type { SqliteQueueOptions } from '../../../src/queues-sqlite.ts'
import { needs } from '../../support/needs.ts'
import { until } from '../../support/until.ts'
import { bodiesOf, jobOf, setUp as setUpFile, work } from './set-up.ts'

function setUp(options: Partial<SqliteQueueOptions> = {}) {
  const { path, open, connect } = setUpFile()
  const queue = open({ name: 'outbox', pollMs: 60_000, timeoutMs: 2_000, ...options })
  return { path, open, queue, db: connect() }
}

it('are handled when it commits, at once, and not at all when it is rolled back', needs('POSIX'), async () => {
  const { queue, db } = setUp()
  db.exec('CREATE TABLE orders (id TEXT)')
  const seen = work(queue)
  await queue.drain()
  for (const [end, body] of [
    ['ROLLBACK', 'rolled back'],
    ['COMMIT', 'committed'],
  ] as const) {
    db.exec('BEGIN IMMEDIATE')
    db.prepare('INSERT INTO orders VALUES (?)').run(body)
    await queue.push([jobOf(body), jobOf(`${body}, too`)], { db })
    expect(seen).toEqual([])
    db.exec(end)
  }
  await until(() => seen.length === 2) // Not by polling: that takes a minute. Windows may report a write late.
  expect(bodiesOf(seen)).toEqual(['committed', 'committed, too'])
  expect(db.prepare('SELECT id FROM orders').all()).toEqual([{ id: 'committed' }])
})

it('are those of several pushes, and of other queues of the file, in the order in which they were made', async () => {
  const { open, queue, db } = setUp()
  const other = open({ name: 'other' })
  const before = jobOf('before')
  await queue.push([before])
  db.exec('BEGIN IMMEDIATE')
  expect(await queue.push([before, jobOf('one')], { db })).toEqual([before.id])
  await other.push([jobOf('elsewhere')], { db })
  await queue.push([jobOf('two')], { db })
  db.exec('COMMIT')
  await queue.push([jobOf('after')])
  const seen = work(queue)
  await queue.drain()
  expect(bodiesOf(seen)).toEqual(['before', 'one', 'two', 'after'])
  expect(await other.counts()).toMatchObject({ waiting: 1 })
})

it('are refused where they could not be in the transaction, and nothing is stored', async () => {
  const { path, queue, db } = setUp()
  const bigIntegers = new DatabaseSync(path, { readBigInts: true })
  const elsewhere = new DatabaseSync(':memory:')
  for (const each of [bigIntegers, elsewhere]) each.exec('BEGIN')
  for (const given of [db, elsewhere, bigIntegers, { prepare() {}, inTransaction: true }]) {
    const pushed = queue.push([jobOf('a')], { db: given })
    await expect(pushed).rejects.toThrow(TypeError)
    await expect(pushed).rejects.toThrow('`db`')
  }
  for (const each of [bigIntegers, elsewhere]) each.close()
  expect(await queue.counts()).toMatchObject({ waiting: 0 })
})
