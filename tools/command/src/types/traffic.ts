/** Reads messages from lines of JSON, the store of `hookline listen`, or the history of inboxes. */

import { createReadStream, existsSync } from 'node:fs'
import { open, readFile, stat } from 'node:fs/promises'
import { HooklineError, type Message, parse } from 'hookline'
import { inspectQueue } from 'hookline/queues'
import { toTimestamp } from '../../../../src/internals.ts'
import { isMessage, tryParse } from '../../../json.ts'
import { cannotRead } from '../arguments.ts'
import { splitLines } from '../lines.ts'
import { type Asker, createPlace, type PlaceOptions, rewordError } from '../place.ts'
import { openStore, STORE_ID, STORE_ID_OFFSET } from '../request-store.ts'
import { BODY_LIMIT } from '../requests/kept-request.ts'
import { note, UsageError } from '../terminal.ts'

/** A message from a source. */
export interface Seen {
  readonly message: Message
  /** The time of arrival, in milliseconds since the epoch; undefined when the source does not contain it. */
  readonly at: number | undefined
}

export interface Traffic {
  /**
   * Reads the messages one at a time. Skips anything that is not a message.
   *
   * @param onSkip Called with the reason each time something is skipped. There are only a few different reasons. They quote no message.
   * @throws UsageError for a source that is empty or cannot be read.
   */
  messages(onSkip: (reason: string) => void): AsyncIterable<Seen>
}

export interface TrafficOptions extends PlaceOptions {
  /** The name of the queue whose history to read. Default: every queue. */
  readonly name?: string
}

const ASKER: Asker = { command: 'types', argument: 'SOURCE' }
const { argument: SOURCE } = ASKER

/**
 * Opens a source of messages. Stdin and pipes contain a message on each line. The URL of a server stands for the history of its queues.
 * The contents of a file determine its kind: a message on each line, one message or one list of messages as JSON, the store of
 * `hookline listen`, or a SQLite file of queues.
 *
 * @param location A path, `-` for stdin, or `redis://…`, `rediss://…` or `postgres://…`.
 * @returns The messages; undefined for any other file.
 * @throws UsageError (as a rejection) for a file that is empty or cannot be read, and for other URLs, which are never quoted.
 */
export async function openTraffic(location: string, options: TrafficOptions): Promise<Traffic | undefined> {
  if (location === '-') return linesOf(location)
  if (isUrl(location)) return historyOf(location, options)
  if (await isPipe(location)) return linesOf(location)
  const header = await readHeader(location)
  if (header.indexOf(MAGIC) !== 0) return openText(location)
  return header.readUInt32BE(STORE_ID_OFFSET) === STORE_ID ? requestsOf(location) : historyOf(location, options)
}

/** @throws UsageError for a URL that is not for Redis or PostgreSQL. */
function isUrl(location: string): boolean {
  if (/^(rediss?|postgres(ql)?):/i.test(location)) return true
  if (!/^[a-z][a-z\d+.-]+:/i.test(location) || existsSync(location)) return false
  throw new UsageError(
    `${SOURCE} must be a file, - for stdin, or a URL that begins with redis://, rediss:// or postgres://. Save the contents of any other URL to a file.`,
  )
}

/** Returns whether a path is a pipe. A pipe can be read only once, so its contents are not examined first. */
async function isPipe(path: string): Promise<boolean> {
  return attempt(path, async () => (await stat(path)).isFIFO())
}

/** The first bytes of each SQLite file. */
const MAGIC = 'SQLite format 3\0'

async function readHeader(path: string): Promise<Buffer> {
  return attempt(path, async () => {
    const file = await open(path)
    const { buffer } = await file.read(Buffer.alloc(100), 0, 100, 0).finally(() => file.close())
    return buffer
  })
}

async function attempt<T>(path: string, step: () => Promise<T>): Promise<T> {
  try {
    return await step()
  } catch (error) {
    throw error instanceof UsageError ? error : cannotRead(SOURCE, path, error)
  }
}

/** The number of lines to examine at the beginning of a file. At least one of them must be a message. */
const MAX_SAMPLE = 100
/** The maximum size of a file to read as one JSON document. */
const MAX_DOCUMENT_BYTES = 50_000_000

function openText(path: string): Promise<Traffic | undefined> {
  return attempt(path, async () => {
    const { size } = await stat(path)
    let count = 0
    for await (const { bytes } of splitLines(createReadStream(path), BODY_LIMIT)) {
      if (isBlank(bytes)) continue
      const value = bytes && tryParse(bytes)
      if (count === 0 && value === undefined && size <= MAX_DOCUMENT_BYTES) {
        // The document is tried before the lines, because a single line of a document may also be JSON.
        const document = tryParse(await readFile(path))
        if (document !== undefined) return holdsMessage(document) ? documentOf(document) : undefined
      }
      if (holdsMessage(value)) return linesOf(path)
      count += 1
      if (count === MAX_SAMPLE) break
    }
    if (count === 0) throw empty(path)
    if (size <= MAX_DOCUMENT_BYTES) return undefined
    throw new UsageError(
      `${SOURCE} must have a message on each line if it is larger than ${MAX_DOCUMENT_BYTES} bytes. ${path} is larger, and there is no message on its first lines. Write each message on one line.`,
    )
  })
}

