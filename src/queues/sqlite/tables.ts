/** The tables of a file of queues: how they are created, and how those of release 0.1 become those of today. */

import { existsSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import type { Damaged } from '../../sqlite/damage.ts'
import {
  BUSY,
  connectTo,
  inTransaction,
  OPENING_MS,
  openSqlite,
  resultOf,
  retryWhileBusy,
  UnusableFile,
} from '../../sqlite/file.ts'
import { type Counts, PHASE } from './counts.ts'

/** The version of the tables. 1 is that of release 0.1. A file of any other version is refused. */
const VERSION = 2

/** How many numbers a queue has for its jobs and their places. The `seq` of a job is `queue * NUMBERS` plus its number. */
export const NUMBERS: number = 2 ** 40

const TABLES = `
  CREATE TABLE hookline_queue_schema (version INTEGER NOT NULL) STRICT;
  INSERT INTO hookline_queue_schema VALUES (${VERSION});
  CREATE TABLE hookline_queues (
    queue INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    next INTEGER NOT NULL, -- The next number: of a job, or of a place.
    waiting INTEGER NOT NULL,
    active INTEGER NOT NULL,
    dead_letters INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE hookline_queue_jobs (
    seq INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    id BLOB NOT NULL,
    phase INTEGER NOT NULL CHECK (phase BETWEEN 0 AND 3), -- See PHASE.
    place INTEGER NOT NULL, -- The order of the due jobs, and of the dead letters.
    due_at INTEGER NOT NULL CHECK (abs(due_at) < 1 << 53), -- Of a dead letter: when it failed.
    claim_count INTEGER NOT NULL CHECK (abs(claim_count) < 1 << 53),
    first_at INTEGER CHECK (abs(first_at) < 1 << 53),
    owner INTEGER, -- Of a claimed job: the process that claimed it, see owners.ts.
    retry_state BLOB,
    reason BLOB,
    claim INTEGER -- Of a claimed job: which claim of its owner.
  ) STRICT;
  CREATE INDEX hookline_queue_due ON hookline_queue_jobs (queue, place) WHERE phase = ${PHASE.due};
  CREATE INDEX hookline_queue_later ON hookline_queue_jobs (queue, due_at, seq) WHERE phase = ${PHASE.later};
  CREATE INDEX hookline_queue_claimed ON hookline_queue_jobs (queue, owner, claim) WHERE phase = ${PHASE.claimed};
  CREATE INDEX hookline_queue_dead ON hookline_queue_jobs (queue, place) WHERE phase = ${PHASE.deadLetter};
  -- A table of its own, so that claiming a job does not write its body again.
  CREATE TABLE hookline_queue_bodies (seq INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
  -- The ids that are known. Ids are random, so each is on another page: this table is written only once a job.
  CREATE TABLE hookline_queue_ids (
    queue INTEGER NOT NULL,
    id BLOB NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (queue, id)
  ) WITHOUT ROWID, STRICT;
  -- The complete jobs whose ids are known still.
  CREATE TABLE hookline_queue_completed (seq INTEGER PRIMARY KEY, id BLOB NOT NULL, completed_at INTEGER NOT NULL) STRICT`

/** What queues are reserved for. Files of release 0.2 do not have it; that release reads and writes a file with it. */
const USES_TABLE =
  'CREATE TABLE IF NOT EXISTS hookline_queue_uses (name TEXT PRIMARY KEY, use TEXT NOT NULL) WITHOUT ROWID, STRICT'

/** The claims of 0.1 end: none of its processes has the file open. */
const MIGRATION = `
  ALTER TABLE hookline_queues RENAME COLUMN dead TO dead_letters;
  ALTER TABLE hookline_queue_jobs RENAME COLUMN deliveries TO claim_count;
  ALTER TABLE hookline_queue_jobs RENAME COLUMN state TO retry_state;
  ALTER TABLE hookline_queue_jobs ADD COLUMN claim INTEGER;
  ALTER TABLE hookline_queue_done RENAME TO hookline_queue_completed;
  ALTER TABLE hookline_queue_completed RENAME COLUMN done_at TO completed_at;
  DROP TABLE hookline_queue_owners;
  UPDATE hookline_queue_jobs SET phase = ${PHASE.due} WHERE phase = ${PHASE.claimed};
  DROP INDEX hookline_queue_held;
  CREATE INDEX hookline_queue_claimed ON hookline_queue_jobs (queue, owner, claim) WHERE phase = ${PHASE.claimed};
  UPDATE hookline_queue_schema SET version = ${VERSION}`

/** An open file, as the parts that read and write it need it. Their functions are called within a transaction. */
export interface OpenTables {
  readonly database: DatabaseSync
  readonly path: string
  /** This process. */
  readonly owner: number
  readonly counts: Counts
  /** What lies on damaged pages: the body of the job with this `seq`, 'completed', or 'owner …' for its claims. */
  readonly damaged: Damaged<number | string>
}

/**
 * Opens a file of queues, creating it if it does not exist.
 *
 * @throws Error of SQLite, or one that says why the file cannot be used.
 */
export function openFile(path: string): DatabaseSync {
  if (existsSync(path)) migrate(path)
  return openSqlite(path, (database) => {
    database.exec(PRAGMAS)
    inTransaction(database, () => prepareTables(database))
  })
}

/** Opens a file, does something with it while no other process writes to it, and closes it. */
export function inFile(path: string, step: (database: DatabaseSync) => void): void {
  const database = openFile(path)
  try {
    retryWhileBusy(() => step(database), OPENING_MS)
  } finally {
    database.close()
  }
}

/** Checkpoints are rare and long, so that few pushes wait for one. */
const PAGES_A_CHECKPOINT = 8_000
const PRAGMAS = `PRAGMA synchronous = FULL; PRAGMA secure_delete = ON; PRAGMA cache_size = -32000; PRAGMA wal_autocheckpoint = ${PAGES_A_CHECKPOINT}`

/**
 * Prepares a connection of an observer, which changes nothing: the file must have the tables of today.
 *
 * @throws UnusableFile when it has not.
 */
export function prepareObserver(database: DatabaseSync): void {
  database.exec(PRAGMAS)
  const version = versionOf(database)
  if (version === undefined) throw new UnusableFile(`it holds no queues. Got none of their tables. ${CHECK_PATH}`)
  if (version !== VERSION) throw otherVersion(version)
}

/** What to do about a file that is missing, or another one. */
export const CHECK_PATH = 'Check the path, or start what pushes to the queue first.'

function prepareTables(database: DatabaseSync): void {
  const version = versionOf(database)
  if (version === undefined) database.exec(TABLES)
  else if (version !== VERSION) throw otherVersion(version)
  database.exec(USES_TABLE)
}

function otherVersion(version: unknown): UnusableFile {
  const rule = `this Hookline knows version ${VERSION} of its tables. Got version ${version}`
  return new UnusableFile(`${rule}. Use the Hookline that wrote it, or pass the path of a new file.`)
}

/** Makes tables of today of those of 0.1. Refuses, and changes nothing, while a process has the file open: it would fail. */
function migrate(path: string): void {
  try {
    // A connection for each try: one that is open while it waits keeps others from leaving the WAL, which wait for it.
    retryWhileBusy(() => {
      const database = connectTo(path)
      try {
        while (versionOf(database) === 1) migrateAlone(database)
      } finally {
        database.close()
      }
    }, OPENING_MS)
  } catch (error) {
    if (resultOf(error) !== BUSY) throw error
    throw new UnusableFile(
      "a process of Hookline 0.1 has it open. Got tables of 0.1 and 'database is locked'. Stop all processes of 0.1, and open it again.",
    )
  }
}

/** SQLite leaves the WAL only when no other connection is open; one that opens before the lock brings the WAL back. */
function migrateAlone(database: DatabaseSync): void {
  database.exec('PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE')
  const isAlone = database.prepare('PRAGMA journal_mode').get()?.journal_mode === 'delete'
  if (isAlone && versionOf(database) === 1) database.exec(MIGRATION)
  database.exec('COMMIT')
}

function versionOf(database: DatabaseSync): unknown {
  const table = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'hookline_queue_schema'").get()
  return table && (database.prepare('SELECT version FROM hookline_queue_schema').get()?.version ?? 'none')
}

/** The id of a job, a UUID, as the file keeps it: 16 bytes. */
export function bytesOfId(id: string): Buffer {
  return Buffer.from(id.replaceAll('-', ''), 'hex')
}

/** Whether the file keeps an id there. */
export function isId(bytes: unknown): bytes is Uint8Array {
  return bytes instanceof Uint8Array && bytes.byteLength === 16
}

/** Stands for what is no id. */
export const NO_ID = '00000000-0000-0000-0000-000000000000'

/** The id that the file keeps. Undefined for what is no id. */
export function textOfId(bytes: unknown): string | undefined {
  if (!isId(bytes)) return undefined
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, 16).toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
