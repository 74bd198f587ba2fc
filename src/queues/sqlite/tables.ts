/** The tables of a file of queues, and the rows of its queues: their counts and their next numbers. */

import type { DatabaseSync } from 'node:sqlite'
import { hasTables, inTransaction, openSqlite, prepareTables, type Tables, UnusableFile } from '../../sqlite/file.ts'
import { MAY_SYNC } from '../../sqlite/watch.ts'
import type { QueueUse } from '../api.ts'
import { listNames, servesOther } from '../use.ts'

/** In each group, one job is `due`, `claimed` or `held`; the others that are due are `behind` it. A `held` job waits for its retry. */
export const STATE = { due: 0, later: 1, claimed: 2, dead: 3, behind: 4, held: 5, done: 6 } as const
/** The states that have a time. */
export const IS_LATER = `state IN (${STATE.later}, ${STATE.held})`

/** How many numbers a queue has for its jobs, their places and its log. The `seq` of a job or an entry is `queue * NUMBERS` plus its number. */
export const NUMBERS: number = 2 ** 40

const TABLES: Tables = {
  name: 'hookline_queue',
  version: 5,
  sql: `
    CREATE TABLE hookline_queues (
      queue INTEGER PRIMARY KEY,
      name TEXT NOT NULL UNIQUE,
      use TEXT, -- What the queue is reserved for.
      next INTEGER NOT NULL, -- The next number: of a job, of a place or of an entry of the log.
      waiting INTEGER NOT NULL,
      active INTEGER NOT NULL,
      dead_letters INTEGER NOT NULL,
      log_bytes INTEGER NOT NULL -- What the bodies of its log take.
    ) STRICT;
    -- A job stays as done, without its body, while its id is known.
    CREATE TABLE hookline_queue_jobs (
      seq INTEGER PRIMARY KEY,
      queue INTEGER NOT NULL,
      id BLOB NOT NULL,
      in_group INTEGER, -- A digest of the name of its group.
      line INTEGER, -- The same while the job stands in the line of its group: while it is due, claimed, held or behind another.
      state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 6), -- See STATE.
      place INTEGER NOT NULL, -- The order of the due jobs, and of the dead letters.
      at INTEGER NOT NULL CHECK (abs(at) <= 8640000000000000), -- When it is due, failed or was done, as a Date holds it.
      claim_count INTEGER NOT NULL CHECK (abs(claim_count) < 1 << 53),
      first_at INTEGER CHECK (abs(first_at) <= 8640000000000000),
      owner INTEGER, -- The process that claimed it: see owners.ts.
      claim INTEGER, -- Which claim of its owner.
      retry_state BLOB,
      reason BLOB
    ) STRICT;
    -- Ids are random, so each is on a page of its own: only the first and the last statement of a job change this index.
    CREATE UNIQUE INDEX hookline_queue_ids ON hookline_queue_jobs (queue, id);
    CREATE INDEX hookline_queue_due ON hookline_queue_jobs (queue, place) WHERE state = ${STATE.due};
    CREATE INDEX hookline_queue_later ON hookline_queue_jobs (queue, at, seq) WHERE ${IS_LATER};
    CREATE INDEX hookline_queue_claimed ON hookline_queue_jobs (owner, queue) WHERE state = ${STATE.claimed};
    CREATE INDEX hookline_queue_dead ON hookline_queue_jobs (queue, place) WHERE state = ${STATE.dead};
    CREATE INDEX hookline_queue_lines ON hookline_queue_jobs (queue, line, place) WHERE line IS NOT NULL; -- No claim changes it.
    -- A table of its own, so that claiming a job does not write its body again.
    CREATE TABLE hookline_queue_bodies (seq INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
    -- What was done. The body of an entry stays where that of its job was.
    CREATE TABLE hookline_log (
      seq INTEGER PRIMARY KEY,
      id BLOB NOT NULL,
      job INTEGER NOT NULL, -- The seq of the job.
      at INTEGER NOT NULL,
      bytes INTEGER NOT NULL,
      note BLOB NOT NULL
    ) STRICT`,
}

