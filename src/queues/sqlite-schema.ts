/** The file of a queue: opened, with its tables, ready to be shared by several processes. */

import type { DatabaseSync } from 'node:sqlite'
import { HooklineError } from '../protocol/error.ts'
import { adviceFor } from '../protocol/sqlite-advice.ts'
import { inTransaction, openSqlite } from '../protocol/sqlite-file.ts'

/** Of the tables: a file of another one is refused. */
const VERSION = 1

/** How many numbers a queue has for its jobs and their places: a job's `seq` begins with its queue. */
export const NUMBERS: number = 2 ** 40

const TABLES = `
  CREATE TABLE IF NOT EXISTS hookline_queue_schema (version INTEGER NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS hookline_queues (
    queue INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    next INTEGER NOT NULL, -- The next number: of a job, or of a place in a line.
    waiting INTEGER NOT NULL,
    active INTEGER NOT NULL,
    dead INTEGER NOT NULL
  ) STRICT;
  -- Whoever works on a queue: its lease is that of all jobs that it was handed.
  CREATE TABLE IF NOT EXISTS hookline_queue_owners (
    owner INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    until INTEGER NOT NULL,
    lease_ms INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS hookline_queue_jobs (
    seq INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    id BLOB NOT NULL,
    phase INTEGER NOT NULL CHECK (phase BETWEEN 0 AND 3), -- 0 due, 1 waits for its time, 2 handed out, 3 dead.
    place INTEGER NOT NULL, -- Among the due and the dead.
    due_at INTEGER NOT NULL CHECK (abs(due_at) < 1 << 53), -- Of the dead: when it died.
    deliveries INTEGER NOT NULL CHECK (abs(deliveries) < 1 << 53),
    first_at INTEGER CHECK (abs(first_at) < 1 << 53),
    owner INTEGER, -- Whom it was handed last.
    state BLOB,
    reason BLOB
  ) STRICT;
  CREATE INDEX IF NOT EXISTS hookline_queue_due ON hookline_queue_jobs (queue, place) WHERE phase = 0;
  CREATE INDEX IF NOT EXISTS hookline_queue_later ON hookline_queue_jobs (queue, due_at, seq) WHERE phase = 1;
  CREATE INDEX IF NOT EXISTS hookline_queue_held ON hookline_queue_jobs (queue, owner) WHERE phase = 2;
  CREATE INDEX IF NOT EXISTS hookline_queue_dead ON hookline_queue_jobs (queue, place) WHERE phase = 3;
  -- Apart, so that a job changes hands without its body being written anew.
  CREATE TABLE IF NOT EXISTS hookline_queue_bodies (seq INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
  -- Written once a job: the ids are random, so each is on a page of its own.
  CREATE TABLE IF NOT EXISTS hookline_queue_ids (
    queue INTEGER NOT NULL,
    id BLOB NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (queue, id)
  ) WITHOUT ROWID, STRICT;
  CREATE TABLE IF NOT EXISTS hookline_queue_done (seq INTEGER PRIMARY KEY, id BLOB NOT NULL, done_at INTEGER NOT NULL) STRICT;
  INSERT INTO hookline_queue_schema SELECT ${VERSION} WHERE NOT EXISTS (SELECT 1 FROM hookline_queue_schema)`

const JOIN = `
  INSERT INTO hookline_queues (name, next, waiting, active, dead) VALUES (?, 1, 0, 0, 0) ON CONFLICT (name) DO NOTHING`

const RECOUNT = `
  UPDATE hookline_queues AS q SET
    waiting = (SELECT count(*) FROM hookline_queue_jobs WHERE queue = q.queue AND phase = 0)
            + (SELECT count(*) FROM hookline_queue_jobs WHERE queue = q.queue AND phase = 1),
    active = (SELECT count(*) FROM hookline_queue_jobs WHERE queue = q.queue AND phase = 2),
    dead = (SELECT count(*) FROM hookline_queue_jobs WHERE queue = q.queue AND phase = 3)
  WHERE name = ? RETURNING queue`

/** A queue in an open file. */
export interface OpenFile {
  readonly database: DatabaseSync
  /** The number of the queue. */
  readonly queue: number
}

/**
 * Opens the file, which it makes when there is none, and enters the queue.
 *
 * @throws HooklineError `queue_unavailable` that says what to do.
 */
export function openFile(path: string, name: string): OpenFile {
  try {
    return open(path, name)
  } catch (cause) {
    throw new HooklineError('queue_unavailable', `The queue ${name} cannot use ${path}: ${adviceFor(path, cause)}`, {
      cause,
    })
  }
}

function open(path: string, name: string): OpenFile {
  const { database, prepared: queue } = openSqlite(path, 0, (opened) => {
    opened.exec(
      `PRAGMA synchronous = FULL; PRAGMA cache_size = -32000; PRAGMA wal_autocheckpoint = ${PAGES_A_CHECKPOINT}`,
    )
    return inTransaction(opened, () => enter(opened, name))
  })
  return { database, queue }
}

/** Few and long: what waits for one is hardly ever a push. */
const PAGES_A_CHECKPOINT = 8_000

/** Returns the number of the queue. */
function enter(database: DatabaseSync, name: string): number {
  const version = versionOf(database)
  if (version !== undefined && version !== VERSION) {
    throw new Error(
      `its tables are of version ${version}, and this Hookline knows version ${VERSION}. Use the Hookline that made it to finish what is in it, or give the path of a new file`,
    )
  }
  if (version === undefined) database.exec(TABLES)
  database.prepare(JOIN).run(name)
  return Number(database.prepare(RECOUNT).get(name)?.queue)
}

function versionOf(database: DatabaseSync): unknown {
  const table = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'hookline_queue_schema'").get()
  return table && (database.prepare('SELECT version FROM hookline_queue_schema').get()?.version ?? 'none')
}