/** Fields that distinguish a message from a plan, which may also have a `type`. */
const MARKS = ['userId', 'anonymousId', 'User ID', 'messageId', 'timestamp']

function holdsMessage(value: unknown): boolean {
  return [value].flat().some((each) => isMessage(each) && MARKS.some((mark) => Object.hasOwn(each, mark)))
}

function documentOf(document: unknown): Traffic {
  return {
    async *messages(onSkip) {
      yield* messagesOf([document].flat(), onSkip)
    },
  }
}

function linesOf(name: string): Traffic {
  const isStdin = name === '-'
  const shown = isStdin ? 'stdin' : name
  return {
    async *messages(onSkip) {
      if (isStdin && process.stdin.isTTY) note('Reading from the terminal. To end the input, press Ctrl-D.')
      let isEmpty = true
      try {
        for await (const { bytes } of splitLines(isStdin ? process.stdin : createReadStream(name), BODY_LIMIT)) {
          if (isBlank(bytes)) continue
          isEmpty = false
          if (bytes === undefined) onSkip(`The body must have at most ${BODY_LIMIT} bytes.`)
          else for (const seen of readMessages(bytes, onSkip)) yield seen
        }
      } catch (error) {
        throw cannotRead(SOURCE, name, error)
      }
      if (isEmpty) throw empty(shown)
    },
  }
}

function isBlank(line: Buffer | undefined): boolean {
  return line !== undefined && line.toString('latin1').trim() === ''
}

function requestsOf(path: string): Traffic {
  return {
    async *messages(onSkip) {
      const store = openStore(path)
      let isEmpty = true
      try {
        for (const { body, isComplete, verification, receivedAt } of store.readNewest()) {
          isEmpty = false
          if (!isComplete) onSkip('The upload must be complete.')
          else if (verification === 'mismatched') onSkip('The signature must match.')
          else for (const seen of readMessages(body, onSkip, receivedAt)) yield seen
        }
      } finally {
        store.close()
      }
      if (isEmpty) throw empty(path)
    },
  }
}

function historyOf(location: string, { name: only, ...options }: TrafficOptions): Traffic {
  const place = createPlace(location, options, ASKER)
  return {
    async *messages(onSkip) {
      let isEmpty = true
      try {
        for (const name of only === undefined ? await place.list() : [only]) {
          const queue = await place.openQueue(name)
          try {
            for await (const { bytes, receivedAt } of inspectQueue(queue).history()) {
              isEmpty = false
              if (receivedAt === undefined) onSkip('The stored message must be readable by this release.')
              else for (const seen of readMessages(bytes, onSkip, receivedAt.getTime())) yield seen
            }
          } finally {
            await queue.close({ graceMs: 0 })
          }
        }
      } catch (error) {
        throw error instanceof HooklineError ? rewordError(error, place, ASKER) : error
      }
      if (isEmpty) throw empty(`The history at ${place.shown}`, ' Set `inbox.history` to keep handled messages.')
    },
  }
}

function empty(shown: string, advice = ''): UsageError {
  return new UsageError(`${SOURCE} must contain messages. ${shown} is empty.${advice}`)
}

/** Reads one message, or the messages of a batch. */
function readMessages(bytes: Uint8Array, onSkip: (reason: string) => void, at?: number): readonly Seen[] {
  try {
    const message = parse(bytes)
    return [{ message, at: at ?? timeOf(message) }]
  } catch (error) {
    if (!(error instanceof HooklineError)) throw error
    const value = error.code === 'body_not_json' ? tryParse(bytes) : undefined
    if (Array.isArray(value)) return messagesOf(value, onSkip, at)
    onSkip(`${error.message.split('. Got ')[0]}.`) // The first sentence of an error quotes nothing from the message.
    return []
  }
}

function messagesOf(values: readonly unknown[], onSkip: (reason: string) => void, at?: number): readonly Seen[] {
  return values.flatMap((each) => {
    if (!Array.isArray(each)) return readMessages(Buffer.from(JSON.stringify(each)), onSkip, at)
    onSkip('The body must be one JSON object, not a list.')
    return []
  })
}

function timeOf({ timestamp }: Message): number | undefined {
  const text = toTimestamp(timestamp)
  return text === undefined ? undefined : Date.parse(text)
}
