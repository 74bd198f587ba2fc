/** The SQLite file in which `hookline listen` keeps requests. */

import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import type { Command } from 'commander'
import { cannotUse } from '../../sqlite/advice.ts'
import { OPENING_MS, UnusableFile } from '../../sqlite/file.ts'
import { connectToOwn, isOwn, type OwnFile, openOwn } from '../../sqlite/own-file.ts'
import { UsageError } from '../terminal.ts'
import type { KeptRequest, KeptSummary } from './kept.ts'

/** The oldest requests are dropped past either of these. */
export const MOST_REQUESTS = 10_000
export const MOST_BYTES = 100_000_000

/** How many requests, or bytes, are added before the oldest are dropped. */
const REQUESTS_A_PRUNING = 500
const BYTES_A_PRUNING = 5_000_000

/** In the working directory, so that each project has its own. */
const DEFAULT_STORE: string = join('.hookline', 'listen.sqlite')

const FILE: OwnFile = {
  application: 0x686b_6c6e, // "hkln"
  version: 1,
  tables: `
  CREATE TABLE requests (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    type TEXT,
    bytes INTEGER NOT NULL, -- Of the summary and both bodies.
    summary TEXT NOT NULL, -- A KeptSummary as JSON.
    body BLOB NOT NULL,
    answer_body BLOB NOT NULL
  ) STRICT;
  CREATE INDEX requests_bytes ON requests (seq, bytes)`,
  writer: '`hookline listen`',
  pragmas: 'PRAGMA synchronous = NORMAL',
}

/** Kept requests. Each method throws a UsageError that names the file when it cannot be used. */
export interface Store {
  /** Adds a request, and drops the oldest kept ones when they are too many. */
  add(request: KeptRequest): void
  /** The newest, the oldest of them first. */
  list(most: number, type?: string): readonly KeptSummary[]
  /**
   * Finds one request.
   *
   * @param reference An id, the beginning of one, `last`, or `last~1` for the one before it.
   * @throws UsageError when it names none, or several.
   */
  find(reference: string): KeptRequest
  close(): void
}

/**
 * Opens the store for `listen`, creating it if it does not exist: for this user alone.
 *
 * @throws UsageError for a file that cannot be used.
 */
export function createStore(path: string): Store {
  return attempt(path, () => {
    if (path === DEFAULT_STORE) createFolder(dirname(path))
    return useStore(path, openOwn(path, FILE))
  })
}

/**
 * Opens a store that exists.
 *
 * @throws UsageError when it does not, and for a file that cannot be used.
 */
export function openStore(path: string): Store {
  if (!existsSync(path)) {
    throw new UsageError(
      `No requests are kept in ${path}: it does not exist. Run \`hookline listen\` first, or pass --store FILE.`,
    )
  }
  return attempt(path, () => {
    const database = connectToOwn(path, FILE)
    if (isOwn(database, FILE)) return useStore(path, database)
    database.close()
    throw new UnusableFile('it is empty. Got no table. Run `hookline listen` first, or pass --store FILE.')
  })
}

/** How a kept request is named, for the help. */
export const REFERENCE = 'an id, the beginning of one, last, or last~1 for the one before it'

/** Adds `--store`. */
export function addStoreOption(command: Command): Command {
  return command.option('--store <file>', 'where `hookline listen` keeps requests', DEFAULT_STORE)
}

/** Uses a database that has the table. */
function useStore(path: string, database: DatabaseSync): Store {
  database.exec(`PRAGMA busy_timeout = ${OPENING_MS}`)
  const insert = database.prepare(`
    INSERT INTO requests (id, type, bytes, summary, body, answer_body) VALUES (?, ?, ?, ?, ?, ?)`)
  const prune = database.prepare(`
    DELETE FROM requests WHERE seq <= (
      SELECT max(seq) FROM (
        SELECT seq, row_number() OVER newest AS count, sum(bytes) OVER newest AS total FROM requests
        WINDOW newest AS (ORDER BY seq DESC)
      ) WHERE count > ${MOST_REQUESTS} OR total > ${MOST_BYTES})`)
  const listed = database.prepare(`
    SELECT summary FROM (SELECT seq, summary FROM requests WHERE :type IS NULL OR type = :type ORDER BY seq DESC LIMIT :most)
    ORDER BY seq`)
  const newest = database.prepare('SELECT * FROM requests ORDER BY seq DESC LIMIT 1 OFFSET ?')
  const named = database.prepare("SELECT * FROM requests WHERE id >= :start AND id < :start || 'g' LIMIT 2")
  let [added, bytes] = [REQUESTS_A_PRUNING, 0] // Prunes at the first requests: an earlier process may have added some.

  return {
    add: ({ body, answerBody, ...summary }) =>
      attempt(path, () => {
        const text = JSON.stringify(summary)
        const size = text.length + body.length + answerBody.length
        insert.run(summary.id, summary.message.type ?? null, size, text, body, answerBody)
        added += 1
        bytes += size
        if (added < REQUESTS_A_PRUNING && bytes < BYTES_A_PRUNING) return
        prune.run()
        ;[added, bytes] = [0, 0]
      }),
    list: (most, type) =>
      attempt(path, () => listed.all({ most, type: type ?? null }).map(({ summary }) => readSummary(summary))),
    find: (reference) => attempt(path, () => find(reference)),
    close() {
      if (database.isOpen) database.close()
    },
  }

  function find(reference: string): KeptRequest {
    const position = /^last(?:~(\d{1,6}))?$/.exec(reference)
    const start = reference.toLowerCase()
    if (!position && !/^[0-9a-f]{1,12}$/.test(start)) throw unknown(reference, 'an id has hexadecimal digits')
    const [row, another] = position ? newest.all(Number(position[1] ?? 0)) : named.all({ start })
    if (row === undefined) throw unknown(reference, 'no such request is kept')
    if (another !== undefined) throw unknown(reference, 'several ids begin with that')
    return { ...readSummary(row.summary), body: row.body as Uint8Array, answerBody: row.answer_body as Uint8Array }
  }
}

function unknown(reference: string, found: string): UsageError {
  return new UsageError(`'${reference}' must name one kept request: ${found}. See \`hookline list\`.`)
}

/** The file may be of strangers: what is printed as it is has the form that `listen` gives it. */
function readSummary(text: unknown): KeptSummary {
  try {
    const summary: KeptSummary = JSON.parse(String(text))
    const { id, receivedAt, size, answer } = summary
    const numbers = [receivedAt, size, answer.durationMs, answer.status ?? 0]
    if (/^[0-9a-f]{12}$/.test(id) && numbers.every(Number.isFinite)) return summary
  } catch {}
  throw new UnusableFile(
    'a request in it is damaged. Got other fields than `listen` writes. Pass the path of a new file.',
  )
}

function createFolder(folder: string): void {
  if (existsSync(folder)) return
  mkdirSync(folder, { mode: 0o700 })
  writeFileSync(join(folder, '.gitignore'), '*\n') // Messages hold personal data.
}

function attempt<T>(path: string, step: () => T): T {
  try {
    return step()
  } catch (error) {
    if (error instanceof UsageError) throw error
    const { code, message } = error as NodeJS.ErrnoException
    const isOfFiles = typeof code === 'string' && code !== 'ERR_SQLITE_ERROR'
    throw new UsageError(isOfFiles ? `--store: ${path} cannot be used: ${message}.` : cannotUse('--store', path, error))
  }
}
