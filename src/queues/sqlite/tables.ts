/** The tables of a file of queues, and the rows of its queues: their counts, their next numbers and their uses. */

import type { DatabaseSync } from 'node:sqlite'
import {
  hasTables,
  inTransaction,
  OPENING_MS,
  openSqlite,
  prepareTables,
  retryWhileBusy,
  type Tables,
  UnusableFile,
} from '../../sqlite/file.ts'
import { listNames, servesOther } from '../use.ts'
import type { QueueSettings } from './thread-messages.ts'

/** In each group, one job is `due`, `claimed` or `held`; the others that are due are `behind` it. A `held` job waits for its retry. */
export const PHASE = { due: 0, later: 1, claimed: 2, deadLetter: 3, behind: 4, held: 5 } as const
/** Those that have a time. */
export const IS_LATER = `phase IN (${PHASE.later}, ${PHASE.held})`

/** How many numbers a queue has for its jobs and their places. The `seq` of a job is `queue * NUMBERS` plus its number. */
export const NUMBERS: number = 2 ** 40

const TABLES: Tables = {
  name: 'hookline_queue',
  version: 4,
  sql: `
    CREATE TABLE hookline_queues (
      queue INTEGER PRIMARY KEY,
      name TEXT NOT NULL UNIQUE,
      use TEXT, -- What the queue is reserved for.
      next INTEGER NOT NULL, -- The next number: of a job, or of a place.
      waiting INTEGER NOT NULL,
      active INTEGER NOT NULL,
      dead_letters INTEGER NOT NULL,
      history_bytes INTEGER NOT NULL -- Of the bodies in the history.
    ) STRICT;
    CREATE TABLE hookline_queue_jobs (
      seq INTEGER PRIMARY KEY,
      queue INTEGER NOT NULL,
      id BLOB NOT NULL,
      in_group INTEGER, -- A digest of the name of its group.
      line INTEGER, -- The same while the job stands in the line of its group: while it is due, claimed, held or behind another.
      phase INTEGER NOT NULL CHECK (phase BETWEEN 0 AND 5), -- See PHASE.
      place INTEGER NOT NULL, -- The order of the due jobs, and of the dead letters.
      due_at INTEGER NOT NULL CHECK (abs(due_at) <= 8640000000000000), -- As a Date holds it. Of a dead letter: when it failed.
      claim_count INTEGER NOT NULL CHECK (abs(claim_count) < 1 << 53),
      first_at INTEGER CHECK (abs(first_at) <= 8640000000000000),
      owner INTEGER, -- Of a claimed job: the process that claimed it, see owners.ts.
      claim INTEGER, -- Of a claimed job: which claim of its owner.
      retry_state BLOB,
      reason BLOB
    ) STRICT;
    CREATE INDEX hookline_queue_due ON hookline_queue_jobs (queue, place) WHERE phase = ${PHASE.due};
    CREATE INDEX hookline_queue_later ON hookline_queue_jobs (queue, due_at, seq) WHERE ${IS_LATER};
    CREATE INDEX hookline_queue_claimed ON hookline_queue_jobs (queue, owner, claim) WHERE phase = ${PHASE.claimed};
    CREATE INDEX hookline_queue_dead ON hookline_queue_jobs (queue, place) WHERE phase = ${PHASE.deadLetter};
    CREATE INDEX hookline_queue_groups ON hookline_queue_jobs (queue, line, place) WHERE line IS NOT NULL; -- No claim changes it.
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
    CREATE TABLE hookline_queue_completed (seq INTEGER PRIMARY KEY, id BLOB NOT NULL, completed_at INTEGER NOT NULL) STRICT;
    -- Of these, those that are kept: their bodies stay.
    CREATE TABLE hookline_queue_history (
      queue INTEGER NOT NULL,
      handled_at INTEGER NOT NULL,
      seq INTEGER NOT NULL,
      in_group INTEGER,
      bytes INTEGER NOT NULL,
      kept BLOB NOT NULL,
      PRIMARY KEY (queue, handled_at, seq)
    ) WITHOUT ROWID, STRICT;
    CREATE TABLE hookline_queue_notes (
      queue INTEGER NOT NULL,
      name TEXT NOT NULL,
      text TEXT NOT NULL,
      PRIMARY KEY (queue, name)
    ) WITHOUT ROWID, STRICT`,
}

