/** The store of `hookline listen`: one table in a SQLite file, which other processes can read while it grows. */

import { existsSync, linkSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { DatabaseSync, type SQLOutputValue } from 'node:sqlite'
import type { Command } from 'commander'
import type { KeptRequest, KeptSummary } from './requests/kept-request.ts'
import { UsageError } from './terminal.ts'

/** The maximum number of requests in a store. When it is exceeded, the oldest requests are dropped. */
export const MAX_REQUESTS = 10_000
/** The maximum size of all requests in a store, in bytes. When it is exceeded, the oldest requests are dropped. */
export const MAX_BYTES = 100_000_000

/** The default path of the store. The path is relative to the working directory, so that each project has its own store. */
const DEFAULT_STORE: string = join('.hookline', 'listen.sqlite')

export const REFERENCE = 'an id or its beginning, last for the newest request, or last~1 for the one before it'

export function addStoreOption(command: Command): Command {
  return command.option('--store <file>', 'the file in which `hookline listen` stores requests', DEFAULT_STORE)
}

/** The `application_id` of a store: "hkln" in ASCII. */
export const STORE_ID = 0x686b_6c6e
/** The offset of the `application_id` in every SQLite file, in bytes. */
export const STORE_ID_OFFSET = 68

const VERSION = 2
const TABLE = `CREATE TABLE requests (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  start INTEGER NOT NULL UNIQUE, -- The total of bytes of all earlier requests.
  bytes INTEGER NOT NULL, -- The size of the summary and both bodies.
  summary TEXT NOT NULL, -- A KeptSummary, as JSON.
  body BLOB NOT NULL,
  answer_body BLOB NOT NULL
) STRICT`

/** Opens the store for `listen`, creating the file if it does not exist. Only the current user can read a new file. */
export function createStore(path: string): Store {
  if (!existsSync(path)) attempt(path, () => createFile(path))
  return openStore(path)
}

/** Creates the file under another name, then moves it into place, so that no other process opens an unfinished store. */
function createFile(path: string): void {
  const folder = dirname(path)
  if (path === DEFAULT_STORE && !existsSync(folder)) {
    mkdirSync(folder, { mode: 0o700 })
    writeFileSync(join(folder, '.gitignore'), '*\n', { mode: 0o600 }) // Messages contain personal data, so they must not be committed.
  }
  const draft = resolve(`${path}.${process.pid}`)
  writeFileSync(draft, '', { mode: 0o600 }) // SQLite gives the same mode to the files that it creates alongside.
  const database = new DatabaseSync(draft)
  database.exec(
    `PRAGMA journal_mode = WAL; PRAGMA application_id = ${STORE_ID}; PRAGMA user_version = ${VERSION}; ${TABLE}`,
  )
  database.close()
  try {
    linkSync(draft, path)
  } catch (error) {
    if (!existsSync(path)) throw error // If the file exists, another process created it first.
  } finally {
    rmSync(draft)
  }
}

export type Store = ReturnType<typeof openStore>

/**
 * Opens an existing store. If the file cannot be used, each method throws a UsageError that names the file.
 *
 * @throws UsageError when the file does not exist, or is not a store of `hookline listen`.
 */
export function openStore(path: string) {
  if (!existsSync(path)) {
    throw new UsageError(`The store ${path} does not exist. Run \`hookline listen\` first, or pass --store FILE.`)
  }
  const database = attempt(path, () => connect(path))
  const insert = database.prepare(`INSERT INTO requests (id, start, bytes, summary, body, answer_body)
    VALUES (?, coalesce((SELECT start + bytes FROM requests ORDER BY seq DESC LIMIT 1), 0), ?, ?, ?, ?)`)
  const prune = database.prepare(`DELETE FROM requests WHERE seq <= (SELECT max(seq) FROM requests) - ${MAX_REQUESTS}
    OR start < (SELECT start + bytes FROM requests ORDER BY seq DESC LIMIT 1) - ${MAX_BYTES}`)
  const listed = database.prepare(`SELECT summary FROM requests
    WHERE :type IS NULL OR summary ->> '$.message.type' = :type ORDER BY seq DESC LIMIT :limit`)
  const newest = database.prepare('SELECT * FROM requests ORDER BY seq DESC LIMIT 1 OFFSET ?')
  const named = database.prepare("SELECT * FROM requests WHERE id >= :start AND id < :start || 'g' LIMIT 2")
  const latest = database.prepare('SELECT * FROM requests WHERE seq > (SELECT max(seq) FROM requests) - ? ORDER BY seq')

  return {
    append({ body, answerBody, ...summary }: KeptRequest): void {
      const text = JSON.stringify(summary)
      const bytes = text.length + body.length + answerBody.length
      attempt(path, () => insert.run(summary.id, bytes, text, body, answerBody) && prune.run())
    },
    /** Lists the newest requests in order of arrival. */
    list(limit: number, type: string | null = null): readonly KeptSummary[] {
      return attempt(path, () => listed.all({ limit, type }).map(readSummary).reverse())
    },
    /**
     * Finds the request that a reference names. {@link REFERENCE} describes the form of references.
     *
     * @throws UsageError for an invalid reference, and when no request or more than one request matches.
     */
    get(reference: string): KeptRequest {
      const [last, back = 0] = /^last(?:~(\d{1,6}))?$/.exec(reference) ?? []
      const start = reference.toLowerCase()
      if (!last && !/^[0-9a-f]{1,12}$/.test(start)) throw unknown(reference, 'an id consists of hexadecimal digits')
      const [row, another] = attempt(path, () => (last ? newest.all(Number(back)) : named.all({ start })))
      if (row === undefined) throw unknown(reference, 'no such request is stored')
      if (another !== undefined) throw unknown(reference, 'several ids begin with it')
      return attempt(path, () => readRequest(row))
    },
    /** Reads the newest requests in order of arrival, one at a time, because a body may be large. */
    *readNewest(limit: number = MAX_REQUESTS): Generator<KeptRequest> {
      try {
        for (const row of latest.iterate(limit)) yield readRequest(row)
      } catch (error) {
        throw unusable(path, error)
      }
    },
    close: (): void => void (database.isOpen && database.close()),
  }
}

/** Opens a database file that `listen` wrote. Never changes any other file. */
function connect(path: string): DatabaseSync {
  const database = new DatabaseSync(resolve(path), { timeout: 5_000 })
  database.exec('PRAGMA synchronous = NORMAL')
  const { id, version, tables } = database.prepare(IDENTITY).get() ?? {}
  if (id === STORE_ID && version === VERSION && tables === TABLE) return database
  database.close()
  const found =
    id !== STORE_ID ? 'is another database' : version === VERSION ? 'has other tables' : `has version ${version}`
  const rule = `The file must be a store of \`hookline listen\`, version ${VERSION}, but it ${found}.`
  const other = id === STORE_ID ? ', or use the version of Hookline that wrote this file' : ''
  throw new Error(`${rule} Pass the path of a new file${other}.`)
}

const IDENTITY = `
  SELECT application_id AS id, user_version AS version, (SELECT group_concat(sql) FROM sqlite_schema) AS tables
  FROM pragma_application_id, pragma_user_version`

type Row = Record<string, SQLOutputValue>

function readRequest(row: Row): KeptRequest {
  return { ...readSummary(row), body: row.body as Uint8Array, answerBody: row.answer_body as Uint8Array }
}

/** Parses a row. The file may be untrusted, so this function checks the fields that are printed unescaped. */
function readSummary({ summary: text }: Row): KeptSummary {
  try {
    const summary: KeptSummary = JSON.parse(String(text))
    const { id, receivedAt, size, answer } = summary
    const numbers = [receivedAt, size, answer.durationMs, answer.status ?? 0]
    if (/^[0-9a-f]{12}$/.test(id) && numbers.every(Number.isFinite)) return summary
  } catch {}
  throw new Error('A stored request is damaged. Pass the path of a new file.')
}

function unknown(reference: string, found: string): UsageError {
  return new UsageError(`'${reference}' must name one stored request: ${found}. Run \`hookline list\` to see the ids.`)
}

function attempt<T>(path: string, step: () => T): T {
  try {
    return step()
  } catch (error) {
    throw unusable(path, error)
  }
}

/** Returns the error for a file that cannot be used. Adds advice to errors from SQLite and the file system, which have a code. */
function unusable(path: string, error: unknown): UsageError {
  const { code, message } = error as NodeJS.ErrnoException
  return new UsageError(
    code === undefined
      ? `The store ${path} cannot be used. ${message}`
      : `The store ${path} cannot be opened, read or written: ${message}. Stop other programs that use it, or pass another path.`,
  )
}
