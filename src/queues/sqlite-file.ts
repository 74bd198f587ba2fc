/** The file of a queue: opened, with its tables, ready to be shared by several processes. */

import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { HooklineError } from '../protocol/error.ts'

/** How long opening waits for others that open or hold the file, in milliseconds. */
const OPENING_MS = 5_000
const PAUSE_MS = 5

/** The form of the tables below; a file of another one is refused. */
const VERSION = 1

/**
 * `place` is what orders the jobs of a status: a number in line for those that are due, the time for those that wait for
 * it, the end of the lease for those that are handed out, a number in line for the dead. Jobs that are due stand in line by
 * number, not by time, so that setting the clock back delays none of them.
 */
const TABLES = `
  CREATE TABLE hookline_queues (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    waiting INTEGER NOT NULL DEFAULT 0,
    active INTEGER NOT NULL DEFAULT 0,
    dead INTEGER NOT NULL DEFAULT 0
  );
  CREATE TABLE hookline_jobs (
    row INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    status INTEGER NOT NULL, -- 0 due, 1 waits for its time, 2 handed out, 3 dead
    place INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    deliveries INTEGER NOT NULL DEFAULT 0,
    owner INTEGER,
    lease_ms INTEGER,
    first_at INTEGER,
    died_at INTEGER,
    id BLOB NOT NULL,
    reason TEXT,
    state BLOB,
    body BLOB NOT NULL
  );
  CREATE UNIQUE INDEX hookline_jobs_id ON hookline_jobs (queue, id);
  CREATE INDEX hookline_jobs_place ON hookline_jobs (queue, status, place);
  CREATE TABLE hookline_done (
    row INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    until INTEGER NOT NULL, -- Until when the id is known.
    id BLOB NOT NULL
  );
  CREATE UNIQUE INDEX hookline_done_id ON hookline_done (queue, id);
  PRAGMA user_version = ${VERSION}`

/**
 * Opens the file; makes it, and its tables, when there is none.
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
    patiently(() => makeTables(database))
    database.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/**
 * Makes sure that the file can be used, before anybody relies on it.
 *
 * @throws HooklineError `queue_unavailable` that says why not.
 */
export function requireFile(path: string, busyTimeoutMs: number): void {
  try {
    openFile(path, busyTimeoutMs).close()
  } catch (cause) {
    const { message } = cause as Error
    const advice = existsSync(dirname(path)) ? '' : `; there is no folder ${dirname(path)}, make it first`
    throw new HooklineError('queue_unavailable', `The file ${path} cannot be used: ${message}${advice}.`, { cause })
  }
}

function requireWal(database: DatabaseSync): void {
  const mode = database.prepare('PRAGMA journal_mode = WAL').get()?.journal_mode
  if (mode !== 'wal') throw new Error('it must be a file on a disk of this machine, for SQLite to keep a WAL beside it')
}

function makeTables(database: DatabaseSync): void {
  database.exec('BEGIN IMMEDIATE')
  try {
    const version = database.prepare('PRAGMA user_version').get()?.user_version
    if (version === 0) database.exec(TABLES)
    else if (version !== VERSION) throw new Error(`it is of another version of Hookline, ${version} and not ${VERSION}`)
    database.exec('COMMIT')
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
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
