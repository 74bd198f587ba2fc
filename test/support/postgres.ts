/** pg-boss on the PostgreSQL of the tests: a schema of its own, and a time of its own. */

import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { PgBoss, TestClock } from 'pg-boss'
import type { Clock } from '../../src/kit/clock.ts'

export type Schema = ReturnType<typeof createSchema>

/** A schema that is gone when the tests are. */
export function createSchema(databaseUrl: string) {
  const name = `hookline_${randomUUID().replaceAll('-', '').slice(0, 16)}`
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 })
  const run = async (statement: string, values?: unknown[]): Promise<Record<string, unknown>[]> => {
    const { rows } = await pool.query(statement.replaceAll('schema.', `${name}.`), values)
    return rows
  }
  return {
    name,
    run,
    async drop(): Promise<void> {
      await run(`DROP SCHEMA IF EXISTS ${name} CASCADE`)
      await pool.end()
    },
  }
}

export type VirtualBoss = Awaited<ReturnType<typeof startVirtualBoss>>

/** A pg-boss whose time stands still until a test moves it. */
export async function startVirtualBoss(databaseUrl: string, schema: Schema) {
  const time = new TestClock(Date.UTC(2026, 0, 15))
  const boss = new PgBoss({
    connectionString: databaseUrl,
    schema: schema.name,
    max: 5,
    clock: time,
    schedule: false,
    supervise: false, // By the tests themselves.
    monitorIntervalSeconds: 1,
    maintenanceIntervalSeconds: 1,
    bamIntervalSeconds: 60 * 60,
    flowIntervalSeconds: 60 * 60,
    queueCacheIntervalSeconds: 60 * 60,
  })
  const errors: unknown[] = []
  boss.on('error', (error) => errors.push(error))
  await boss.start()
  // pg-boss orders jobs by the times of their transactions, and in any way while time stands still.
  const insert = boss.insert.bind(boss)
  boss.insert = async (...args) => {
    await time.setTime(time.now() + 1).catch(() => {}) // It is being moved.
    return insert(...args)
  }
  const isSoon = (ms: number) => ms <= 50
  const clock: Clock = {
    now: () => time.now(),
    monotonic: () => time.now(),
    setTimeout: (callback, ms) => (isSoon(ms) ? setTimeout(callback, ms) : { virtual: time.setTimeout(callback, ms) }),
    clearTimeout: (timer) => {
      if (timer !== null && typeof timer === 'object' && 'virtual' in timer) time.clearTimeout(timer.virtual)
      else clearTimeout(timer as NodeJS.Timeout)
    },
  }
  return {
    boss,
    /** The same time. Timers of at most 50 ms run by the machine's clock: a short poll goes on while time stands still. */
    clock,
    now: () => time.now(),
    async advance(ms: number): Promise<void> {
      if (ms > LONG_MS) await time.setTime(time.now() + ms - LONG_MS)
      await time.tick(Math.min(ms, LONG_MS))
    },
    refresh: async (queue: string): Promise<void> => {
      await schema.run('UPDATE schema.queue SET monitor_on = NULL WHERE name IN ($1, $1 || $2)', [queue, '-groups'])
    },
    async stop(): Promise<void> {
      await boss.stop({ graceful: false })
      if (errors.length > 0) throw new AggregateError(errors, 'pg-boss reported errors')
    },
  }
}

const LONG_MS = 2 * 60_000
