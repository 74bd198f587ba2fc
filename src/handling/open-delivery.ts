/** A delivery in progress: how far its handling has come, and who observes it. */

import { createHash } from 'node:crypto'
import type { BodySource, EndpointBody } from '../http/body.ts'
import type { EndpointHeaders } from '../http/endpoint.ts'
import { HooklineError } from '../message/error.ts'
import { idOfDigest } from '../message/id.ts'
import { parseJson } from '../message/json.ts'
import type { ReceivedMessage } from '../message/message.ts'
import { checkReceived } from '../message/parse.ts'
import type { Delivery, DeliveryMethod, DeliveryReplay, ReceivedElement, TransactionClient } from './delivery.ts'
import type { HandlerNames } from './diagnostics.ts'
import { DEADLINE_ERRORS, type Stage } from './failure.ts'
import type { HandlerRun, ReceiverObservers } from './observer.ts'

export interface Observed {
  readonly observers: ReceiverObservers
  readonly runs: HandlerRun[]
  readonly isStored: boolean
}

/** How far the handlers of a message in an inbox are, by their names; the empty one is that of all without a name. */
export interface Progress extends HandlerNames {
  /** In earlier attempts, too. */
  done: readonly string[]
  /** In the previous attempt, until this one calls its handlers. */
  failed: readonly string[]
  /** The names of the handlers that run; undefined for all. */
  readonly only: readonly string[] | undefined
  /** Stores what is done, while others go on. */
  readonly save: () => void
}

/** A delivery in progress: filled in step by step, its costly parts only when they are read. */
export class OpenDelivery implements Delivery {
  readonly method: DeliveryMethod
  readonly headers: EndpointHeaders
  bytes: Uint8Array = NO_BYTES
  bodySource: BodySource = 'stream'
  source: string | undefined
  signature: string | undefined
  secretIndex: number | undefined
  /** Whether the signature is made of a header that the request had in its place. */
  hasHeader = false
  wire: ReceivedMessage | undefined
  /** The message as it was dispatched to the handlers; undefined before. */
  dispatched: ReceivedMessage | undefined
  /** When it was dispatched, on a monotonic clock; undefined when nothing needs it. */
  startedAt: number | undefined
  /** The error of the deadline once it has passed, or of the shutdown that ended the delivery. */
  expired: HooklineError | undefined
  /** Undefined without an inbox: all handlers run again. */
  progress: Progress | undefined
  replay: DeliveryReplay | undefined
  #db: TransactionClient | undefined // Private, for the same reason as what observes it.
  /** Whether it was handled or stored before: nothing was done. */
  isDuplicate = false
  /** Whether no handler matched. */
  #isIgnored = false
  readonly #receivedAt: number
  #stage: Stage = 'body'
  #failure: HooklineError | undefined
  #parsed: unknown
  #invalid: HooklineError | undefined
  #result: ReceivedElement | undefined // It holds this delivery, which JSON could not write.
  #abort: AbortController | undefined
  #id: string | undefined
  #observed: Observed | undefined // Private, so that JSON and a console leave it out.

  constructor(headers: EndpointHeaders, receivedAt: number, method = 'POST') {
    this.method = method as DeliveryMethod // Others are refused.
    this.headers = headers
    this.#receivedAt = receivedAt
  }

  get id(): string {
    return this.#id ?? idOfDigest(this.#digest())
  }

  /** That of its job, the one that a key of the application makes, or that of its place in a batch. */
  set id(id: string) {
    this.#id = id
  }

  #digest(): string {
    const { signature, source, method } = this
    const other = method === 'POST' ? '' : `${method} ` // The same bytes by another method are no copy.
    // Anyone can send these bytes: they must not make the id that a key of the application makes.
    if (signature === undefined) return sha256(`${other}unsigned ${sha256(this.bytes)}`)
    return source === undefined && other === '' ? signature : sha256(`${other}${signature}${source ?? ''}`)
  }

  within(key: string): string {
    return this.source === undefined ? key : JSON.stringify([this.source, key])
  }

  /** What a log may hold: the body as text, and no headers, which may hold secrets. */
  toJSON(): object {
    const { id, method, source, receivedAt, verified, secretIndex, bodySource, bytes } = this
    return { id, method, source, receivedAt, verified, secretIndex, bodySource, bytes: new TextDecoder().decode(bytes) }
  }

  get db(): TransactionClient | undefined {
    return this.#db
  }

  set db(db: TransactionClient | undefined) {
    this.#db = db
  }

  get receivedAt(): Date {
    return new Date(this.#receivedAt)
  }

  get verified(): Delivery['verified'] {
    return this.signature !== undefined && (this.hasHeader ? 'header' : 'signature')
  }

  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController()
      if (this.expired !== undefined) this.#abort.abort(this.expired)
    }
    return this.#abort.signal
  }

  /** Undefined while nothing observes it. */
  get observed(): Observed | undefined {
    return this.#observed
  }

  get isIgnored(): boolean {
    return this.#isIgnored
  }

  /** Whether the handlers succeeded and only the dedupe store has to confirm it. */
  get isHandled(): boolean {
    return this.#stage === 'confirm'
  }

  get result(): ReceivedElement | undefined {
    return this.#result
  }

  read(takesCustom: boolean): ReceivedMessage {
    if (this.#invalid !== undefined) throw this.#invalid
    this.wire ??= checkReceived(this.#parsed ?? parseJson(this.bytes), takesCustom)
    return this.wire
  }

  /** Keeps what its bytes were parsed to. */
  setParsed(value: unknown): void {
    this.#parsed = value
  }

  setInvalid(error: HooklineError): void {
    this.#invalid = error
  }

  /** Goes on to the next stage. Throws the error of the deadline when that has passed: the rest would be in vain. */
  enter(stage: Stage): void {
    if (this.expired !== undefined) throw this.expired
    this.#stage = stage
  }

  setObserved(observers: ReceiverObservers | undefined, isStored = false): void {
    if (observers !== undefined) this.#observed = { observers, runs: [], isStored }
  }

  setBody({ bytes, source }: EndpointBody): void {
    this.bytes = bytes
    this.bodySource = source
  }

  setSignature(signature: string, secretIndex: number): void {
    this.signature = signature
    this.secretIndex = secretIndex
  }

  setDispatched(message: ReceivedMessage, startedAt: number | undefined): void {
    this.dispatched = message
    this.startedAt = startedAt
  }

  setIgnored(): void {
    this.#isIgnored = true
  }

  setHandled(): void {
    this.#stage = 'confirm'
  }

  /** The deadline answers this error, however long the cleanup after it takes. */
  setFailure(error: HooklineError): void {
    this.#failure = error
  }

  end(result: ReceivedMessage | HooklineError): void {
    this.#result =
      result instanceof HooklineError
        ? { ok: false, error: result, delivery: this }
        : { ok: true, message: result, delivery: this }
  }

  expire(error: HooklineError = this.#failure ?? DEADLINE_ERRORS[this.#stage]()): HooklineError {
    this.expired = error
    this.#abort?.abort(error)
    return error
  }

  /** Ends what may not be authentic: a provider of secrets that hangs would hold its bytes. */
  dropUnverified(): void {
    if (this.#stage === 'secret') this.bytes = NO_BYTES
  }
}

const NO_BYTES = new Uint8Array()

function sha256(data: Uint8Array | string): string {
  return createHash('sha256').update(data).digest('hex')
}
