/**
 * A queue on PostgreSQL, kept by pg-boss: for destinations and inboxes that several machines share.
 *
 * @module hookline/queues/pg-boss
 */

import { HooklineError } from '../protocol/error.ts'
import { report } from '../protocol/report.ts'
import { readClose, readIds, readJobs, readPage } from './arguments.ts'
import { createLoop } from './loop.ts'
import { createConnection } from './pg-boss-connection.ts'
import { createDead } from './pg-boss-dead.ts'
import { type PgBossQueueOptions, readOptions } from './pg-boss-options.ts'
import { createPush } from './pg-boss-pushes.ts'
import { writeStatements } from './pg-boss-sql.ts'
import { createPgBossStore } from './pg-boss-store.ts'
import type { Job, Queue } from './queue.ts'

export type { PgBossQueueOptions } from './pg-boss-options.ts'
export type {
  ClaimedJob,
  CloseOptions,
  DeadJob,
  DeadPage,
  HandleJob,
  Job,
  Outcome,
  Queue,
  QueueCounts,
} from './queue.ts'

/**
 * Makes a queue whose jobs outlive the process and the machine it runs on. It connects when it is first used, and creates
 * pg-boss's schema then when there is none; while PostgreSQL is away pushes reject with `queue_unavailable`, and work goes
 * on by itself afterwards.
 *
 * - A push resolves when PostgreSQL has committed. With its `synchronous_commit = on`, the default, and `fsync = on`, a job
 *   survives the crash of this process, of PostgreSQL and of its machine, power included; with `off`, the crash of a
 *   machine or of PostgreSQL may cost the jobs of the last moments, those of this process cost none. What a lost disk
 *   costs is a matter of its replicas.
 * - A job whose worker died comes back when its lease is over and pg-boss has looked: see `leaseMs`. So does one whose
 *   claim was answered into a connection that was lost; that counts as a delivery.
 * - Jobs are handed out the longest due first, to about a second: machines whose clocks differ make it more.
 * - The id of a job that is done stays known for `knownForMs`; the dead stay until they are re-driven or dropped.
 * - pg-boss gives up no job: whatever its settings say of retries, expiry and retention.
 *
 * @throws TypeError that names the option at fault.
 * @example
 * const queue = pgBossQueue({ name: 'orders', connectionString: process.env.DATABASE_URL })
 * queue.work(async (job) => ({ done: true }), { concurrency: 100 })
 * await queue.push([{ id: randomUUID(), body }])
 */
export function pgBossQueue(options: PgBossQueueOptions): Queue {
  const settings = readOptions(options)
  const { name, clock, pollMs } = settings
  const connection = createConnection(settings)
  const statements = writeStatements(settings.schema)
  const push = createPush(connection, statements, settings)
  const dead = createDead(connection, statements, settings)
  const store = createPgBossStore(connection, statements, settings, reportOnce)
  const loop = createLoop(store, { clock, finishesDue: false, pollMs, onError: reportOnce })
  let reported: unknown
  let closed: Promise<readonly Job[]> | undefined

  /** One fault fails all that was sent together. */
  function reportOnce(error: unknown): void {
    if (error === reported) return
    reported = error
    report(settings.onError, error as HooklineError, undefined) // The connection throws no other.
  }

  function requireOpen(): void {
    if (closed === undefined) return
    throw new HooklineError('shutting_down', `The queue ${name} is closed, and takes no more jobs.`)
  }

  return {
    async push(jobs) {
      const byId = readJobs(jobs)
      requireOpen()
      await push(byId)
      loop.wake()
    },
    work: loop.work,
    drain: loop.drain,
    counts: dead.counts,
    dead: async (page = {}) => {
      const { after, limit } = readPage(page)
      return dead.page(after, limit)
    },
    async redrive(ids) {
      readIds(ids)
      requireOpen()
      const count = await dead.redrive(ids)
      loop.wake()
      return count
    },
    drop: async (ids) => dead.drop(readIds(ids)),
    async close(options) {
      const checked = readClose(options)
      closed ??= loop.close(checked).then(async () => {
        store.leave()
        await connection.close()
        return []
      })
      return closed
    },
  }
}
