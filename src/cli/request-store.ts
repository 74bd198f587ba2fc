/** Requests as `hookline listen` keeps them, and the SQLite file in which it does. */

import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import type { Command } from 'commander'
import { isObject, parseJson } from '../message/json.ts'
import { checkMessage } from '../message/parse.ts'
import { cannotUse } from '../sqlite/advice.ts'
import { connectTo, OPENING_MS, retryWhileBusy, UnusableFile } from '../sqlite/file.ts'
import { connectToOwn, isOwn, type OwnFile, openOwn } from '../sqlite/own-file.ts'
import { UsageError } from './terminal.ts'

/** All but the bytes. */
export interface KeptSummary {
  /** 12 hexadecimal digits. */
  readonly id: string
  /** In milliseconds since the epoch. */
  readonly receivedAt: number
  readonly method: string
  readonly target: string
  /** Names and values in turns, as they came. */
  readonly headers: readonly string[]
  /** How many bytes of the body came. More than are kept when it was over the limit. */
  readonly size: number
  readonly isComplete: boolean
  readonly message: MessageFields
  /** `unchecked`: no secret was passed. */
  readonly verification: 'verified' | 'mismatched' | 'unchecked'
  /** Why it does not match, in a sentence or two. */
  readonly reason?: string | undefined
  readonly answer: KeptAnswer
}

/** A request with its exact bytes, and the beginning of the body that it was answered with. */
export interface KeptRequest extends KeptSummary {
  readonly body: Uint8Array
  readonly answerBody: Uint8Array
}

/** What a line shows of a message. Strangers wrote it: escape it. */
export interface MessageFields {
  readonly type?: string | undefined
  readonly name?: string | undefined
  readonly user?: string | undefined
  /** Why the body is no message; undefined for a message, and for no body. */
  readonly fault?: string | undefined
}

export interface KeptAnswer {
  /** Undefined when it was not answered. */
  readonly status?: number | undefined
  /** Names and values in turns. */
  readonly headers: readonly string[]
  readonly by: 'listen' | 'script' | 'forward'
  readonly durationMs: number
  /** Why there was no answer, or no normal one. It may quote a server: escape it. */
  readonly note?: string | undefined
}

/** How many digits of an id a line shows. */
export const SHOWN_DIGITS = 8

export const BODY_LIMIT = 5_000_000

export function pairsOf(headers: readonly string[]): (readonly [name: string, value: string])[] {
  return headers.flatMap((name, at) => (at % 2 === 0 ? [[name, headers[at + 1] ?? ''] as const] : []))
}

/** The values of headers by their names in lower case. */
export function groupHeaders(headers: readonly string[]): Map<string, string[]> {
  const byName = Map.groupBy(pairsOf(headers), ([name]) => name.toLowerCase())
  return new Map([...byName].map(([name, pairs]) => [name, pairs.map(([, value]) => value)]))
}

/** The value of a header, by its name in lower case: the values of repeated ones together; undefined when it is missing. */
export function headerOf(headers: readonly string[], name: string): string | undefined {
  return groupHeaders(headers).get(name)?.join(', ')
}

const MAX_FIELD_LENGTH = 200

/** Reads the fields. Never throws. */
export function readFields(body: Uint8Array): MessageFields {
  if (body.length === 0) return {}
  let fields: MessageFields = {}
  try {
    const json = parseJson(body)
    if (Array.isArray(json)) return { type: `batch of ${json.length}` }
    if (!isObject(json)) return { fault: 'The body must be a JSON object.' }
    const { type, event, groupId, name, userId = json['User ID'], anonymousId } = json
    fields = { type: text(type), name: text(event ?? groupId ?? name), user: text(userId ?? anonymousId) }
    checkMessage(json)
    return fields
  } catch (error) {
    const [rule = '', found = ''] = (error as Error).message.split(/(?<=\.) /)
    return { ...fields, fault: `${rule} ${found}` }
  }
}

function text(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined
  return (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, MAX_FIELD_LENGTH)
}

export const MAX_REQUESTS = 10_000
export const MAX_BYTES = 100_000_000

/** How many requests, or bytes, are added before the oldest are dropped. */
const REQUESTS_A_PRUNING = 500
const BYTES_A_PRUNING = 5_000_000

/** In the working directory, so that each project has its own. */
const DEFAULT_STORE: string = join('.hookline', 'listen.sqlite')

export const REFERENCE = 'an id, the beginning of one, last, or last~1 for the one before it'

export function addStoreOption(command: Command): Command {
  return command.option('--store <file>', 'where `hookline listen` keeps requests', DEFAULT_STORE)
}

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

/** Kept requests. Processes share the file. Each method throws a UsageError that names the file when it cannot be used. */
export interface Store {
  /** Adds a request, and drops the oldest kept ones when they are too many. */
  add(request: KeptRequest): void
  /** Adds the reason to a request that is kept already. */
  addReason(request: KeptSummary): void
  list(limit: number, type?: string): readonly KeptSummary[]
  /**
   * Finds one request by what {@link REFERENCE} says.
   *
   * @throws UsageError when it names none, or several.
   */
  find(reference: string): KeptRequest
  /** Reads all of them, the oldest first, one at a time: a body may be large. */
  all(): Iterable<Omit<KeptRequest, 'answerBody'>>
  close(): void
}

/**
 * Opens the store for `listen`, creating it if it does not exist: for this user alone.
 *
 * @throws UsageError for a file that cannot be used.
 */
