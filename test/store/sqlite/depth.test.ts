import { statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { expect, it, onTestFinished, vi } from 'vitest'
import { until } from '../../support/until.ts'
import { jobOf, openAs, replaceInFs, setUp, work } from './set-up.ts'

it('depth costs nothing: every statement finds its rows by an index', async () => {
  const { path } = setUp()
  const prepare = vi.spyOn(DatabaseSync.prototype, 'prepare')
  onTestFinished(() => prepare.mockRestore())
  openAs(path, 1).close()
  const queries = prepare.mock.calls.map(([sql]) => sql).filter((sql) => !/PRAGMA|sqlite_schema/.test(sql))
  prepare.mockRestore()
  expect(queries.length).toBeGreaterThan(20)
  const database = new DatabaseSync(path)
  // What looks for dead owners reads the index of the claimed jobs: few, whatever waits. A bounded list has a limit.
  const plans = queries.flatMap((sql) => database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all())
  database.close()
  const scans = plans.map(({ detail }) => `${detail}`).filter((detail) => /SCAN|TEMP/.test(detail))
  expect(scans.filter((detail) => !/hookline_queue_(claimed|schema)|bounded/.test(detail))).toEqual([])
})

it('retries are counted while no more than ten thousand jobs wait for their time', async () => {
  const { open, clock } = setUp()
  const queue = open()
  const later = () => jobOf('later', { notBefore: new Date(clock.now() + 1_000) })
  await queue.push(Array.from({ length: 10_000 }, later))
  expect(await queue.counts()).toHaveProperty('retrying', 0)
  await queue.push([later()])
  expect(await queue.counts()).not.toHaveProperty('retrying')
})

it('ids of complete jobs are forgotten in time', async () => {
  const { open, clock, connect } = setUp()
  const queue = open({ dedupeWindowMs: 1_000 })
  work(queue)
  for (let round = 0; round < 5; round += 1) {
    await queue.push(Array.from({ length: 50 }, () => jobOf()))
    await queue.drain()
    await clock.advance(1_000)
  }
  const count = (table: string) => connect().prepare(`SELECT count(*) AS n FROM ${table}`).get()?.n
  expect(count('hookline_queue_jobs')).toBeLessThanOrEqual(100)
})

it('a closed queue leaves its jobs in one file, none in the WAL beside it, which it watches no more', async () => {
  const unwatch = vi.fn()
  replaceInFs('watch', () => ({ on: () => ({ close: unwatch }) }))
  const { path, open } = setUp()
  const queue = open()
  await queue.push(Array.from({ length: 500 }, () => jobOf('x'.repeat(4_000))))
  await queue.close({ graceMs: 0 })
  await until(() => (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) === 0)
  expect(unwatch).toHaveBeenCalledOnce()
})

it('the WAL of a process that pushes and works grows to a size and no further', async () => {
  const { path, open } = setUp()
  const queue = open()
  work(queue)
  const sizes: number[] = []

  for (let round = 0; round < 15; round += 1) {
    await queue.push(Array.from({ length: 500 }, () => jobOf('x'.repeat(4_000))))
    await queue.drain()
    sizes.push(statSync(`${path}-wal`).size)
  }

  expect(Math.max(...sizes)).toBeLessThan(90_000_000)
  expect(statSync(path).size).toBeLessThan(90_000_000)
})
