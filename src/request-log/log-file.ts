/** The SQLite file of a request log: one table, written soon after each change. */

import { isObject } from '../message/json.ts'
import { inTransaction } from '../sqlite/file.ts'
import { openOwn } from '../sqlite/own-file.ts'
import { type Clock, unref } from '../time/clock.ts'

/** An entry of a log: its owner adds fields, and changes them. All but the body must survive JSON. */
export interface LogEntry {
  readonly id: number
  readonly body: Uint8Array
  /** Whether strangers may have sent it: it pushes out only such entries. */
  readonly isRefused?: boolean
}

export interface LogFileOptions<Entry extends LogEntry> {
  readonly application: number
  readonly writer: string
  /** An entry as it is written: without what must not be in a file. */
  readonly toStored: (entry: Entry) => Entry
  readonly isEntry: (fields: Readonly<Record<string, unknown>>) => boolean
  /** Receives the first error when the file cannot be written or read: entries are kept in memory meanwhile. */
  readonly onFailure: (error: unknown) => void
  /** The clock of the machine: a clock that stands still keeps nothing from being written. */
  readonly machine: Clock
}

/** A file of entries. After it was opened nothing throws: a write that fails is tried again. */
export interface LogFile<Entry extends LogEntry> {
  load(): Iterable<Entry>
  put(entry: Entry): void
  drop(entry: Entry): void
  /** Writes now. @param how `leavesNothing`: of what is deleted, in the files beside it either. */
  write(how?: { readonly leavesNothing: boolean }): void
  close(): void
}

const TABLE = `
  CREATE TABLE messages (
    id INTEGER PRIMARY KEY,
    fields TEXT NOT NULL, -- All but the body, as JSON.
    body BLOB NOT NULL
  ) STRICT`
const PRAGMAS = 'PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ON'
const VERSION = 2

/** How long changes wait to be written together, and how long after a failure, in milliseconds. */
const WRITE_MS = 250
const RETRY_MS = 5_000

/**
 * Opens the file, creating it if it does not exist: for this user and this process alone.
 *
 * @throws Error of SQLite, or UnusableFile.
 */
export function openLogFile<Entry extends LogEntry>(path: string, options: LogFileOptions<Entry>): LogFile<Entry> {
  const { application, writer, toStored, isEntry, onFailure, machine } = options
  const database = openOwn(path, { application, version: VERSION, tables: TABLE, writer, pragmas: PRAGMAS })
  const list = database.prepare('SELECT id, fields, body FROM messages ORDER BY id')
  const put = database.prepare('INSERT OR REPLACE INTO messages (id, fields, body) VALUES (?, ?, ?)')
  const remove = database.prepare('DELETE FROM messages WHERE id = ?')
  const changed = new Set<Entry>()
  const dropped = new Set<number>()
  let timer: unknown
  let hasFailed = false
  /** Whether the write-ahead log may still hold what was deleted. */
  let mustTruncate = false

  /** Returns undefined when it fails. */
  function attempt<T>(step: () => T): T | undefined {
    try {
      return step()
    } catch (error) {
      if (!hasFailed) onFailure(error)
      hasFailed = true
      return undefined
    }
  }

  function schedule(ms: number): void {
    if (database.isOpen) timer ??= unref(machine.setTimeout(write, ms))
  }

  function write(): void {
    machine.clearTimeout(timer)
    timer = undefined
    const isWritten = attempt(() => {
      inTransaction(database, () => {
        for (const id of dropped) remove.run(id)
        for (const entry of changed) {
          const { id, body, ...fields } = toStored(entry)
          put.run(id, JSON.stringify(fields), body)
        }
      })
      changed.clear()
      dropped.clear()
      if (mustTruncate) database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      mustTruncate = false
      return true
    })
    if (isWritten) hasFailed = false
    else schedule(RETRY_MS)
  }

  return {
    *load() {
      for (const { id, fields, body } of attempt(() => list.all()) ?? []) {
        const read = readFields(fields)
        if (read !== undefined && isEntry(read)) yield { ...read, id, body } as unknown as Entry
        else dropped.add(Number(id))
      }
    },
    put(entry) {
      changed.add(entry)
      schedule(WRITE_MS)
    },
    drop(entry) {
      changed.delete(entry)
      dropped.add(entry.id)
      schedule(WRITE_MS)
    },
    write({ leavesNothing } = { leavesNothing: false }) {
      mustTruncate ||= leavesNothing
      write()
    },
    close() {
      if (!database.isOpen) return
      write()
      machine.clearTimeout(timer)
      database.close()
    },
  }
}

/** Undefined for what is no object of JSON. */
function readFields(text: unknown): Readonly<Record<string, unknown>> | undefined {
  try {
    const fields: unknown = JSON.parse(String(text))
    return isObject(fields) ? fields : undefined
  } catch {
    return undefined
  }
}
