/** A SQLite file: opened so that several processes of one machine can share it. */

import type { DatabaseSync } from 'node:sqlite'

/**
 * Opens the file, which it makes when there is none, and has it prepared; after that SQLite waits so long for others.
 *
 * @throws Error of SQLite, or one that says why the file will not do.
 */
export function openSqlite<T>(
  path: string,
  busyTimeoutMs: number,
  prepare: (database: DatabaseSync) => T,
): { readonly database: DatabaseSync; readonly prepared: T } {
  // Not an import: Node 22 would warn of it whoever loads this module, used or not.
  const sqlite = process.getBuiltinModule('node:sqlite')
  const database = new sqlite.DatabaseSync(path, { timeout: 0 })
  try {
    // SQLite does not wait when two turn to WAL at once: the one that is refused looks again.
    patiently(() => requireWal(database), OPENING_MS)
    const prepared = patiently(() => prepare(database), OPENING_MS)
    database.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
    return { database, prepared }
  } catch (error) {
    database.close()
    throw error
  }
}

/** How long opening waits for others that open or hold the file, in milliseconds: nothing else runs yet. */
const OPENING_MS = 5_000

function requireWal(database: DatabaseSync): void {
  const mode = database.prepare('PRAGMA journal_mode = WAL').get()?.journal_mode
  if (mode !== 'wal') throw new Error('it must be a file on a disk of this machine, for SQLite to keep a WAL beside it')
}

/** Runs a step in a transaction that writes: all of it or nothing. */
export function inTransaction<T>(database: DatabaseSync, step: () => T): T {
  database.exec('BEGIN IMMEDIATE')
  try {
    const result = step()
    database.exec('COMMIT')
    return result
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK') // SQLite has done so itself for some errors.
    throw error
  }
}

/** Does a step again while others have the file, for so long. */
export function patiently<T>(step: () => T, forMs: number): T {
  const end = performance.now() + forMs
  for (;;) {
    try {
      return step()
    } catch (error) {
      if (resultOf(error) !== BUSY || performance.now() > end) throw error
      // Not all the same: two that met would meet again.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 0.5 + Math.random())
    }
  }
}

/** SQLite's result code: the lowest byte of what it says in full. */
export function resultOf(error: unknown): number | undefined {
  const errcode = (error as { readonly errcode?: unknown } | null)?.errcode
  return typeof errcode === 'number' ? errcode & 0xff : undefined
}

/** Somebody else has the file. */
export const BUSY = 5
/** The file is damaged. */
export const CORRUPT = 11
