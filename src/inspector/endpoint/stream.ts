/** The streams of open pages. A page pulls: what has changed is looked up when it has the last chunk, so a slow one holds a version. */

import { randomBytes } from 'node:crypto'
import type { EndpointAnswer, EndpointRequest } from '../../http/endpoint.ts'
import type { Clock } from '../../time/clock.ts'
import { within } from '../../time/timeout.ts'
import type { Journal } from '../journal.ts'
import type { Row, StreamEvents } from '../wire.ts'
import { answer, Refusal } from './answers.ts'

/** What the stream sends, beside rows, whenever it has changed. */
export interface Source {
  readonly name: Exclude<keyof StreamEvents, 'rows'>
  /** Grows with each change. 0: nothing to send yet. */
  readonly version: number
  read(): StreamEvents[Source['name']]
}

export interface Streams {
  readonly isOpen: boolean
  /**
   * Opens one.
   *
   * @param isAllowed Is asked each minute, and ends the stream with anything but true. Undefined: it goes on.
   * @throws Refusal when too many are open.
   */
  open(request: EndpointRequest, isAllowed: (() => Promise<boolean>) | undefined): EndpointAnswer
  wake(): void
  close(): void
}

const MAX_STREAMS = 32
const ASK_AGAIN_MS = 60_000
/** How long the answer to that may take. */
const ANSWER_MS = 10_000
const MAX_ROWS = 200
/** Between two looks for changes: at most 5 a second. */
const INTERVAL_MS = 200
const HEARTBEAT_MS = 15_000
/** How long a chunk may wait for its reader before the stream ends. */
const STALLED_MS = 60_000
const TYPE = 'text/event-stream'
/** No proxy and no compressing middleware may collect an event stream before it passes it on. */
const UNBUFFERED = { 'x-accel-buffering': 'no', 'cache-control': 'no-store, no-transform' }

/** @param clock The clock of the machine, in the background: streams go on while that of the app stands still. */
export function createStreams(journal: Journal, sources: readonly Source[], clock: Clock): Streams {
  /** The beginning of the ids of events: versions of another process are not those of this one. */
  const epoch = randomBytes(9).toString('base64url')
  const streams = new Set<{ wake(): void; end(): void }>()
  const stopListening = journal.onChange(wake)

  function wake(): void {
    for (const stream of streams) stream.wake()
  }

  /** The version that a page has which lost the stream; undefined for a new page, and for one of another process. */
  function readVersion({ headers }: EndpointRequest): number | undefined {
    const [, known, version] = /^([\w-]+)\.(\d{1,16})$/.exec(String(headers['last-event-id'])) ?? []
    return known === epoch ? Number(version) : undefined
  }

  return {
    get isOpen() {
      return streams.size > 0
    },
    wake,
    open(request, isAllowed) {
      if (request.method === 'HEAD') return answer(200, TYPE, '', UNBUFFERED)
      if (streams.size >= MAX_STREAMS) {
        const text = `The inspector serves ${MAX_STREAMS} streams at a time. Got one more. Close a page, or try again later.`
        throw new Refusal(503, text, { 'retry-after': '5' })
      }
      const { signal } = request
      let version = readVersion(request)
      const sent = new Map<Source, number>()
      let [isChanged, isEnded] = [true, false]
      let resume = (): void => {}
      let stalled: unknown
      let asking: unknown

      function end(): void {
        isEnded = true
        streams.delete(stream)
        clock.clearTimeout(stalled)
        clock.clearTimeout(asking)
        resume()
      }

      /** Waits until something changes, and at most so long. */
      async function pause(ms: number): Promise<void> {
        const changed = new Promise<void>((resolve) => (resume = resolve))
        await within(changed, ms, clock)
      }

      async function* read(): AsyncGenerator<string, void> {
        let lookedAt = Number.NEGATIVE_INFINITY
        let sentAt = clock.monotonic()
        try {
          while (!isEnded) {
            const now = clock.monotonic()
            const waitMs = isChanged ? lookedAt + INTERVAL_MS - now : sentAt + HEARTBEAT_MS - now
            if (waitMs > 0) {
              await pause(waitMs)
              continue
            }
            if (isChanged) lookedAt = now
            for (const chunk of isChanged ? look() : [':\n\n']) {
              if (isEnded) return
              sentAt = clock.monotonic()
              stalled = clock.setTimeout(end, STALLED_MS)
              yield chunk
              clock.clearTimeout(stalled)
            }
          }
        } finally {
          end()
        }
      }

      /** What has changed. The last of the rows has the id: a page that lost the stream before gets all of them again. */
      function* look(): Generator<string> {
        isChanged = false
        const { rows, isReset, ...changes } = journal.changesSince(version)
        version = changes.version
        const count = Math.max(Math.ceil(rows.length / MAX_ROWS), isReset ? 1 : 0)
        const events = Array.from({ length: count }, (_, index) => {
          const some = rows.slice(index * MAX_ROWS, (index + 1) * MAX_ROWS)
          return rowsEvent(some, isReset && index === 0, index === count - 1 ? `${epoch}.${version}` : undefined)
        })
        const [first = '', ...others] = events
        const news = sources.filter((source) => source.version > 0 && source.version !== sent.get(source))
        const more = news.map((source) => {
          sent.set(source, source.version)
          return `event: ${source.name}\ndata: ${JSON.stringify(source.read())}\n\n`
        })
        const chunk = `${first}${more.join('')}`
        if (chunk !== '') yield chunk
        yield* others
      }

      function askLater(ask: () => Promise<boolean>): void {
        asking = clock.setTimeout(async () => {
          if ((await within(ask(), ANSWER_MS, clock)) !== true) end()
          else if (!isEnded) askLater(ask)
        }, ASK_AGAIN_MS)
      }

      const stream = {
        end,
        wake() {
          isChanged = true
          resume()
        },
      }
      streams.add(stream)
      if (isAllowed !== undefined) askLater(isAllowed)
      if (signal.aborted) end()
      else signal.addEventListener('abort', end, { once: true })
      const chunks = read()
      const body: AsyncIterableIterator<string> = {
        next: () => chunks.next(),
        async return() {
          end() // A generator that waits would return only afterwards.
          return { done: true, value: undefined }
        },
        [Symbol.asyncIterator]: () => body,
      }
      return answer(200, TYPE, body, UNBUFFERED)
    },
    close() {
      stopListening()
      for (const stream of streams) stream.end()
    },
  }
}

function rowsEvent(rows: readonly Row[], isReset: boolean, id: string | undefined): string {
  const data: StreamEvents['rows'] = { isReset, rows }
  return `event: rows\n${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`
}
