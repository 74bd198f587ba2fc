/** A queue on PostgreSQL, kept by pg-boss: for destinations and inboxes that several machines share. */

import { createQueue } from '../create-queue.ts'
import type { Queue } from '../queue-types.ts'
import { asObserver } from '../use.ts'
import { Connection } from './pg-boss-connection.ts'
import { type PgBossQueueOptions, readOptions } from './pg-boss-options.ts'
import { PgBossStore } from './pg-boss-store.ts'
import { prepareQueues, requireQueues } from './pg-boss-tables.ts'

/**
 * Creates a queue whose jobs survive the end of the process and the loss of its machine. It connects at the first call, and creates the
 * pg-boss schema if it is missing. While PostgreSQL is unreachable, pushes reject with `queue_unavailable`; afterwards, work resumes
 * automatically.
 *
 * - A push resolves when PostgreSQL has committed it. With `synchronous_commit = on` and `fsync = on`, which are the defaults of
 *   PostgreSQL, a job survives a crash of this process, of PostgreSQL and of its machine, including a power failure. With either of them
 *   `off`, a crash of PostgreSQL or its machine may lose the jobs of the last moments.
 * - The jobs of a killed worker wait again within 30 seconds by default: see `leaseMs`. A claim whose answer is lost claims nothing.
 * - Jobs are claimed about the oldest first: in the order of pg-boss, in which a retry keeps its place.
 * - Jobs of one group that are pushed in one call are stored one after the other: if the call rejects, the first ones may be stored. Jobs
 *   that are pushed in one transaction of yours have no order among themselves.
 * - The id and the body of a completed job stay in PostgreSQL for `dedupeWindowMs`.
 * - `counts()` reads the pg-boss statistics, which are up to 10 seconds old, or up to a minute with a `boss` or an observer: see `asOf`.
 * - The log is a table beside those of pg-boss, written in the transaction that completes the jobs.
 * - In the result of `forget`, `active` counts only the jobs that this process has claimed.
 * - Jobs that Hookline did not write become dead letters, with their data as the body.
 * - A handler may take at most 24 hours: after that, its job is claimed again.
 *
 * @throws TypeError that names the option.
 * @example
 * const queue = pgBossQueue({ name: 'orders', connectionString: process.env.DATABASE_URL })
 * queue.work(async (job) => ({ complete: true }), { concurrency: 100 })
 * await queue.push([{ id: randomUUID(), body }])
 */
export function pgBossQueue(options: PgBossQueueOptions): Queue {
  const settings = readOptions(options)
  const { name, pollMs, deadLetterRetentionMs, observe, onError, clock } = settings
  const connection = new Connection(settings, (boss, use) =>
    observe ? requireQueues(boss, settings) : prepareQueues(boss, settings, use),
  )
  const store = new PgBossStore(connection, settings)
  const queue = createQueue(store, { name, pollMs, deadLetterRetentionMs, onError, clock })
  return observe ? asObserver(queue, name) : queue
}
