/** Replaces the network of a sender: records its requests, and responds by a script. */

import { isUint8Array } from 'node:util/types'
import type { Dispatcher } from 'undici'
import { invalidOption, kindOf, requireClock, requireOptions } from '../options/checks.ts'
import { type Clock, systemClock } from '../time/clock.ts'
import { Controller } from './controller.ts'
import { type NetworkFailure, readFailure } from './failures.ts'
import { createRecorder, joinHeaders, type Recorded } from './recorder.ts'
import { createScript, type PlannedResponse, type Response, type Script, type Step } from './script.ts'

/** What happens to one captured request. An Error is what the connection fails with; set its `code`. */
export type CapturedStep = Step | NetworkFailure | Error

/** What `capture` takes. */
export interface CaptureOptions {
  /** One step for each request; the last is repeated. Default `[200]`. */
  readonly script?: Script<CapturedStep>
  /** The time of `at`, `delayMs` and `dripMs`. Default: the machine's clock. */
  readonly clock?: Clock
}

/** The requests so far, including those that could not be sent. */
export interface Capture extends Recorded {
  /**
   * For the option `dispatcher` of `createSender`, `createDestination` and `createClient`, and of other users of undici 8.
   * Node's own `fetch` uses an older undici: it fails with a TypeError.
   */
  readonly dispatcher: Pick<Dispatcher, 'dispatch'>
  /** Goes on with these steps instead of the rest of the script. */
  script(steps: Script<CapturedStep>): void
}

/**
 * Captures what a sender or a destination sends, without a socket. Responds at once, or at the clock's time.
 *
 * @throws TypeError that names the option.
 * @example
 * const captured = capture({ script: [503, 'reset', 200] })
 * const sender = createSender({ webhooks: [{ url: 'https://shop.example/webhooks' }], dispatcher: captured.dispatcher })
 * await sender.track({ userId: 'user-1', event: 'Order Completed' })
 * captured.messages[0].event
 */
export function capture(options: CaptureOptions = {}): Capture {
  requireOptions('capture', options, ['script', 'clock'])
  const { script: steps, clock = systemClock } = options
  requireClock(clock)
  const script = createScript(steps, readFailure)
  const recorder = createRecorder()

  const decide = async (planned: PlannedResponse, options: Dispatcher.DispatchOptions): Promise<Response> => {
    try {
      const bytes = await collect(options.body)
      const { href: url, pathname, search } = new URL(options.path, options.origin)
      const headers = joinHeaders(listHeaders(options.headers))
      const parts = { method: options.method, url, path: pathname + search, headers, bytes, at: new Date(clock.now()) }
      const request = recorder.add(parts)
      return 'kind' in planned ? planned : await planned(request)
    } catch (error) {
      return { kind: 'fail', error: () => error as Error }
    }
  }

  return {
    dispatcher: {
      dispatch(options, handler) {
        requireUndici8(handler)
        const controller = new Controller(handler, clock)
        void decide(script.next(), options).then((step) => controller.respond(step))
        return true
      },
    },
    requests: recorder.requests,
    received: recorder.received,
    get messages() {
      return recorder.messages
    },
    script: script.replace,
  }
}

/** Handlers of undici 7 and before have other methods: the request would never end. */
function requireUndici8(handler: Dispatcher.DispatchHandler): void {
  if (typeof handler.onRequestStart === 'function') return
  const advice = "Use the fetch of undici 8: Node's own brings an older undici."
  throw invalidOption('handler', 'must be of undici 8', 'one without onRequestStart', advice)
}

async function collect(body: unknown): Promise<Buffer> {
  if (body === undefined || body === null) return Buffer.alloc(0)
  if (typeof body === 'string' || isUint8Array(body)) return Buffer.from(body)
  const chunks: Buffer[] = []
  for await (const chunk of body as AsyncIterable<unknown>) {
    if (typeof chunk !== 'string' && !isUint8Array(chunk)) {
      throw invalidOption(
        'body',
        'must be text or bytes, or an iterable of them',
        `${kindOf(chunk)} in it`,
        'Send text or bytes instead.',
      )
    }
    chunks.push(Buffer.from(chunk))
  }
  return Buffer.concat(chunks)
}

/** undici accepts a flat list of names and values, pairs, or an object whose values may be lists. */
function listHeaders(headers: unknown): string[] {
  if (headers === undefined || headers === null) return []
  if (Array.isArray(headers) && !Array.isArray(headers[0])) return headers
  const isIterable = Symbol.iterator in (headers as object)
  const pairs = isIterable ? [...(headers as Iterable<[string, unknown]>)] : Object.entries(headers as object)
  return pairs.flatMap(([name, value]) => [value ?? []].flat().flatMap((one) => [name, String(one)]))
}