export function createStore(path: string): Store {
  return attempt('--store', path, () => {
    const folder = dirname(path)
    if (path === DEFAULT_STORE && !existsSync(folder)) {
      mkdirSync(folder, { mode: 0o700 })
      writeFileSync(join(folder, '.gitignore'), '*\n', { mode: 0o600 }) // Messages hold personal data.
    }
    return useStore('--store', path, openOwn(path, FILE))
  })
}

/** Whether a SQLite file is a store. */
export function isStore(path: string, option: string): boolean {
  return attempt(option, path, () => {
    const database = connectTo(path)
    try {
      const read = (): unknown => database.prepare('PRAGMA application_id').get()?.application_id
      return retryWhileBusy(read, OPENING_MS) === FILE.application
    } finally {
      database.close()
    }
  })
}

/**
 * Opens a store that exists.
 *
 * @param option What the user passed the path as.
 * @throws UsageError when it does not, and for a file that cannot be used.
 */
export function openStore(path: string, option = '--store'): Store {
  if (!existsSync(path)) {
    throw new UsageError(
      `No requests are kept in ${path}: it does not exist. Run \`hookline listen\` first, or pass --store FILE.`,
    )
  }
  return attempt(option, path, () => {
    const database = connectToOwn(path, FILE)
    if (isOwn(database, FILE)) return useStore(option, path, database)
    database.close()
    throw new UnusableFile('it is empty. Got no table. Run `hookline listen` first, or pass --store FILE.')
  })
}

export function findRequests(path: string, references: readonly string[]): readonly KeptRequest[] {
  const store = openStore(path)
  try {
    return references.map((reference) => store.find(reference))
  } finally {
    store.close()
  }
}

function useStore(option: string, path: string, database: DatabaseSync): Store {
  database.exec(`PRAGMA busy_timeout = ${OPENING_MS}`)
  const insert = database.prepare(`
    INSERT INTO requests (id, type, bytes, summary, body, answer_body) VALUES (?, ?, ?, ?, ?, ?)`)
  const explain = database.prepare(
    "UPDATE requests SET summary = json_set(summary, '$.reason', :reason) WHERE id = :id",
  )
  const prune = database.prepare(`
    DELETE FROM requests WHERE seq <= (
      SELECT max(seq) FROM (
        SELECT seq, row_number() OVER newest AS count, sum(bytes) OVER newest AS total FROM requests
        WINDOW newest AS (ORDER BY seq DESC)
      ) WHERE count > ${MAX_REQUESTS} OR total > ${MAX_BYTES})`)
  const listed = database.prepare(`
    SELECT summary FROM (SELECT seq, summary FROM requests WHERE :type IS NULL OR type = :type ORDER BY seq DESC LIMIT :limit)
    ORDER BY seq`)
  const newest = database.prepare('SELECT * FROM requests ORDER BY seq DESC LIMIT 1 OFFSET ?')
  const next = database.prepare('SELECT seq, summary, body FROM requests WHERE seq > ? ORDER BY seq LIMIT 1')
  const named = database.prepare("SELECT * FROM requests WHERE id >= :start AND id < :start || 'g' LIMIT 2")
  let [added, bytes] = [REQUESTS_A_PRUNING, 0] // Prunes at the first requests: an earlier process may have added some.

  return {
    add: ({ body, answerBody, ...summary }) =>
      attempt(option, path, () => {
        const text = JSON.stringify(summary)
        const size = text.length + body.length + answerBody.length
        insert.run(summary.id, summary.message.type ?? null, size, text, body, answerBody)
        added += 1
        bytes += size
        if (added < REQUESTS_A_PRUNING && bytes < BYTES_A_PRUNING) return
        prune.run()
        ;[added, bytes] = [0, 0]
      }),
    addReason: ({ id, reason = '' }) => attempt(option, path, () => void explain.run({ id, reason })),
    list: (limit, type) =>
      attempt(option, path, () => listed.all({ limit, type: type ?? null }).map(({ summary }) => readSummary(summary))),
    find: (reference) =>
      attempt(option, path, () => {
        const position = /^last(?:~(\d{1,6}))?$/.exec(reference)
        const start = reference.toLowerCase()
        if (!position && !/^[0-9a-f]{1,12}$/.test(start)) throw unknown(reference, 'an id has hexadecimal digits')
        const [row, another] = position ? newest.all(Number(position[1] ?? 0)) : named.all({ start })
        if (row === undefined) throw unknown(reference, 'no such request is kept')
        if (another !== undefined) throw unknown(reference, 'several ids begin with that')
        return { ...readSummary(row.summary), body: row.body as Uint8Array, answerBody: row.answer_body as Uint8Array }
      }),
    *all() {
      for (let last = Number.MIN_SAFE_INTEGER; ; ) {
        const row = attempt(option, path, () => next.get(last))
        if (row === undefined) return
        last = Number(row.seq)
        yield attempt(option, path, () => ({ ...readSummary(row.summary), body: row.body as Uint8Array }))
      }
    },
    close() {
      if (database.isOpen) database.close()
    },
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

function attempt<T>(option: string, path: string, step: () => T): T {
  try {
    return step()
  } catch (error) {
    if (error instanceof UsageError) throw error
    const { code, message } = error as NodeJS.ErrnoException
    const isOfFiles = typeof code === 'string' && code !== 'ERR_SQLITE_ERROR'
    throw new UsageError(isOfFiles ? `${option}: ${path} cannot be used: ${message}.` : cannotUse(option, path, error))
  }
}
