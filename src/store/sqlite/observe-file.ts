/**
 * The file as an observer uses it. An observer reads and changes jobs, but claims no jobs and creates no file. Each call opens the file,
 * and each commit waits for the disk.
 */

import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import { unavailable } from './advice.ts'
import { BUSY, checkpoint, resultOf } from './database.ts'
import { NO_OWNER } from './locks.ts'
import type { Settings } from './sqlite-options.ts'
import { prepareStatements } from './sqlite-statements.ts'
import type { QueueFile } from './sqlite-store.ts'
import { connectToTables, createQueueRows } from './sqlite-tables.ts'

export function observeFile(path: string, { name, timeoutMs }: Settings): QueueFile {
  const observeQueue = <T>(step: (database: DatabaseSync) => T) => observe(`Queue ${name}`, path, timeoutMs, step)
  return {
    path,
    async call(kind, step) {
      const value = await observeQueue((database) => {
        const [queues, sql] = [createQueueRows(database), prepareStatements(database)]
        database.exec(kind === 'read' ? 'BEGIN' : 'BEGIN IMMEDIATE')
        const value = step({ sql, row: queues.rowOf(name), owner: NO_OWNER, walBytes: 0 })
        queues.save()
        database.exec('COMMIT')
        return value
      })
      // If this fails, a later checkpoint does the same.
      if (kind === 'erase') await observeQueue((database) => checkpoint(database, 'TRUNCATE')).catch(() => {})
      return value
    },
    reserve() {},
    onCommit() {},
    close: async () => {},
  }
}

export function listNames(path: string, timeoutMs: number): Promise<string[]> {
  return observe('An observer', path, timeoutMs, (database) => createQueueRows(database).names())
}

/** Opens the file for one step, and retries in later turns of the event loop while another process is writing. */
async function observe<T>(
  subject: string,
  path: string,
  timeoutMs: number,
  step: (database: DatabaseSync) => T,
): Promise<T> {
  await nextTurn()
  for (const end = performance.now() + timeoutMs; ; await delay(1)) {
    let database: DatabaseSync | undefined
    try {
      database = connectToTables(path)
      return step(database)
    } catch (error) {
      if (resultOf(error) !== BUSY || performance.now() >= end) throw unavailable(subject, path, error)
    } finally {
      database?.close()
    }
  }
}
