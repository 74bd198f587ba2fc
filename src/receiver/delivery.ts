/** What a handler is told about a message beside the message itself. */

import { createHash } from 'node:crypto'
import type { BodySource, EndpointBody } from '../protocol/body.ts'
import type { EndpointHeaders } from '../protocol/endpoint.ts'
import { HooklineError } from '../protocol/error.ts'
import type { Message } from '../protocol/message.ts'

/** How a message arrived. Some fields are computed when they are read: pass the object on, a copy by spread loses them. */
export interface Delivery {
  /**
   * Identifies the delivery and every retry of it, which are the same bytes: the verified signature, or the SHA-256 of
   * the bytes when unsigned. Use it, not `messageId`, to tell duplicates: a `messageId` can be guessed.
   */
  readonly id: string
  /** The exact bytes of the body. */
  readonly bytes: Uint8Array
  /** Where the body was found: `stream` unless a parser ran first. */
  readonly source: BodySource
  /** When the request arrived. */
  readonly receivedAt: Date
  /** The headers of the request, names in lower case. */
  readonly headers: EndpointHeaders
  /** Whether the signature was checked; false only under `allowUnsigned`. */
  readonly verified: boolean
  /** Which of your secrets made the signature, counted from 0; undefined when unsigned. */
  readonly secretIndex: number | undefined
  /**
   * Fires at the deadline: the sender has been told to come back, what is not done yet can stop. From an inbox: after
   * `timeoutMs`, or when the grace of `close` is over; the message is handed out again.
   */
  readonly signal: AbortSignal
}

/** What a delivery waits for; its deadline says which error that is. */
type Stage = 'body' | 'secret' | 'inbox' | 'dedupe' | 'handlers' | 'confirm'

const LATE: Readonly<Record<Stage, () => HooklineError>> = {
  body: () => new HooklineError('body_timeout', 'The body did not arrive in time.'),
  secret: () => new HooklineError('secret_unavailable', 'The secret provider gave no secret in time.'),
  inbox: () => new HooklineError('inbox_unavailable', 'The inbox did not store the message in time. Send it again.'),
  dedupe: () => new HooklineError('dedupe_unavailable', 'Whether this is a duplicate was not known in time.'),
  confirm: () => new HooklineError('dedupe_unavailable', 'The message was handled; that was not noted in time.'),
  handlers: () => new HooklineError('handler_timeout', 'The message was not handled in time. Send it again.'),
}

/** A delivery under way: filled in step by step, its costly parts only when somebody looks. */
export class OpenDelivery implements Delivery {
  readonly headers: EndpointHeaders
  bytes: Uint8Array = NO_BYTES
  source: BodySource = 'stream'
  secretIndex: number | undefined
  readonly #receivedAt: number
  #stage: Stage = 'body'
  #expired: HooklineError | undefined
  #failure: HooklineError | undefined
  #handed: Message | undefined
  #startedAt: number | undefined
  #signature: string | undefined
  #abort: AbortController | undefined

  constructor(headers: EndpointHeaders, receivedAt: number) {
    this.headers = headers
    this.#receivedAt = receivedAt
  }

  get id(): string {
    return this.#signature ?? createHash('sha256').update(this.bytes).digest('hex')
  }

  get receivedAt(): Date {
    return new Date(this.#receivedAt)
  }

  get verified(): boolean {
    return this.#signature !== undefined
  }

  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController()
      if (this.#expired !== undefined) this.#abort.abort(this.#expired)
    }
    return this.#abort.signal
  }

  get isExpired(): boolean {
    return this.#expired !== undefined
  }

  /** What was answered, or told, when time was up; undefined before. */
  get expired(): HooklineError | undefined {
    return this.#expired
  }

  /** The message as its handlers got it; undefined while they have not. */
  get handed(): Message | undefined {
    return this.#handed
  }

  /** When they got it, by a monotonic clock; undefined when nobody wants to know. */
  get startedAt(): number | undefined {
    return this.#startedAt
  }

  /** Whether they are done, and all that is left is to note it. */
  get isHandled(): boolean {
    return this.#stage === 'confirm'
  }

  /** Goes on to the next stage. Throws when the deadline has passed: nobody waits for the rest. */
  enter(stage: Stage): void {
    if (this.#expired !== undefined) throw this.#expired
    this.#stage = stage
  }

  setBody({ bytes, source }: EndpointBody): void {
    this.bytes = bytes
    this.source = source
  }

  confirm(signature: string, secretIndex: number): void {
    this.#signature = signature
    this.secretIndex = secretIndex
  }

  /** The handlers get the message now. */
  handOver(message: Message, startedAt: number | undefined): void {
    this.#handed = message
    this.#startedAt = startedAt
  }

  /** The handlers are done. */
  complete(): void {
    this.#stage = 'confirm'
  }

  /** This is what went wrong, however long what comes now takes. */
  fail(error: HooklineError): void {
    this.#failure = error
  }

  /** Time is up: returns the error to answer. */
  expire(error: HooklineError = this.#failure ?? LATE[this.#stage]()): HooklineError {
    this.#expired = error
    this.#abort?.abort(error)
    return error
  }
}

const NO_BYTES = new Uint8Array()
