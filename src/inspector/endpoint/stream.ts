/** The streams of open pages: their number is bounded, and each ends when its reader may no longer look. */

import { randomBytes } from 'node:crypto'
import type { EndpointAnswer, EndpointRequest } from '../../http/endpoint.ts'
import { type Clock, inBackground } from '../../time/clock.ts'
import { within } from '../../time/timeout.ts'
import type { Journal } from '../journal.ts'
import { answer, Refusal } from './answers.ts'
import { createReader, type Feed, type Reader, type Source } from './reader.ts'

/** The open streams. */
export interface Streams {
  /** Whether any is open. */
  readonly isOpen: boolean
  /**
   * Opens one.
   *
   * @param isAllowed Is asked each minute, and ends the stream with anything but true. Undefined: it goes on.
   * @throws Refusal when too many are open.
   */
  open(request: EndpointRequest, isAllowed: (() => Promise<boolean>) | undefined): EndpointAnswer
  /** Has each reader look for changes. */
  wake(): void
  /** Ends all. */
  close(): void
}

/** The most at a time. */
const MOST_STREAMS = 32
const ASK_AGAIN_MS = 60_000
/** How long the answer to that may take. */
const ANSWER_MS = 10_000
/** An event stream, which no proxy and no compressing middleware may collect before it passes it on. */
const TYPE = 'text/event-stream'
const UNBUFFERED = { 'x-accel-buffering': 'no', 'cache-control': 'no-store, no-transform' }

/** @param machine The clock of the machine: streams go on while that of the app stands still. */
export function createStreams(journal: Journal, sources: readonly Source[], machine: Clock): Streams {
  const clock = inBackground(machine)
  const feed: Feed = { journal, sources, epoch: randomBytes(9).toString('base64url'), clock }
  const readers = new Set<Reader>()
  const unsubscribe = journal.onChange(wake)

  function wake(): void {
    for (const reader of readers) reader.wake()
  }

  /** The version that a page has which lost the stream; undefined for a new page, and for one of another process. */
  function readVersion({ headers }: EndpointRequest): number | undefined {
    const [, epoch, version] = /^([\w-]+)\.(\d{1,16})$/.exec(String(headers['last-event-id'])) ?? []
    return epoch === feed.epoch ? Number(version) : undefined
  }

  return {
    get isOpen() {
      return readers.size > 0
    },
    wake,
    open(request, isAllowed) {
      if (request.method === 'HEAD') return answer(200, TYPE, '', UNBUFFERED)
      if (readers.size >= MOST_STREAMS) {
        const text = `The inspector serves ${MOST_STREAMS} streams at a time. Got one more. Close a page, or try again later.`
        throw new Refusal(503, text, { 'retry-after': '5' })
      }
      let asking: unknown
      const reader = createReader(feed, readVersion(request), () => {
        readers.delete(reader)
        clock.clearTimeout(asking)
      })
      const askLater = (ask: () => Promise<boolean>): void => {
        asking = clock.setTimeout(async () => {
          if ((await within(ask(), ANSWER_MS, clock)) !== true) reader.end()
          else if (readers.has(reader)) askLater(ask)
        }, ASK_AGAIN_MS)
      }
      readers.add(reader)
      if (isAllowed !== undefined) askLater(isAllowed)
      const { signal } = request
      if (signal.aborted) reader.end()
      else signal.addEventListener('abort', reader.end, { once: true })
      return answer(200, TYPE, reader, UNBUFFERED)
    },
    close() {
      unsubscribe()
      for (const reader of readers) reader.end()
    },
  }
}
