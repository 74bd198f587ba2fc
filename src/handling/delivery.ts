/** A delivery: what a handler learns about a message beside the message itself, and how far its handling has come. */

import { createHash } from 'node:crypto'
import type { BodySource, EndpointBody } from '../http/body.ts'
import type { EndpointHeaders } from '../http/endpoint.ts'
import type { HooklineError } from '../message/error.ts'
import type { Message, MessageType } from '../message/message.ts'
import type { Key } from '../message/signature.ts'
import { LATE, type Stage } from './failure.ts'

/** How a message arrived. Some fields are computed when they are read: pass the object on, a copy by spread loses them. */
export interface Delivery {
  /**
   * Identifies the delivery and every retry of it, which are the same bytes: the verified signature; of a receiver with many
   * sources, the SHA-256 of that and of the source; the SHA-256 of the bytes when unsigned; of an element of a batch, that of
   * the signature, its place and its bytes. Use it, not `messageId`, to recognise duplicates: a `messageId` can be guessed.
   */
  readonly id: string
  /** The exact bytes of the body, or of the element of a batch. */
  readonly bytes: Uint8Array
  /** Where the body was found: `stream` unless a parser ran first. */
  readonly bodySource: BodySource
  /** When the request arrived. */
  readonly receivedAt: Date
  /** The headers of the request, names in lower case. */
  readonly headers: EndpointHeaders
  /** Whether a signature of these bytes was checked; false under `allowUnsigned`, and where a batch signs its first element only. */
  readonly verified: boolean
  /** The source whose secret made the signature, of a receiver with many; undefined for a receiver with one. */
  readonly source: string | undefined
  /** Which of your secrets made the signature of the request, counted from 0; undefined when unsigned. */
  readonly secretIndex: number | undefined
  /**
   * Fires at the deadline, when the sender is answered that it should retry: unfinished work can stop. From an inbox: after
   * `timeoutMs`, or when the grace of `close` is over; the message is handled again.
   */
  readonly signal: AbortSignal
}

/** The place of an element in its batch, as far as the signature of its own bytes does not tell it from others. */
export interface BatchElement {
  /** The signature of the request; the SHA-256 of its body when unsigned. */
  readonly of: string
  /** Counted from 0. */
  readonly index: number
}

/** The result of a request. A failure ends what has not ended of a batch. */
export interface BatchResult {
  readonly error?: HooklineError
  readonly elements?: readonly ReceivedElement[]
}

/** What became of an element of a batch. */
export type ReceivedElement =
  | { readonly ok: true; readonly message: Message; readonly delivery: Delivery }
  | { readonly ok: false; readonly error: HooklineError; readonly delivery: Delivery }

/** A delivery in progress: filled in step by step, its costly parts only when they are read. */
export class OpenDelivery implements Delivery {
  readonly headers: EndpointHeaders
  bytes: Uint8Array = NO_BYTES
  bodySource: BodySource = 'stream'
  source: string | undefined
  signature: string | undefined
  secretIndex: number | undefined
  /** Undefined for a message that arrived alone, and for the first of a batch when its own bytes are signed. */
  element: BatchElement | undefined
  /** Whether the signature of the request covers other bytes than these: they go to handlers that ask for such alone. */
  isUncovered = false
  /** Of a batch: the delivery of the element that is being handled. */
  current: OpenDelivery | undefined
  /** Of a batch: adds what became of its elements to the result of the request. */
  complete: (<Result extends BatchResult>(result: Result) => Result) | undefined
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
    const { signature, source, element } = this
    if (element !== undefined) {
      return sha256(JSON.stringify([element, source, this.isUncovered, sha256(this.bytes)]))
    }
    if (signature === undefined) return sha256(this.bytes)
    return source === undefined ? signature : sha256(`${signature}${source}`)
  }

  /** A key that you chose for the message, apart from the same key of another source, and from one that anyone could send. */
  within(key: string): string {
    if (this.isUncovered) return JSON.stringify([this.source, key, 'unverified'])
    return this.source === undefined ? key : JSON.stringify([this.source, key])
  }

  get receivedAt(): Date {
    return new Date(this.#receivedAt)
  }

  get verified(): boolean {
    return this.signature !== undefined && !this.isUncovered
  }

  /** Checks a signature of the bytes. A batch that may be signed otherwise checks that, too. */
  isSignedBy(key: Key, signature: string): boolean {
    return key.matches(this.bytes, signature)
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
  expire(error: HooklineError = this.current?.expire() ?? this.#failure ?? LATE[this.#stage]()): HooklineError {
    this.expired = error
    if (this.#stage === 'secret') this.bytes = NO_BYTES // Not verified. A provider that hangs would hold them.
    this.#abort?.abort(error)
    return error
  }
}

const NO_BYTES = new Uint8Array()

/** The SHA-256 of data, in hexadecimal digits. */
export function sha256(data: Uint8Array | string): string {
  return createHash('sha256').update(data).digest('hex')
}
