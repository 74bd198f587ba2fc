import { statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { ClaimedJob, Outcome } from '../../../src/store/queue-types.ts'
import { until } from '../../support/until.ts'
import { jobOf, openAs, setUp, work } from './set-up.ts'

describe('depth', () => {
  it('costs nothing: every statement finds its rows by an index', async () => {
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

  it('all dead letters are redriven some at a time, so that others can use the file between', async () => {
    const { open, drained } = setUp()
    const queue = open()
    work(queue, () => ({ deadLetter: 'no' }), 100)
    await queue.push(Array.from({ length: 600 }, () => jobOf()))
    await drained(queue)
    void queue.pause()
    const redriven = queue.redrive('all')
    const seen: number[] = []
    while (seen.at(-1) !== 600) seen.push((await queue.counts()).waiting)
    expect(await redriven).toBe(600)
    expect(seen.filter((waiting) => waiting > 0 && waiting < 600)).not.toEqual([])
    expect(await queue.counts()).toMatchObject({ waiting: 600, deadLetters: 0 })
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

  it('a closed queue leaves its jobs in one file, none in the WAL beside it', async () => {
    const { path, open } = setUp()
    const queue = open()
    await queue.push(Array.from({ length: 500 }, () => jobOf('x'.repeat(4_000))))
    await queue.close({ graceMs: 0 })
    await until(() => (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) === 0)
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

  it('the WAL of a process that only works, one at a time, grows to a size and no further', async () => {
    const { path, open } = setUp()
    const before = open()
    await before.push(Array.from({ length: 6_000 }, () => jobOf('x'.repeat(100))))
    await before.close({ graceMs: 0 })
    const queue = open()
    const sizes: number[] = []
    const measure = (): Outcome => {
      if (seen.length % 100 === 0) sizes.push(statSync(`${path}-wal`).size)
      return { complete: true }
    }
    const seen: ClaimedJob[] = work(queue, measure, 1)

    await queue.drain()

    expect(seen).toHaveLength(6_000)
    expect(Math.max(...sizes)).toBeLessThan(90_000_000)
  })
})
