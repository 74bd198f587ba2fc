/** Creates the streams of open pages. Looks up changes only when a page has read the previous chunk, so slow pages fill no buffer. */

import { randomBytes } from 'node:crypto'
import type { Clock } from 'hookline'
import { withTimeout } from '../../../../src/internals.ts'
import type { Journal } from '../journal.ts'
import type { StreamEvents } from '../wire.ts'
import { createAnswer, refuseUnless } from './answers.ts'
import type { PageAnswer, PageRequest } from './listener.ts'

/** A value that a stream sends after each change of the value. The stream also sends rows. */
export interface Source {
  readonly name: Exclude<keyof StreamEvents, 'rows'>
  /** A number that grows with each change. 0 means that there is nothing to send yet. */
  readonly version: number
  snapshot(): StreamEvents[Source['name']]
}

const MAX_STREAMS = 32
const ASK_AGAIN_MS = 60_000
/** The timeout for deciding whether a page may stay open, in milliseconds. */
const ANSWER_MS = 10_000
const MAX_ROWS = 200
/** The minimum interval between checks for changes, in milliseconds: at most 5 checks a second. */
const INTERVAL_MS = 200
const HEARTBEAT_MS = 15_000
const TYPE = 'text/event-stream'
/** Headers that keep proxies and compressing middleware from buffering an event stream. */
const UNBUFFERED = { 'x-accel-buffering': 'no', 'cache-control': 'no-store, no-transform' }

/** @param clock The system clock, because streams must continue while the clock of the app stands still. */
export function createStreams(journal: Journal, sources: readonly Source[], clock: Clock) {
  /** The prefix of all event ids. It is different in each process, because versions from different processes are not comparable. */
  const epoch = randomBytes(9).toString('base64url')
  const streams = new Set<{ wake(): void; close(): void }>()
  const stopListening = journal.onChange(wake)

  function wake(): void {
    for (const stream of streams) stream.wake()
  }

  /** Returns the version that a page had when it lost the stream; undefined for a new page, and after a restart of the app. */
  function readVersion({ headers }: PageRequest): number | undefined {
    const [, known, version] = /^([\w-]+)\.(\d{1,16})$/.exec(String(headers['last-event-id'])) ?? []
    return known === epoch ? Number(version) : undefined
  }

  return {
    get isOpen(): boolean {
      return streams.size > 0
    },
    wake,
    /**
     * Opens a stream.
     *
     * @param isAllowed Called every minute. The stream ends unless the result is true. Undefined if the stream may always stay open.
     * @throws Refusal when too many streams are open.
     */
    openStream(request: PageRequest, isAllowed: (() => Promise<boolean>) | undefined): PageAnswer {
      if (request.method === 'HEAD') return createAnswer(200, TYPE, '', UNBUFFERED)
      const text = `The inspector already serves ${MAX_STREAMS} open pages. Close one of them, or try again later.`
      refuseUnless(streams.size < MAX_STREAMS, 503, text, { 'retry-after': '5' })
      const { signal } = request
      let [isChanged, isEnded, isIdle] = [true, false, false]
      let resume = (): void => {}
      let version = readVersion(request)
      const sent = new Map<Source, number>()
      let asking: unknown

      const stream = {
        wake() {
          isChanged = true
          if (isIdle) resume()
        },
        close() {
          isEnded = true
          streams.delete(stream)
          clock.clearTimeout(asking)
          resume()
        },
      }

      async function pause(ms: number): Promise<void> {
        await withTimeout(new Promise<void>((resolve) => (resume = resolve)), ms, clock)
      }

      async function* readChunks(): AsyncGenerator<string, void> {
        try {
          while (!isEnded) {
            for (const chunk of look()) {
              if (isEnded) return
              yield chunk
            }
            if (!isEnded) await pause(INTERVAL_MS)
            isIdle = !isChanged && !isEnded
            if (isIdle) await pause(HEARTBEAT_MS - INTERVAL_MS)
            isIdle = false
          }
        } finally {
          stream.close()
        }
      }

      /** Yields changes, or a heartbeat. Only the last chunk of rows has an id: a page that misses this chunk gets all the rows again. */
      function* look(): Generator<string> {
        isChanged = false
        const { rows, isReset, version: latest } = journal.changesSince(version)
        version = latest
        const news = sources.filter((source) => source.version > 0 && source.version !== sent.get(source))
        for (let from = 0; from < rows.length || (isReset && from === 0); from += MAX_ROWS) {
          const to = from + MAX_ROWS
          const id = to < rows.length ? '' : `id: ${epoch}.${latest}\n`
          const data = { isReset: isReset && from === 0, rows: rows.slice(from, to) } satisfies StreamEvents['rows']
          yield `event: rows\n${id}data: ${JSON.stringify(data)}\n\n`
        }
        for (const source of news) {
          sent.set(source, source.version)
          yield `event: ${source.name}\ndata: ${JSON.stringify(source.snapshot())}\n\n`
        }
        if (rows.length === 0 && !isReset && news.length === 0) yield ':\n\n'
      }

      function askLater(ask: () => Promise<boolean>): void {
        asking = clock.setTimeout(async () => {
          if ((await withTimeout(ask(), ANSWER_MS, clock)) !== true) stream.close()
          else if (!isEnded) askLater(ask)
        }, ASK_AGAIN_MS)
      }

      streams.add(stream)
      if (isAllowed !== undefined) askLater(isAllowed)
      if (signal.aborted) stream.close()
      else signal.addEventListener('abort', stream.close, { once: true })
      return createAnswer(200, TYPE, readChunks(), UNBUFFERED)
    },
    close(): void {
      stopListening()
      for (const stream of streams) stream.close()
    },
  }
}
