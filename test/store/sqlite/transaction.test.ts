/** Jobs that are pushed in a transaction of the caller's, over a connection of its own to the file. */

import { randomUUID } from 'node:crypto'
import { mkdtempSync, symlinkSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, it, onTestFinished } from 'vitest'
import { type SqliteQueueOptions, sqliteQueue } from '../../../src/queues-sqlite.ts'
import type { Job } from '../../../src/store/queue-types.ts'
import { needs } from '../../support/needs.ts'
import { until } from '../../support/until.ts'

const jobOf = (body: string): Job => ({ id: randomUUID(), body: Buffer.from(body) })

function setUp(options: Partial<SqliteQueueOptions> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'hookline-outbox-'))
  const path = join(folder, 'shop.sqlite')
  const queue = sqliteQueue({ path, name: 'outbox', pollMs: 60_000, ...options })
  const db = new DatabaseSync(path)
  onTestFinished(async () => {
    if (db.isOpen) db.close()
    await queue.close({ graceMs: 0 })
    await rm(folder, { recursive: true, maxRetries: 9 })
  })
  db.exec('CREATE TABLE orders (id TEXT)')
  const seen: string[] = []
  const work = () =>
    queue.work(
      async ({ body }) => {
        seen.push(Buffer.from(body).toString())
        return { complete: true }
      },
      { concurrency: 10 },
    )
  return { folder, path, queue, db, seen, work }
}

it('are handled when it commits, at once, and not at all when it is rolled back', needs('POSIX'), async () => {
  const { queue, db, seen, work } = setUp()
  work()
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
  expect(seen).toEqual(['committed', 'committed, too'])
  expect(db.prepare('SELECT id FROM orders').all()).toEqual([{ id: 'committed' }])
})

it('are those of several pushes, and of other queues of the file, in the order in which they were made', async () => {
  const { path, queue, db, seen, work } = setUp()
  const other = sqliteQueue({ path, name: 'other' })
  onTestFinished(async () => void (await other.close({ graceMs: 0 })))
  await queue.push([jobOf('before')])
  db.exec('BEGIN IMMEDIATE')
  await queue.push([jobOf('one')], { db })
  await other.push([jobOf('elsewhere')], { db })
  await queue.push([jobOf('two')], { db })
  db.exec('COMMIT')
  await queue.push([jobOf('after')])
  work()
  await queue.drain()
  expect(seen).toEqual(['before', 'one', 'two', 'after'])
  expect(await other.counts()).toMatchObject({ waiting: 1 })
})

it('have ids that are known, and a limit, as all others', async () => {
  const { queue, db } = setUp({ maxJobs: 2 })
  const job = jobOf('a')
  await queue.push([job])
  db.exec('BEGIN IMMEDIATE')
  expect(await queue.push([job, jobOf('b')], { db })).toEqual([job.id])
  await expect(queue.push([jobOf('c')], { db })).rejects.toMatchObject({ code: 'queue_full' })
  db.exec('COMMIT')
  expect(await queue.counts()).toMatchObject({ waiting: 2 })
})

it('may come over a path of another name for the file', needs('POSIX'), async () => {
  const { folder, path, queue } = setUp()
  symlinkSync(path, join(folder, 'link.sqlite'))
  const db = new DatabaseSync(join(folder, 'link.sqlite'))
  db.exec('BEGIN IMMEDIATE')
  await queue.push([jobOf('a')], { db })
  db.exec('COMMIT')
  db.close()
  expect(await queue.counts()).toMatchObject({ waiting: 1 })
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
