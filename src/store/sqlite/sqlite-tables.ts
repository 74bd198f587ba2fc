/** The tables of a file of queues, and a row for each queue, with its counts and its next number. */

import { existsSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import type { QueueUse } from '../queue-types.ts'
import { doesNotExist, servesOther } from '../use.ts'
import { closeIfFails, connectTo, inTransaction, OPENING_MS, retryWhileBusy, UnusableFile } from './database.ts'
import { MAY_SYNC } from './wal.ts'

/**
 * The states of a job. In each group, at most one job is `due`, `claimed` or `held`, and all other jobs whose time has come are `behind`
 * it. A `held` job waits for its retry, and a `later` job for its time.
 */
export const STATE = { due: 0, later: 1, claimed: 2, dead: 3, behind: 4, held: 5, done: 6 } as const
/** The condition that selects the jobs that come due later. */
export const IS_LATER = `state IN (${STATE.later}, ${STATE.held})`

/**
 * How many numbers each queue has for its jobs, places, log entries and marks. The `seq` of a job or a log entry is `queue *
 * SEQS_PER_QUEUE` plus its number.
 */
export const SEQS_PER_QUEUE: number = 2 ** 40

const VERSION = 5
const TABLES = `
  CREATE TABLE hookline_queues (
    queue INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    use TEXT, -- The use for which the queue is reserved.
    next INTEGER NOT NULL, -- The next number, for a job, a place, an entry of the log or a mark.
    waiting INTEGER NOT NULL,
    active INTEGER NOT NULL,
    dead_letters INTEGER NOT NULL,
    log_bytes INTEGER NOT NULL -- The total size of the bodies in the log of the queue.
  ) STRICT;
  -- A completed job stays in the state done, without its body, while its id is in the dedupe window.
  CREATE TABLE hookline_queue_jobs (
    seq INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    id BLOB NOT NULL,
    in_group INTEGER, -- A digest of the name of the group.
    line INTEGER, -- The value of in_group while the job is due, claimed, held or behind another job of its group.
    state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 6), -- See STATE.
    place INTEGER NOT NULL, -- The order of the due jobs, and of the dead letters.
    at INTEGER NOT NULL CHECK (abs(at) <= 8640000000000000), -- When the job is due, failed or was completed, in milliseconds since the epoch.
    claim_count INTEGER NOT NULL CHECK (abs(claim_count) < 1 << 53),
    first_at INTEGER CHECK (abs(first_at) <= 8640000000000000),
    owner INTEGER, -- The process that claimed the job: see locks.ts.
    claim INTEGER, -- The number of the claim among the claims of its owner.
    retry_state BLOB,
    reason BLOB
  ) STRICT;
  -- Ids are random, so each id is on a different page. Only the first and the last statement of a job change this index.
  CREATE UNIQUE INDEX hookline_queue_ids ON hookline_queue_jobs (queue, id);
  CREATE INDEX hookline_queue_due ON hookline_queue_jobs (queue, place) WHERE state = ${STATE.due};
  CREATE INDEX hookline_queue_later ON hookline_queue_jobs (queue, at, seq) WHERE ${IS_LATER};
  CREATE INDEX hookline_queue_claimed ON hookline_queue_jobs (owner, queue) WHERE state = ${STATE.claimed};
  CREATE INDEX hookline_queue_dead ON hookline_queue_jobs (queue, place) WHERE state = ${STATE.dead};
  CREATE INDEX hookline_queue_lines ON hookline_queue_jobs (queue, line, place) WHERE line IS NOT NULL; -- No claim changes this index.
  -- The bodies are in a separate table, so that claiming a job does not write its body again.
  CREATE TABLE hookline_queue_bodies (seq INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
  -- The log. The body of an entry is the body of its job, in hookline_queue_bodies.
  CREATE TABLE hookline_log (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    job INTEGER NOT NULL, -- The seq of the job.
    at INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    note BLOB NOT NULL
  ) STRICT;
  CREATE TABLE hookline_queue_marks (
    queue INTEGER NOT NULL,
    key TEXT NOT NULL,
    until INTEGER NOT NULL,
    version INTEGER NOT NULL, -- A number from the column next of the queue.
    PRIMARY KEY (queue, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX hookline_queue_marks_set ON hookline_queue_marks (queue, version);
  CREATE INDEX hookline_queue_marks_ended ON hookline_queue_marks (queue, until);
  CREATE TABLE hookline_queue_schema (version INTEGER NOT NULL) STRICT;
  INSERT INTO hookline_queue_schema VALUES (${VERSION})`

/**
 * With `NORMAL`, a commit does not wait for the disk, because calls that must be durable wait for the disk after the commit. Under the
 * permission model of Node.js, a process may not sync files, so it uses `FULL`: each commit waits for the disk. Checkpoints run in a
 * separate thread, and wait for the disk. `fullfsync` makes macOS wait until data is on the disk itself, not just in its cache.
 */
const PRAGMAS = `PRAGMA synchronous = ${MAY_SYNC ? 'NORMAL' : 'FULL'}; PRAGMA fullfsync = ON; PRAGMA secure_delete = ON; PRAGMA cache_size = -32000; PRAGMA wal_autocheckpoint = 0`

/** Opens a file of queues, creating it if it does not exist. */
export function openTables(path: string): DatabaseSync {
  return closeIfFails(connectTo(path), (database) => {
    // SQLite does not wait for locks when it changes to WAL mode: if two processes try this at once, one of them has to retry.
    const mode = retryWhileBusy(() => database.prepare('PRAGMA journal_mode = WAL').get(), OPENING_MS)?.journal_mode
    if (mode !== 'wal') {
      const rule = `SQLite cannot keep a WAL next to it, and uses the journal mode '${mode}' instead`
      throw new UnusableFile(`${rule}. Pass the path of a file on a disk of this machine.`)
    }
    retryWhileBusy(() => {
      database.exec(PRAGMAS)
      inTransaction(database, () => hasTables(database) || database.exec(TABLES))
    }, OPENING_MS)
  })
}

/** Connects to an existing file of queues for one call of an observer. Each commit waits for the disk. */
export function connectToTables(path: string): DatabaseSync {
  if (!existsSync(path)) throw new UnusableFile(`it does not exist. ${CHECK_PATH}`)
  return closeIfFails(connectTo(path), (database) => {
    database.exec(`${PRAGMAS}; PRAGMA synchronous = FULL`)
    if (!hasTables(database)) throw new UnusableFile(`it has no queues. ${CHECK_PATH}`)
  })
}

export const CHECK_PATH = 'Check the path, or first start the app that pushes to the queue.'

/**
 * Returns whether the file has the tables.
 *
 * @throws UnusableFile if the tables have another version, or one of them has a trigger.
 */
function hasTables(database: DatabaseSync): boolean {
  const ours = "lower(tbl_name) LIKE 'hookline_queue%' OR lower(tbl_name) = 'hookline_log'"
  const found = database.prepare(`SELECT type, name FROM sqlite_schema WHERE ${ours}`).all()
  if (found.length === 0) return false
  const hasVersion = found.some(({ name }) => name === 'hookline_queue_schema')
  const row = hasVersion ? database.prepare('SELECT version FROM hookline_queue_schema').get() : undefined
  if (row?.version !== VERSION) {
    const found = row === undefined ? 'no version' : `version ${row.version}`
    const rule = `its tables have ${found}, but this release of Hookline reads version ${VERSION}`
    throw new UnusableFile(`${rule}. Use the release that wrote the file, or pass the path of a new one.`)
  }
  const trigger = found.find(({ type }) => type === 'trigger')
  if (trigger === undefined) return true
  throw new UnusableFile(
    `another program added the trigger ${trigger.name} to its tables, which could delete or copy messages. Drop the trigger, or pass the path of a new file.`,
  )
}

/** The columns of a queue in `hookline_queues` that transactions change. */
export interface QueueRow {
  readonly queue: number
  next: number
  waiting: number
  active: number
  deadLetters: number
  logBytes: number
}

const COLUMNS = ['next', 'waiting', 'active', 'deadLetters', 'logBytes'] as const

/** A queue of the file, and the use for which the queue is reserved. */
export interface QueueAndUse {
  readonly name: string
  readonly use?: QueueUse | undefined
}

export type Queues = ReturnType<typeof createQueueRows>

/**
 * Creates functions that add, read and save the rows of queues. They read a row once in each transaction, because another
 * process may have changed the row since the last transaction.
 */
export function createQueueRows(database: DatabaseSync) {
  const insertRow = database.prepare(`
    INSERT INTO hookline_queues (name, use, next, waiting, active, dead_letters, log_bytes) VALUES (?, ?, 1, 0, 0, 0, 0)
    ON CONFLICT (name) DO UPDATE SET use = coalesce(use, excluded.use) RETURNING use`)
  const selectRow = database.prepare(`
    SELECT queue, next, waiting, active, dead_letters AS deadLetters, log_bytes AS logBytes
    FROM hookline_queues WHERE name = ?`)
  const write = database.prepare(`
    UPDATE hookline_queues SET next = ?, waiting = ?, active = ?, dead_letters = ?, log_bytes = ? WHERE queue = ?`)
  const rows = new Map<string, { readonly row: QueueRow; readonly before: QueueRow }>()

  function names(): string[] {
    const list = database.prepare('SELECT name FROM hookline_queues ORDER BY queue')
    return list.all().map(({ name }) => `${name}`)
  }

  return {
    names,
    /**
     * Adds the queue to the file. Must be called in a transaction.
     *
     * @throws HooklineError if the queue is reserved for the other use.
     */
    addQueue({ name, use }: QueueAndUse): void {
      const found = insertRow.get(name, use ?? null)?.use
      if (use !== undefined && found !== use) throw servesOther(name, `${found}`, use)
    },
    /** Forgets the rows that the previous transaction read. Must be called when a transaction begins. */
    forgetRows: () => rows.clear(),
    /** Returns the row of a queue. The caller changes the row in place, and `save` writes the changes. */
    rowOf(name: string): QueueRow {
      const loaded = rows.get(name)
      if (loaded !== undefined) return loaded.row
      const before = selectRow.get(name) as unknown as QueueRow | undefined
      if (before === undefined) throw doesNotExist(name, names())
      const row = { ...before }
      rows.set(name, { row, before })
      return row
    },
    save(): void {
      for (const { row, before } of rows.values()) {
        if (COLUMNS.some((column) => row[column] !== before[column])) {
          write.run(...COLUMNS.map((column) => row[column]), row.queue)
        }
      }
    },
  }
}
