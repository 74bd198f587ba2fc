/** The file that keeps the messages of an inspector beyond the process. */

import type { DatabaseSync } from 'node:sqlite'
import type { EndpointHeaders } from '../http/endpoint.ts'
import { isSecretHeader } from '../inbox/envelope.ts'
import { isObject } from '../message/json.ts'
import type { Log } from '../options/log.ts'
import { cannotUse } from '../sqlite/advice.ts'
import { inTransaction } from '../sqlite/file.ts'
import { type OwnFile, openOwn } from '../sqlite/own-file.ts'
import { type Clock, unref } from '../time/clock.ts'
import type { Entry, SavedEntry } from './entry.ts'

const FILE: OwnFile = {
  application: 0x686b_696e, // "hkin"
  version: 1,
  tables: `
  CREATE TABLE messages (
    id INTEGER PRIMARY KEY,
    entry TEXT NOT NULL, -- A SavedEntry as JSON.
    headers TEXT NOT NULL,
    body BLOB NOT NULL
  ) STRICT`,
  writer: 'an inspector',
  pragmas: 'PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ON',
}

/** How long changes wait to be written together, and how long after a failure, in milliseconds. */
const WRITE_MS = 250
const RETRY_MS = 5_000

/** What is read from a file when it is needed. */
export interface Stored {
  readonly headers: EndpointHeaders | undefined
  readonly body: Uint8Array
}

/** A file of entries. Only opening it throws: when the disk fails later, the entries stay in memory, and the log has a line. */
export interface JournalFile {
  /** The entries of earlier processes, the oldest first. */
  load(): Iterable<readonly [id: number, saved: SavedEntry]>
  /** Writes an entry soon. Its body and headers are in the file alone then. */
  changed(entry: Entry): void
  /** Deletes an entry soon. */
  dropped(entry: Entry): void
  /** Reads what is in the file alone; undefined for an entry that is in memory, and for one that cannot be read. */
  read(entry: Entry): Stored | undefined
  /** Writes what waits, and leaves nothing of what is deleted, or tries again. */
  purge(): void
  /** Writes what waits, and closes the file. */
  close(): void
}

/**
 * Opens the file, creating it if it does not exist: for this user and this process alone.
 *
 * @param machine The clock of the machine: a clock that stands still keeps nothing from being written.
 * @throws TypeError for a file that cannot be used.
 */
export function openJournalFile(path: string, log: Log, machine: Clock): JournalFile {
  const database = open(path)
  const insert = database.prepare('INSERT INTO messages (id, entry, headers, body) VALUES (?, ?, ?, ?)')
  const change = database.prepare('UPDATE messages SET entry = ?, headers = coalesce(?, headers) WHERE id = ?')
  const remove = database.prepare('DELETE FROM messages WHERE id = ?')
  const list = database.prepare('SELECT id, entry FROM messages ORDER BY id')
  const find = database.prepare('SELECT headers, body FROM messages WHERE id = ?')
  const waiting = new Set<Entry>()
  const removed = new Set<number>()
  let timer: unknown
  let hasFailed = false
  /** Whether the write-ahead log may still hold what was deleted. */
  let mustPurge = false

  /** Returns undefined when it fails. */
  function attempt<T>(step: () => T): T | undefined {
    try {
      return step()
    } catch (error) {
      const text = `${cannotUse('The inspector', path, error)} Messages are kept in memory meanwhile.`
      if (!hasFailed) log.write({ level: 'error', code: 'inspector_file', text, fields: { path } })
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
        for (const id of removed) remove.run(id)
        for (const entry of waiting) {
          const { id, isStored, headers, body } = entry
          const text = JSON.stringify(entry.save())
          if (isStored) change.run(text, headers === undefined ? null : textOf(headers), id)
          else insert.run(id, text, textOf(headers), body)
        }
      })
      for (const entry of waiting) entry.setStored()
      waiting.clear()
      removed.clear()
      if (mustPurge) database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      mustPurge = false
      return true
    })
    if (isWritten) hasFailed = false
    else schedule(RETRY_MS)
  }

  return {
    *load() {
      for (const { id, entry } of attempt(() => list.all()) ?? []) {
        const saved = readSaved(String(entry))
        if (saved === undefined) removed.add(Number(id))
        else yield [Number(id), saved]
      }
    },
    changed(entry) {
      waiting.add(entry)
      schedule(WRITE_MS)
    },
    dropped(entry) {
      waiting.delete(entry)
      if (entry.isStored) removed.add(entry.id)
      schedule(WRITE_MS)
    },
    read(entry) {
      if (!entry.isStored) return undefined
      return attempt(() => {
        const { headers, body } = find.get(entry.id) as Record<string, unknown>
        return { headers: entry.headers ?? JSON.parse(String(headers)), body: body as Uint8Array }
      })
    },
    purge() {
      mustPurge = true
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

/** Undefined for what no journal wrote. */
function readSaved(text: string): SavedEntry | undefined {
  try {
    const saved: unknown = JSON.parse(text)
    const isSaved = isObject(saved) && typeof saved.part === 'string' && Array.isArray(saved.steps)
    return isSaved ? (saved as unknown as SavedEntry) : undefined
  } catch {
    return undefined
  }
}

/** Of secrets the names alone are written. */
function textOf(headers: Entry['headers'] = {}): string {
  const lines = Object.entries(headers).map(([name, value]) => [name, isSecretHeader(name) ? '' : value])
  return JSON.stringify(Object.fromEntries(lines))
}

function open(path: string): DatabaseSync {
  try {
    return openOwn(path, FILE)
  } catch (error) {
    throw new TypeError(cannotUse('`keep.path`: the inspector', path, error))
  }
}
