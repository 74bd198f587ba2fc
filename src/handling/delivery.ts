/** A delivery: what a handler learns about a message beside the message itself, and how far its handling has come. */

import { createHash } from 'node:crypto'
import type { BodySource, EndpointBody } from '../http/body.ts'
import type { EndpointHeaders } from '../http/endpoint.ts'
import { HooklineError } from '../message/error.ts'
import type { Message, MessageType } from '../message/message.ts'

/** How a message arrived. Some fields are computed when they are read: pass the object on, a copy by spread loses them. */
export interface Delivery {
  /**
   * Identifies the delivery and every retry of it, which are the same bytes: the verified signature; of a receiver with many
   * sources, the SHA-256 of that and of the source; the SHA-256 of the bytes when unsigned. Use it, not `messageId`, to
   * recognise duplicates: a `messageId` can be guessed.
   */
  readonly id: string
  /** The exact bytes of the body. */
  readonly bytes: Uint8Array
  /** Where the body was found: `stream` unless a parser ran first. */
  readonly bodySource: BodySource
  /** When the request arrived. */
  readonly receivedAt: Date
  /** The headers of the request, names in lower case. */
  readonly headers: EndpointHeaders
  /** Whether the signature was checked; false only under `allowUnsigned`. */
  readonly verified: boolean
  /** The source whose secret made the signature, of a receiver with many; undefined for a receiver with one. */
  readonly source: string | undefined
  /** Which of your secrets made the signature, counted from 0; undefined when unsigned. */
  readonly secretIndex: number | undefined
  /**
   * Fires at the deadline, when the sender is answered that it should retry: unfinished work can stop. From an inbox: after
   * `timeoutMs`, or when the grace of `close` is over; the message is handled again.
   */
  readonly signal: AbortSignal
}

/** What a delivery waits for; decides which error its deadline is. */
type Stage = 'body' | 'secret' | 'inbox' | 'dedupe' | 'handlers' | 'confirm'

const LATE: Readonly<Record<Stage, () => HooklineError>> = {
  body: () => new HooklineError('body_timeout', 'The body must arrive in time. Got a part of it. Send it again.'),
  secret: () =>
    new HooklineError(
      'secret_unavailable',
      'The secret provider must answer in time. Got no answer. Make it answer or fail sooner.',
    ),
  inbox: () =>
    new HooklineError('inbox_unavailable', 'The inbox must store the message in time. Got no answer. Send it again.'),
  dedupe: () =>
    new HooklineError('dedupe_unavailable', 'The dedupe store must answer in time. Got no answer. Send it again.'),
  confirm: () =>
    new HooklineError('dedupe_unavailable', 'The dedupe store must confirm in time. Got no answer. Check the store.'),
  handlers: () =>
    new HooklineError(
      'handler_timeout',
      'The handlers must finish in time. Got no result. Use an `inbox` for slow handlers, or raise its `timeoutMs`.',
    ),
}

/** A delivery in progress: filled in step by step, its costly parts only when they are read. */
export class OpenDelivery implements Delivery {
  readonly headers: EndpointHeaders
  bytes: Uint8Array = NO_BYTES
  bodySource: BodySource = 'stream'
  source: string | undefined
  signature: string | undefined
  secretIndex: number | undefined
  /** Of the message, once it is parsed. */
  type: MessageType | undefined
  /** The message as it was dispatched to the handlers; undefined before. */
  dispatched: Message | undefined
  /** When it was dispatched, on a monotonic clock; undefined when no diagnostics need it. */
  startedAt: number | undefined
  /** The error of the deadline once it has passed, or of the shutdown that ended the delivery. */
  expired: HooklineError | undefined
  readonly #receivedAt: number
  #stage: Stage = 'body'
  #failure: HooklineError | undefined
  #abort: AbortController | undefined

  constructor(headers: EndpointHeaders, receivedAt: number) {
    this.headers = headers
    this.#receivedAt = receivedAt
  }

  get id(): string {
    const { signature, source } = this
    if (signature === undefined) return sha256(this.bytes)
    return source === undefined ? signature : sha256(`${signature}${source}`)
  }

  /** A key that you chose for the message, apart from the same key of another source. */
  within(key: string): string {
    return this.source === undefined ? key : JSON.stringify([this.source, key])
  }

  get receivedAt(): Date {
    return new Date(this.#receivedAt)
  }

  get verified(): boolean {
    return this.signature !== undefined
  }

  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController()
      if (this.expired !== undefined) this.#abort.abort(this.expired)
    }
    return this.#abort.signal
  }

  /** Whether the handlers succeeded and only the dedupe store has to confirm it. */
  get isHandled(): boolean {
    return this.#stage === 'confirm'
  }

  /** Goes on to the next stage. Throws the error of the deadline when that has passed: the rest would be in vain. */
  enter(stage: Stage): void {
    if (this.expired !== undefined) throw this.expired
    this.#stage = stage
  }

  setBody({ bytes, source }: EndpointBody): void {
    this.bytes = bytes
    this.bodySource = source
  }

  setSignature(signature: string, secretIndex: number): void {
    this.signature = signature
    this.secretIndex = secretIndex
  }

  setDispatched(message: Message, startedAt: number | undefined): void {
    this.dispatched = message
    this.startedAt = startedAt
  }

  setHandled(): void {
    this.#stage = 'confirm'
  }

  /** The deadline answers this error, however long the cleanup after it takes. */
  setFailure(error: HooklineError): void {
    this.#failure = error
  }

  /** Ends the delivery: its signal fires. Returns the error to answer. */
  expire(error: HooklineError = this.#failure ?? LATE[this.#stage]()): HooklineError {
    this.expired = error
    if (this.#stage === 'secret') this.bytes = NO_BYTES // Not verified. A provider that hangs would hold them.
    this.#abort?.abort(error)
    return error
  }
}

const NO_BYTES = new Uint8Array()

function sha256(data: Uint8Array | string): string {
  return createHash('sha256').update(data).digest('hex')
}

/** Whether the message is at fault: sending it again would not help. */
export function isUnusable(error: unknown): error is HooklineError {
  return error instanceof HooklineError && error.status < 500
}

/** Any thrown value as an error of ours. */
export function toError(thrown: unknown): HooklineError {
  if (thrown instanceof HooklineError) return thrown
  const message = 'The endpoint could not handle the request. Got an unexpected error. See its `cause` in `onError`.'
  return new HooklineError('internal', message, { cause: thrown })
}
