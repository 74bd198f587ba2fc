/**
 * A queue in a SQLite file: its jobs outlive the process and a power cut, and processes of one machine share it.
 *
 * @module hookline/queues/sqlite
 */

import { existsSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import { Worker } from 'node:worker_threads'
import { HooklineError } from '../../message/error.ts'
import { requireText } from '../../options/checks.ts'
import { requireSqlite, UnusableFile } from '../../sqlite/file.ts'
import type { Queue } from '../api.ts'
import { createQueue } from '../queue.ts'
import { asObserver } from '../use.ts'
import { connect } from './connection.ts'
import { readOptions, type Settings, type SqliteQueueOptions } from './options.ts'
import { createSqliteStore, observeFile } from './store.ts'
import { unavailable } from './thread-messages.ts'
import type { BackupSettings, ThreadSettings } from './worker-thread.ts'

export type { Queue } from '../api.ts'
export type { SqliteQueueOptions } from './options.ts'

/** A queue in a SQLite file. */
export interface SqliteQueue extends Queue {
  /**
   * Writes a copy of the file, with all of its queues, while they are in use (`VACUUM INTO`). It holds what was pushed before the call,
   * and only this user may read it. To restore it, stop all processes that use the file, and put the copy in its place.
   *
   * @param path A file that does not exist yet.
   * @throws TypeError for what is no path; HooklineError `queue_unavailable` when the backup cannot be written, which leaves no file.
   */
  backup(path: string): Promise<void>
}

/**
 * Opens a queue in a file.
 *
 * - A push resolves when the disk has it. All queues of a file in this process share one worker thread: calls that are made
 *   together are written together, and nothing else waits for the disk.
 * - A process keeps the jobs that it claimed for as long as it lives. When it dies, the other processes that use the file
 *   claim them within a second, or the next one that opens the file. When the power fails, jobs that were claimed or
 *   finished in the last moment may be handled again; none is lost.
 * - A job whose row or body cannot be read becomes a dead letter, whose reason begins with `unreadable`.
 * - An idle queue does not keep the process alive. `close()` of the last queue of a file releases the file.
 * - Do not delete, replace or copy the files of a queue in use: see docs/queues.md, and {@link SqliteQueue.backup}.
 * - A file that releases before 1.0 wrote is refused.
 *
 * @throws TypeError that names the option; HooklineError `queue_unavailable` when the file cannot be used.
 * @example
 * const queue = sqliteQueue({ path: 'inbox.sqlite' })
 * queue.work(async (job) => ({ complete: true }), { concurrency: 10 })
 * await queue.push([{ id: randomUUID(), body }])
 */
export function sqliteQueue(options: SqliteQueueOptions): SqliteQueue {
  const settings = readOptions(options)
  const { path, name, pollMs, deadLetterRetentionMs, observe, onError, clock } = settings
  const shared = { name, pollMs, deadLetterRetentionMs, onError, clock }
  try {
    requireSqlite()
    const backup = (to: string) => backUp(settings, to)
    if (observe) {
      return { ...asObserver(createQueue(createSqliteStore(settings, observeFile(path)), shared), name), backup }
    }
    const program = findProgram()
    const connection = connect(path, name, (thread) => startWorker(program, thread))
    return { ...createQueue(createSqliteStore(settings, connection), shared), backup }
  } catch (cause) {
    throw unavailable(`Queue ${name}`, path, cause)
  }
}

async function backUp({ name, path }: Settings, to: string): Promise<void> {
  requireText('path', to, 'backup.sqlite')
  const backupTo = resolve(to)
  const file = await open(backupTo, 'wx', 0o600).catch((cause: NodeJS.ErrnoException) => {
    const reason = cause.code === 'EEXIST' ? 'there is a file already' : 'it cannot be created'
    const advice = 'Pass the path of a new file, in a folder that this process may write to.'
    const message = `Queue ${name} cannot write a backup to ${backupTo}: ${reason}. Got ${cause.code}. ${advice}`
    throw new HooklineError('queue_unavailable', message, { cause })
  })
  try {
    await new Promise((done, fail) => {
      const refuse = (message: string) => fail(new HooklineError('queue_unavailable', message))
      const thread = startWorker(findProgram(), { isHooklineThread: true, name, path, backupTo })
      thread.once('message', refuse).once('error', fail).once('exit', done)
    })
    await file.sync()
  } catch (error) {
    await rm(backupTo, { force: true })
    throw error
  } finally {
    await file.close()
  }
}

function startWorker(program: URL, settings: ThreadSettings | BackupSettings): Worker {
  return new Worker(program, { workerData: settings, name: 'hookline sqlite', execArgv: [], stdin: false })
}

function findProgram(): URL {
  const { url } = import.meta // A bundler may leave nothing of it.
  const program = url && new URL(url.endsWith('.ts') ? './worker-thread.ts' : './sqlite-worker.js', url)
  if (program && existsSync(program)) return program
  throw new UnusableFile(
    `its worker thread needs a file of its own. Got no ${program ? program.href : 'import.meta.url'}. Mark hookline as external in your bundler.`,
  )
}
