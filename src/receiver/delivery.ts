/** What a handler is told about a message beside the message itself. */

import { createHash } from 'node:crypto'
import type { BodySource, EndpointBody } from '../protocol/body.ts'
import type { EndpointHeaders } from '../protocol/endpoint.ts'
import { HooklineError } from '../protocol/error.ts'

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
  /** Fires at the deadline: the sender has been told to come back, what is not done yet can stop. */
  readonly signal: AbortSignal
}

/** What a delivery waits for; its deadline says which error that is. */
type Stage = 'body' | 'secret' | 'handlers'

const LATE: Readonly<Record<Stage, () => HooklineError>> = {
  body: () => new HooklineError('body_timeout', 'The body did not arrive in time.'),
  secret: () => new HooklineError('secret_unavailable', 'The secret provider gave no secret in time.'),
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

  /** The deadline has passed: returns the error to answer. */
  expire(): HooklineError {
    this.#expired = LATE[this.#stage]()
    this.#abort?.abort(this.#expired)
    return this.#expired
  }
}

const NO_BYTES = new Uint8Array()
