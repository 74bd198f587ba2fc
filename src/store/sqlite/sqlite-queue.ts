/**
 * A queue in a SQLite file. Its jobs survive the end of the process and a power cut, and the processes of one machine can share the queue.
 */

import { existsSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import { requireText } from '../../kit/checks.ts'
import { HooklineError } from '../../protocol/error.ts'
import { createQueue } from '../create-queue.ts'
import type { Queue } from '../queue-types.ts'
import { asObserver } from '../use.ts'
import { unavailable } from './advice.ts'
import { type Aside, createAside } from './aside.ts'
import { requireSqlite, UnusableFile } from './database.ts'
import { openFile } from './file.ts'
import { listNames, observeFile } from './observe-file.ts'
import { readOptions, type Settings, type SqliteQueueOptions } from './sqlite-options.ts'
import { SqliteStore } from './sqlite-store.ts'
import { CHECK_PATH } from './sqlite-tables.ts'

/** A queue in a SQLite file. */
export interface SqliteQueue extends Queue {
  /**
   * Copies the file, with all of its queues, to a new file (`VACUUM INTO`). The queues can be in use meanwhile. The copy
   * contains everything that was pushed before the call. Only the user that runs this process may read it. To restore the
   * copy, stop all processes that use the file, and replace the file with the copy.
   *
   * @param path The path of the copy, where no file may exist yet.
   * @throws TypeError (as a rejection) if `path` is not a non-empty string; HooklineError (as a rejection) `queue_unavailable` if the copy
   *   cannot be written, in which case no file is left behind.
   */
  backup(path: string): Promise<void>
}

/**
 * Opens a queue in a file.
 *
 * - A push resolves when its jobs are on the disk. In a process, all queues of a file share one connection. Calls that are made together
 *   are written together, and the event loop does not wait for the disk.
 * - A process keeps the jobs that it has claimed for as long as it lives. When it dies, another process that uses the file claims the jobs
 *   within a second; if there is no such process, the next process that opens the file claims them. After a power failure, jobs that were
 *   claimed or completed just before may be handled again; no job is lost.
 * - A job whose row or body cannot be read becomes a dead letter, with a reason that begins with `unreadable`.
 * - An idle queue does not keep the process alive. Closing the last queue of a file releases the file.
 * - Do not delete, replace or copy the files of a queue that is in use: see docs/queues.md. To copy them, use {@link SqliteQueue.backup}.
 * - A file that a release before 1.0 wrote is refused.
 *
 * @throws TypeError that names the invalid option; HooklineError `queue_unavailable` when the file cannot be used.
 * @example
 * const queue = sqliteQueue({ path: 'inbox.sqlite' })
 * queue.work(async (job) => ({ complete: true }), { concurrency: 10 })
 * await queue.push([{ id: randomUUID(), body }])
 */
export function sqliteQueue(options: SqliteQueueOptions): SqliteQueue {
  const settings = readOptions(options)
  const { path, name, pollMs, deadLetterRetentionMs, observe, onError, clock } = settings
  try {
    requireSqlite()
    const store = new SqliteStore(settings, (observe ? observeFile : openFile)(path, settings))
    const queue = createQueue(store, { name, pollMs, deadLetterRetentionMs, onError, clock })
    return { ...(observe ? asObserver(queue, name) : queue), backup: (to) => backUp(settings, to) }
  } catch (cause) {
    throw unavailable(`Queue ${name}`, path, cause)
  }
}

/**
 * Lists the names of the queues in a file. Creates and changes nothing.
 *
 * @throws TypeError that names the invalid option; HooklineError (as a rejection) `queue_unavailable` when the file cannot be used.
 */
export function listQueues(options: Pick<SqliteQueueOptions, 'path' | 'timeoutMs'>): Promise<readonly string[]> {
  const { path, timeoutMs } = readOptions(options)
  return listNames(path, timeoutMs)
}

async function backUp({ name, path }: Settings, to: string): Promise<void> {
  requireText('path', to, 'backup.sqlite')
  const backupTo = resolve(to)
  const file = await open(backupTo, 'wx', 0o600).catch((cause: NodeJS.ErrnoException) => {
    const reason = cause.code === 'EEXIST' ? 'the file exists' : 'it cannot be created'
    const advice = 'Pass the path of a new file, in a folder that this process may write to.'
    const message = `Queue ${name} cannot write a backup to ${backupTo}: ${reason} (${cause.code}). ${advice}`
    throw new HooklineError('queue_unavailable', message, { cause })
  })
  let aside: Aside | undefined
  try {
    if (!existsSync(path)) throw new UnusableFile(`it does not exist. ${CHECK_PATH}`)
    aside = createAside(path)
    await aside.runStatement('VACUUM INTO ?', backupTo)
    await file.sync()
  } catch (cause) {
    await rm(backupTo, { force: true })
    throw unavailable(`Queue ${name}`, path, cause)
  } finally {
    await Promise.all([aside?.close(), file.close()])
  }
}