/**
 * A commit does not wait for the disk: what promises something waits for it afterwards. Checkpoints are made off the thread, and wait for
 * the disk, on macOS not only for its cache.
 */
const PRAGMAS = `PRAGMA synchronous = ${MAY_SYNC ? 'NORMAL' : 'FULL'}; PRAGMA fullfsync = ON; PRAGMA secure_delete = ON; PRAGMA cache_size = -32000; PRAGMA wal_autocheckpoint = 0`

export function openTables(path: string): DatabaseSync {
  return openSqlite(path, (database) => {
    database.exec(PRAGMAS)
    inTransaction(database, () => prepareTables(database, TABLES))
  })
}

/** Each commit waits for the disk. */
export function requireTables(database: DatabaseSync): void {
  database.exec(`${PRAGMAS}; PRAGMA synchronous = FULL`)
  if (hasTables(database, TABLES)) return
  throw new UnusableFile(`it holds no queues. Got none of their tables. ${CHECK_PATH}`)
}

export const CHECK_PATH = 'Check the path, or start what pushes to the queue first.'

export interface QueueRow {
  readonly queue: number
  next: number
  waiting: number
  active: number
  deadLetters: number
  logBytes: number
}

const COLUMNS = ['next', 'waiting', 'active', 'deadLetters', 'logBytes'] as const

export interface Reservation {
  readonly name: string
  readonly use?: QueueUse | undefined
}

export type Queues = ReturnType<typeof createQueues>

/** The rows of the queues, read once a transaction: another process may have changed them since the last one. */
export function createQueues(database: DatabaseSync) {
  const enter = database.prepare(`
    INSERT INTO hookline_queues (name, use, next, waiting, active, dead_letters, log_bytes) VALUES (?, ?, 1, 0, 0, 0, 0)
    ON CONFLICT (name) DO UPDATE SET use = coalesce(use, excluded.use) RETURNING use`)
  const find = database.prepare('SELECT queue FROM hookline_queues WHERE name = ?')
  const read = database.prepare(`
    SELECT queue, next, waiting, active, dead_letters AS deadLetters, log_bytes AS logBytes
    FROM hookline_queues WHERE queue = ?`)
  const write = database.prepare(`
    UPDATE hookline_queues SET next = ?, waiting = ?, active = ?, dead_letters = ?, log_bytes = ? WHERE queue = ?`)
  const numbers = new Map<string, number>()
  const rows = new Map<number, { readonly row: QueueRow; readonly before: QueueRow }>()

  function names(): string[] {
    const list = database.prepare('SELECT name FROM hookline_queues ORDER BY queue')
    return list.all().map(({ name }) => `${name}`)
  }

  function missing(): UnusableFile {
    const advice = 'Check the name, or start what pushes to it first.'
    return new UnusableFile(`it does not have this queue. Got ${listNames(names())}. ${advice}`)
  }

  return {
    names,
    /** In a transaction. */
    enter({ name, use }: Reservation): void {
      const found = enter.get(name, use ?? null)?.use
      if (use !== undefined && found !== use) throw servesOther(name, `${found}`, use)
    },
    numberOf(name: string): number {
      const queue = numbers.get(name) ?? (find.get(name)?.queue as number | undefined)
      if (queue === undefined) throw missing()
      numbers.set(name, queue)
      return queue
    },
    begin: () => rows.clear(),
    rowAt(queue: number): QueueRow {
      const loaded = rows.get(queue)
      if (loaded !== undefined) return loaded.row
      const found = read.get(queue) as unknown as QueueRow | undefined
      if (found === undefined) throw missing()
      const row = { ...found }
      rows.set(queue, { row, before: found })
      return row
    },
    save(): void {
      for (const { row, before } of rows.values()) {
        if (COLUMNS.every((column) => row[column] === before[column])) continue
        write.run(...COLUMNS.map((column) => row[column]), row.queue)
      }
    },
  }
}
