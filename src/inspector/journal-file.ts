/** The file that keeps the messages of an inspector beyond the process. */

import type { DatabaseSync } from 'node:sqlite'
import { isSecretHeader } from '../inbox/envelope.ts'
import { isObject } from '../message/json.ts'
import type { Log } from '../options/log.ts'
import { cannotUse } from '../sqlite/advice.ts'
import { inTransaction } from '../sqlite/file.ts'
import { type OwnFile, openOwn } from '../sqlite/own-file.ts'
import { type Clock, unref } from '../time/clock.ts'
import type { LoggedMessage } from './logged-message.ts'

const FILE: OwnFile = {
  application: 0x686b_696e, // "hkin"
  version: 2,
  tables: `
  CREATE TABLE messages (
    id INTEGER PRIMARY KEY,
    fields TEXT NOT NULL, -- A LoggedMessage without its body, as JSON.
    body BLOB NOT NULL
  ) STRICT`,
  writer: 'an inspector',
  pragmas: 'PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ON',
}

/** How long changes wait to be written together, and how long after a failure, in milliseconds. */
const WRITE_MS = 250
const RETRY_MS = 5_000

/** A file of messages. Only opening it throws: when the disk fails later, the messages stay in memory, and the log has a line. */
export interface JournalFile {
  /** The messages of earlier processes, the oldest first. */
  load(): Iterable<LoggedMessage>
  /** Writes a message soon. */
  changed(logged: LoggedMessage): void
  /** Deletes a message soon. */
  dropped(logged: LoggedMessage): void
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
  const put = database.prepare('INSERT OR REPLACE INTO messages (id, fields, body) VALUES (?, ?, ?)')
  const remove = database.prepare('DELETE FROM messages WHERE id = ?')
  const list = database.prepare('SELECT id, fields, body FROM messages ORDER BY id')
  const changed = new Set<LoggedMessage>()
  const dropped = new Set<number>()
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
        for (const id of dropped) remove.run(id)
        for (const logged of changed) put.run(logged.id, fieldsOf(logged), logged.body)
      })
      changed.clear()
      dropped.clear()
      if (mustPurge) database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      mustPurge = false
      return true
    })
    if (isWritten) hasFailed = false
    else schedule(RETRY_MS)
  }

  return {
    *load() {
      for (const row of attempt(() => list.all()) ?? []) {
        const logged = readLogged(row)
        if (logged === undefined) dropped.add(Number(row.id))
        else yield logged
      }
    },
    changed(logged) {
      changed.add(logged)
      schedule(WRITE_MS)
    },
    dropped(logged) {
      changed.delete(logged)
      dropped.add(logged.id)
      schedule(WRITE_MS)
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
function readLogged({ id, fields, body }: Record<string, unknown>): LoggedMessage | undefined {
  try {
    const logged: unknown = JSON.parse(String(fields))
    const isLogged = isObject(logged) && typeof logged.part === 'string' && Array.isArray(logged.steps)
    return isLogged ? ({ ...logged, id, body } as unknown as LoggedMessage) : undefined
  } catch {
    return undefined
  }
}

/** Of secret headers the names alone are written. */
function fieldsOf({ body, headers, ...fields }: LoggedMessage): string {
  const lines = Object.entries(headers).map(([name, value]) => [name, isSecretHeader(name) ? '' : value])
  return JSON.stringify({ ...fields, headers: Object.fromEntries(lines) })
}

function open(path: string): DatabaseSync {
  try {
    return openOwn(path, FILE)
  } catch (error) {
    throw new TypeError(cannotUse('`keep.path`: the inspector', path, error))
  }
}
