/** Takes the place of the network under a sender: records its requests, and answers as a test tells it to. */

import type { Dispatcher } from 'undici'
import { type Clock, systemClock } from '../protocol/clock.ts'
import { refuseUnknown, requireClock } from '../protocol/options.ts'
import { Exchange } from './exchange.ts'
import { type NetworkFailure, readFailure } from './failures.ts'
import { createRecorder, joinHeaders, type Recorded } from './recorder.ts'
import { type Cue, createPrompter, type Move, type Script, type Step } from './script.ts'

/** What becomes of one request that is captured. An Error is what the connection fails with; give it a `code`. */
export type CapturedStep = Step | NetworkFailure | Error

/** What `capture` takes. */
export interface CaptureOptions {
  /** What to do with each request, one step for each; the last is repeated. Default `[200]`. */
  readonly script?: Script<CapturedStep>
  /** What `at`, `delayMs` and `dripMs` go by. Default: the machine's clock. */
  readonly clock?: Clock
}

/** What was sent so far: every request that was handed over, also one that could not be sent. */
export interface Capture extends Recorded {
  /**
   * For the option `dispatcher` of `createSender`, `createDestination` and `createClient`, and for whatever else takes
   * one of undici 8. Node's own `fetch` does not: it is that of an older undici, and fails with a TypeError.
   */
  readonly dispatcher: Pick<Dispatcher, 'dispatch'>
  /** Forgets what is left of the script and goes on with these steps. */
  script(steps: Script<CapturedStep>): void
}

/**
 * Captures what a sender or a destination sends, without a socket. Answers come at once, or when the clock says so.
 *
 * @throws TypeError that names the option.
 * @example
 * const captured = capture({ script: [503, 'reset', 200] })
 * const sender = createSender({ webhooks: [{ url: 'https://shop.example/webhooks' }], dispatcher: captured.dispatcher })
 * await sender.track({ userId: 'user-1', event: 'Order Completed' })
 * captured.messages[0].event
 */
export function capture(options: CaptureOptions = {}): Capture {
  refuseUnknown(options, ['script', 'clock'])
  const { script, clock = systemClock } = options
  requireClock(clock)
  const prompter = createPrompter(script, readFailure)
  const recorder = createRecorder()

  const decide = async (cue: Cue, options: Dispatcher.DispatchOptions): Promise<Move> => {
    try {
      const bytes = await collect(options.body)
      const { href: url, pathname, search } = new URL(options.path, options.origin)
      const headers = joinHeaders(listHeaders(options.headers))
      const parts = { method: options.method, url, path: pathname + search, headers, bytes, at: clock.now() }
      const request = recorder.add(parts)
      return 'kind' in cue ? cue : await cue(request)
    } catch (error) {
      return { kind: 'fail', error: () => error as Error }
    }
  }

  return {
    dispatcher: {
      dispatch(options, handler) {
        if (typeof handler.onRequestStart !== 'function') throw new TypeError(OTHER_UNDICI)
        const exchange = new Exchange(handler, clock)
        void decide(prompter.next(), options).then((move) => exchange.play(move))
        return true
      },
    },
    requests: recorder.requests,
    received: recorder.received,
    get messages() {
      return recorder.messages
    },
    script: prompter.replace,
  }
}

/** Handlers of undici 7 and before have other methods, so that none of them would ever hear of an answer. */
const OTHER_UNDICI =
  "handler: has no onRequestStart, so it is of another undici. Use the fetch of undici 8: Node's own brings an older undici."

async function collect(body: unknown): Promise<Buffer> {
  if (body === undefined || body === null) return Buffer.alloc(0)
  if (typeof body === 'string' || body instanceof Uint8Array) return Buffer.from(body)
  const chunks: Buffer[] = []
  for await (const chunk of body as AsyncIterable<unknown>) {
    if (typeof chunk !== 'string' && !(chunk instanceof Uint8Array)) throw new TypeError(NO_BODY)
    chunks.push(Buffer.from(chunk))
  }
  return Buffer.concat(chunks)
}

const NO_BODY = 'body: capture() takes text, bytes, or something that gives text and bytes when iterated over.'

/** undici takes names and values in turns, pairs, or an object whose values may be lists. */
function listHeaders(headers: unknown): string[] {
  if (headers === undefined || headers === null) return []
  if (Array.isArray(headers) && !Array.isArray(headers[0])) return headers
  const isIterable = Symbol.iterator in (headers as object)
  const pairs = isIterable ? [...(headers as Iterable<[string, unknown]>)] : Object.entries(headers as object)
  return pairs.flatMap(([name, value]) => [value ?? []].flat().flatMap((one) => [name, String(one)]))
}