/** Checkpoints are rare and long, so that few pushes wait for one. Without `fullfsync`, macOS leaves writes in the cache of the disk. */
const PRAGMAS =
  'PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA secure_delete = ON; PRAGMA cache_size = -32000; PRAGMA wal_autocheckpoint = 8000'

export interface OpenTables {
  readonly database: DatabaseSync
  readonly path: string
  readonly owner: number
  readonly queues: Queues
}

export function openFile(path: string): DatabaseSync {
  return openSqlite(path, (database) => {
    database.exec(PRAGMAS)
    inTransaction(database, () => prepareTables(database, TABLES))
  })
}

export function prepareObserver(database: DatabaseSync): void {
  database.exec(PRAGMAS)
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
  historyBytes: number
}

type Reservation = Pick<QueueSettings, 'name' | 'use'>

export function enterFile(path: string, reservation: Reservation): void {
  const database = openFile(path)
  try {
    retryWhileBusy(() => createQueues(database).enter([reservation]), OPENING_MS)
  } finally {
    database.close()
  }
}

type Queues = ReturnType<typeof createQueues>

export function createQueues(database: DatabaseSync) {
  const reserve = database.prepare(`
    INSERT INTO hookline_queues (name, use, next, waiting, active, dead_letters, history_bytes) VALUES (?, ?, 1, 0, 0, 0, 0)
    ON CONFLICT (name) DO UPDATE SET use = coalesce(use, excluded.use) RETURNING use`)
  const find = database.prepare('SELECT queue FROM hookline_queues WHERE name = ?')
  const read = database.prepare(`
    SELECT queue, next, waiting, active, dead_letters AS deadLetters, history_bytes AS historyBytes
    FROM hookline_queues WHERE queue = ?`)
  const write = database.prepare(`
    UPDATE hookline_queues SET next = ?, waiting = ?, active = ?, dead_letters = ?, history_bytes = ? WHERE queue = ?`)
  const entered = new Set<string>()
  const numbers = new Map<string, number>()
  const rows = new Map<number, { readonly row: QueueRow; readonly before: string }>()

  function names(): string[] {
    const list = database.prepare('SELECT name FROM hookline_queues ORDER BY queue')
    return list.all().map(({ name }) => `${name}`)
  }

  function missing(): UnusableFile {
    const advice = 'Check the name, or start what pushes to it first.'
    return new UnusableFile(`it does not have this queue. Got ${listNames(names())}. ${advice}`)
  }

  return {
    enter(reservations: readonly Reservation[]): void {
      const keyOf = ({ name, use }: Reservation): string => `${use} ${name}`
      const added = reservations.filter((each) => !entered.has(keyOf(each)))
      if (added.length === 0) return
      inTransaction(database, () => {
        for (const { name, use } of added) {
          const found = reserve.get(name, use ?? null)?.use
          if (use !== undefined && found !== use) throw servesOther(name, `${found}`, use)
        }
      })
      for (const each of added) entered.add(keyOf(each))
    },
    /** In the transaction that is open, and for it alone. Returns the number of the queue. */
    enterHere({ name, use }: Reservation): number {
      const found = reserve.get(name, use ?? null)?.use
      if (use !== undefined && found !== use) throw servesOther(name, `${found}`, use)
      return find.get(name)?.queue as number
    },
    names,
    numberOf(name: string): number {
      const queue = numbers.get(name) ?? (find.get(name)?.queue as number | undefined)
      if (queue === undefined) throw missing()
      numbers.set(name, queue)
      return queue
    },
    rowAt(queue: number): QueueRow {
      const loaded = rows.get(queue)
      if (loaded !== undefined) return loaded.row
      const found = read.get(queue)
      if (found === undefined) throw missing()
      const row = { ...found } as unknown as QueueRow
      rows.set(queue, { row, before: JSON.stringify(row) })
      return row
    },
    /** Begins a transaction: another process may have changed the rows. */
    begin: () => rows.clear(),
    save(): void {
      for (const { row, before } of rows.values()) {
        if (JSON.stringify(row) === before) continue
        write.run(row.next, row.waiting, row.active, row.deadLetters, row.historyBytes, row.queue)
      }
    },
  }
}

export function bytesOfId(id: string): Buffer {
  return Buffer.from(id.replaceAll('-', ''), 'hex')
}

export function textOfId(bytes: unknown): string | undefined {
  if (!(bytes instanceof Uint8Array) || bytes.byteLength !== 16) return undefined
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, 16).toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

export const NO_ID = '00000000-0000-0000-0000-000000000000'
