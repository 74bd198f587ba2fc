/** Replaces the network of a sender: records its requests, and responds according to a script. */

import { isUint8Array } from 'node:util/types'
import type { Dispatcher } from 'undici'
import { invalidOption, kindOf, requireClock, requireOptions } from '../kit/checks.ts'
import { type Clock, systemClock } from '../kit/clock.ts'
import { CERTIFICATE_FAULTS, type CertificateFault } from './certificates.ts'
import { createRecorder, joinHeaders, type Recorded } from './recorder.ts'
import { type Answer, createScript, type PlannedResponse, type Response, type Script, type Step } from './script.ts'

/**
 * Why a request could not be sent: the port is closed (`refused`), the host has no address (`dns`), the connection took too long
 * (`timeout`), or the client refused the certificate (any other value).
 */
export type NetworkFailure = 'refused' | 'dns' | 'timeout' | CertificateFault

/** The response to one captured request. An Error makes the connection fail with that error; give the error a `code`. */
export type CapturedStep = Step | NetworkFailure | Error

/** Options of `capture`. */
export interface CaptureOptions {
  /** One step for each request; the last step is repeated. Default `[200]`. */
  readonly script?: Script<CapturedStep>
  /** The clock for `at`, `delayMs` and `dripMs`. Default: the system clock. */
  readonly clock?: Clock
}

/** The captured requests, including those that could not be sent, and the dispatcher that captures them. */
export interface Capture extends Recorded {
  /**
   * The dispatcher that captures requests. Pass it as the option `dispatcher` of `createSender`, `createDestination` or `createClient`, or
   * to other code that uses undici 8. The built-in `fetch` of Node.js uses an older undici, with which this dispatcher throws a TypeError.
   */
  readonly dispatcher: Pick<Dispatcher, 'dispatch'>
  /** Continues with these steps instead of the rest of the script. */
  script(steps: Script<CapturedStep>): void
}

/**
 * Captures what a sender or a destination sends, without a socket. A response comes at once or, if its step has a delay, when the clock
 * reaches the end of the delay.
 *
 * @throws TypeError that names the invalid option.
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

  /** Records a request, and returns the response of its step. The request fails if it cannot be read, or if the step throws. */
  const record = async (planned: PlannedResponse, options: Dispatcher.DispatchOptions): Promise<Response> => {
    try {
      const bytes = await readBody(options.body)
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
        void record(script.next(), options).then((step) => new CapturedExchange(handler, clock).respond(step))
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

/** Refuses the handlers of undici 7 and earlier: they have other methods, so the request would never end. */
function requireUndici8(handler: Dispatcher.DispatchHandler): void {
  if (typeof handler.onRequestStart === 'function') return
  const advice = "Use the fetch of undici 8: Node's own fetch uses an older undici."
  throw invalidOption('handler', 'must be a handler of undici 8', 'a handler without onRequestStart', advice)
}

async function readBody(body: Dispatcher.DispatchOptions['body']): Promise<Buffer> {
  if (body === undefined || body === null) return Buffer.alloc(0)
  if (typeof body === 'string' || isUint8Array(body)) return Buffer.from(body)
  const chunks: Buffer[] = []
  for await (const chunk of body) {
    if (typeof chunk !== 'string' && !isUint8Array(chunk)) {
      const rule = 'must be text or bytes, or an iterable of them'
      throw invalidOption('body', rule, `an iterable that contains ${kindOf(chunk)}`, 'Send text or bytes instead.')
    }
    chunks.push(Buffer.from(chunk))
  }
  return Buffer.concat(chunks)
}

/** Lists names and values alternately. undici accepts such a list, a list of pairs, or an object whose values may be lists. */
function listHeaders(headers: Dispatcher.DispatchOptions['headers']): string[] {
  if (headers === undefined || headers === null) return []
  if (isFlat(headers)) return headers
  const pairs: Iterable<readonly [string, unknown]> = Symbol.iterator in headers ? headers : Object.entries(headers)
  return [...pairs].flatMap(([name, value]) => [value ?? []].flat().flatMap((one) => [name, String(one)]))
}

function isFlat(headers: unknown): headers is string[] {
  return Array.isArray(headers) && !Array.isArray(headers[0])
}

/** The errors that undici reports, keyed by when the connection was reset. A reset during an answer has its own errors. */
const RESETS = { headers: 'reset', body: 'reset', answer: 'cut_off', chunk: 'cut_off_chunk' } as const

/** Responds to one captured request through the handler of undici 8. */
class CapturedExchange implements Dispatcher.DispatchController {
  aborted = false
  paused = false
  reason: Error | null = null
  rawHeaders: string[] = []
  readonly #handler: Dispatcher.DispatchHandler
  readonly #clock: Clock
  #timer: unknown
  #isOver = false

  constructor(handler: Dispatcher.DispatchHandler, clock: Clock) {
    this.#handler = handler
    this.#clock = clock
  }

  /** Responds as a step says. If the request must fail before it is sent, the handler's `onRequestStart` is not called. */
  respond(step: Response): void {
    if (step.kind === 'fail') {
      this.#fail(step.error())
      return
    }
    this.#callHandler(() => this.#handler.onRequestStart?.(this, {}))
    if (step.kind === 'close' || step.kind === 'garbage') this.#fail(createFailure(step.kind))
    else if (step.kind === 'reset') {
      if (step.half !== undefined) this.#sendAnswer(step.half)
      this.#fail(createFailure(RESETS[step.after]))
    } else if (step.kind === 'answer') {
      const { answer, delayMs, dripMs } = step
      this.#runAfter(delayMs, () => {
        this.#sendAnswer(answer)
        if (dripMs === undefined) this.#complete()
        else this.#dripForever(dripMs)
      })
    }
  }

  abort(reason: Error = createFailure('aborted')): void {
    if (this.#isOver) return
    this.aborted = true
    this.reason = reason
    this.#fail(reason)
  }

  pause(): void {
    this.paused = true
  }

  resume(): void {
    this.paused = false
  }

  #sendAnswer({ status, headers, body }: Answer): void {
    const named = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])
    this.rawHeaders = Object.entries(headers).flat()
    this.#callHandler(() => this.#handler.onResponseStart?.(this, status, Object.fromEntries(named), ''))
    if (body.length > 0) this.#callHandler(() => this.#handler.onResponseData?.(this, body))
  }

  #dripForever(ms: number): void {
    this.#runAfter(ms, () => {
      this.#callHandler(() => this.#handler.onResponseData?.(this, Buffer.from('.')))
      this.#dripForever(ms)
    })
  }

  #complete(): void {
    if (this.#isOver) return
    this.#finish()
    this.#handler.onResponseEnd?.(this, {})
  }

  #fail(error: Error): void {
    if (this.#isOver) return
    this.#finish()
    this.#handler.onResponseError?.(this, error)
  }

  #finish(): void {
    this.#isOver = true
    this.#clock.clearTimeout(this.#timer)
  }

  #runAfter(ms: number, callback: () => void): void {
    if (this.#isOver) return
    if (ms === 0) callback()
    else this.#timer = this.#clock.setTimeout(callback, ms)
  }

  /** Calls a method of the handler. If the method throws, the request ends, as in undici. */
  #callHandler(callback: () => void): void {
    if (this.#isOver) return
    try {
      callback()
    } catch (error) {
      this.abort(error as Error)
    }
  }
}

