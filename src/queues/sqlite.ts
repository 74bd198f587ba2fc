/**
 * A queue in a SQLite file: for destinations and inboxes of one machine, shared by as many of its processes as you like.
 *
 * @module hookline/queues/sqlite
 */

import { HooklineError } from '../protocol/error.ts'
import { readClose, readIds, readJobs, readPage } from './arguments.ts'
import { createLoop } from './loop.ts'
import type { Job, Queue } from './queue.ts'
import { startThread } from './sqlite-bearer.ts'
import { requireFile } from './sqlite-file.ts'
import { createLine } from './sqlite-line.ts'
import { readOptions, type SqliteQueueOptions } from './sqlite-options.ts'
import { createSqliteStore } from './sqlite-store.ts'

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
export type { SqliteQueueOptions } from './sqlite-options.ts'

/**
 * Opens a queue whose jobs are in a file.
 *
 * - A push resolves when its jobs are on the disk (WAL, `synchronous=FULL`): they survive the process, the machine and the power.
 *   Pushes and outcomes that come while the disk is busy go into one transaction.
 * - The file is kept by a thread of its own, so waiting for the disk holds up nothing else.
 * - A job whose process dies is handed out again when its lease is over. After a power cut, jobs that were handed out at that
 *   moment may be counted as handed out once less.
 * - A job is due when the machine's clock says so. When somebody sets it back, those that wait for a time wait longer; those
 *   that are due, and those of processes that died, do not.
 *
 * @throws TypeError that names the option at fault; HooklineError `queue_unavailable` when the file cannot be used.
 * @example
 * const queue = sqliteQueue({ path: 'jobs.sqlite', name: 'orders' })
 * queue.work(async (job) => ({ done: true }), { concurrency: 10 })
 * await queue.push([{ id: randomUUID(), body }])
 */
export function sqliteQueue(options: SqliteQueueOptions): Queue {
  const { path, name, maxJobs, leaseMs, pollMs, knownForMs, busyTimeoutMs, onError, clock } = readOptions(options)
  requireFile(path, busyTimeoutMs)
  const tell = (error: unknown): void => {
    try {
      onError(error)
    } catch {
      // What an observer throws is not for the queue.
    }
  }
  const line = createLine({
    name,
    start: (events) => startThread(THREAD, { path, name, maxJobs, leaseMs, knownForMs, busyTimeoutMs }, events),
    onError: tell,
  })
  const store = createSqliteStore(line, clock, leaseMs)
  const loop = createLoop(store, { clock, finishesDue: false, pollMs, onError: tell })
  let closed: Promise<readonly Job[]> | undefined

  function requireOpen(): void {
    if (closed === undefined) return
    throw new HooklineError('shutting_down', `The queue ${name} is closed, and takes no more jobs.`)
  }

  async function end(graceMs: number): Promise<readonly Job[]> {
    await loop.close({ graceMs })
    store.end()
    await line.retire()
    return []
  }

  return {
    async push(jobs) {
      const byId = readJobs(jobs)
      requireOpen()
      if (byId.size === 0) return
      await line.ask({
        kind: 'push',
        now: clock.now(),
        jobs: [...byId.values()].map(({ id, body, notBefore }) => ({ id, body, notBefore })),
      })
      loop.wake()
    },
    work(handle, how) {
      loop.work(handle, how)
      store.begin()
    },
    drain: loop.drain,
    counts: () => line.ask({ kind: 'counts', now: clock.now() }),
    async dead(page = {}) {
      return line.ask({ kind: 'dead', ...readPage(page) })
    },
    async redrive(ids) {
      readIds(ids)
      requireOpen()
      const count = await line.ask({ kind: 'redrive', now: clock.now(), ids })
      loop.wake()
      return count
    },
    async drop(ids) {
      return line.ask({ kind: 'drop', ids: readIds(ids) })
    },
    async close(how) {
      const { graceMs } = readClose(how)
      closed ??= end(graceMs)
      return closed
    },
  }
}

/** The file of the thread lies beside this one, in the sources and in the package. */
const THREAD = new URL(`./sqlite-thread${import.meta.url.slice(-3)}`, import.meta.url)
