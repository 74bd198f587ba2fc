/**
 * A queue in a SQLite file: its jobs outlive the process and a power cut, and several processes of one machine share it.
 *
 * @module hookline/queues/sqlite
 */

import type { Queue } from './queue.ts'
import { readOptions, type SqliteQueueOptions } from './sqlite-options.ts'
import { createSqliteQueue } from './sqlite-queue.ts'
import { openFile } from './sqlite-schema.ts'
import { requireProgram, startWorker } from './sqlite-thread.ts'

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
 * Opens a queue in a file.
 *
 * - A push resolves when the disk has it: pushes and outcomes that come together are written together, by a thread of
 *   their own, so that nothing else waits for the disk.
 * - When a process dies, the jobs that it was handed come back after `leaseMs`. When the power fails, jobs that were
 *   handed out or done in the last moment may be handed out again; none is lost.
 * - A row that cannot be read is put on the list of the dead, and its reason says so.
 * - A queue that nobody works on lets the process end. Close it, and the file is let go of.
 *
 * @throws TypeError that names the option at fault; HooklineError `queue_unavailable` when the file cannot be used: it
 *   says what to do.
 * @example
 * const queue = sqliteQueue({ path: 'inbox.sqlite' })
 * queue.work(async (job) => ({ done: true }), { concurrency: 10 })
 * await queue.push([{ id: randomUUID(), body }])
 */
export function sqliteQueue(options: SqliteQueueOptions): Queue {
  const settings = readOptions(options)
  const { path, name, knownForMs, maxJobs, busyTimeoutMs } = settings
  requireProgram()
  openFile(path, name).database.close()
  return createSqliteQueue(settings, () => startWorker({ path, name, knownForMs, maxJobs, busyTimeoutMs }))
}