/** The errors that Node.js and undici report. Errors from undici's parser have no code. */
const ERRORS = {
  refused: { code: 'ECONNREFUSED', message: 'connect ECONNREFUSED' },
  dns: { code: 'ENOTFOUND', message: 'getaddrinfo ENOTFOUND' },
  timeout: { code: 'UND_ERR_CONNECT_TIMEOUT', message: 'Connect Timeout Error', name: 'ConnectTimeoutError' },
  self_signed: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT', message: 'self-signed certificate' },
  expired: { code: 'CERT_HAS_EXPIRED', message: 'certificate has expired' },
  wrong_name: { code: 'ERR_TLS_CERT_ALTNAME_INVALID', message: "Hostname/IP does not match certificate's altnames" },
  private_ca: { code: 'SELF_SIGNED_CERT_IN_CHAIN', message: 'self-signed certificate in certificate chain' },
  reset: { code: 'ECONNRESET', message: 'read ECONNRESET' },
  cut_off: {
    code: 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
    message: 'Response body length does not match content-length header',
    name: 'ResponseContentLengthMismatchError',
  },
  cut_off_chunk: {
    message: 'Response does not match the HTTP/1.1 protocol (Invalid EOF state)',
    name: 'HTTPParserError',
  },
  close: { code: 'UND_ERR_SOCKET', message: 'other side closed', name: 'SocketError' },
  garbage: { message: 'Response does not match the HTTP/1.1 protocol', name: 'HTTPParserError' },
  aborted: { code: 'UND_ERR_ABORTED', message: 'Request aborted', name: 'AbortError' },
} as const satisfies Readonly<Record<string, { code?: string; message: string; name?: string }>>

const NETWORK_FAILURES: readonly NetworkFailure[] = ['refused', 'dns', 'timeout', ...CERTIFICATE_FAULTS]

function readFailure(step: unknown): Response | undefined {
  if (step instanceof Error) return { kind: 'fail', error: () => step }
  const failure = NETWORK_FAILURES.find((name) => name === step)
  return failure && { kind: 'fail', error: () => createFailure(failure) }
}

function createFailure(failure: keyof typeof ERRORS): Error {
  const { message, ...rest } = ERRORS[failure]
  return Object.assign(new Error(message), rest)
}
