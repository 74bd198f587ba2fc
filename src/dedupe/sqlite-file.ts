/** A SQLite file: opened, with its table, ready to be shared by several processes. */

import type { DatabaseSync } from 'node:sqlite'

/** How long opening waits for others that open or hold the file, in milliseconds: nothing else runs yet. */
const OPENING_MS = 5000

const PAUSE_MS = 5

const TABLE = `
  CREATE TABLE IF NOT EXISTS hookline_dedupe (
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    token TEXT, -- Whose claim it is; NULL when the message was handled.
    until INTEGER NOT NULL, -- When the claim or the memory of it ends, in milliseconds since the epoch.
    for_ms INTEGER NOT NULL, -- How long that was to be.
    PRIMARY KEY (name, key)
  ) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS hookline_dedupe_until ON hookline_dedupe (until)`

/**
 * Opens the file, which it makes when there is none.
 *
 * @throws Error of SQLite, or one that says why the file will not do.
 */
export function openFile(path: string, busyTimeoutMs: number): DatabaseSync {
  // Not an import: Node 22 would warn of it whoever loads this module, used or not.
  const sqlite = process.getBuiltinModule('node:sqlite')
  const database = new sqlite.DatabaseSync(path, { timeout: OPENING_MS })
  try {
    // SQLite does not wait when two turn to WAL at once: the one that is refused looks again.
    patiently(() => requireWal(database))
    // Not FULL: a power cut takes the last claims and confirms with it, and their messages are handled again.
    patiently(() => database.exec(`PRAGMA synchronous = NORMAL; ${TABLE}`))
    database.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

function requireWal(database: DatabaseSync): void {
  const mode = database.prepare('PRAGMA journal_mode = WAL').get()?.journal_mode
  if (mode !== 'wal') throw new Error('it must be a file on a disk of this machine, for SQLite to keep a WAL beside it')
}

function patiently(step: () => void): void {
  const end = performance.now() + OPENING_MS
  for (;;) {
    try {
      step()
      return
    } catch (error) {
      if (!isBusy(error) || performance.now() > end) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS)
    }
  }
}

/** SQLITE_BUSY and its kin, whose lowest byte is theirs. */
function isBusy(error: unknown): boolean {
  return (Number((error as { readonly errcode?: number }).errcode) & 0xff) === 5
}
