/** Limits how many POSTs to one origin are under way at a time; further POSTs wait. */

import { AsyncLocalStorage } from 'node:async_hooks'
import { tracingChannel } from 'node:diagnostics_channel'
import { createFifo, type Fifo } from '../kit/fifo.ts'
import { type DispatcherLike, type PendingPost, type PostRequest, type PostTiming, post } from '../kit/post.ts'
import { trace } from '../kit/trace.ts'
import type { DeliverEvent } from './destination-events.ts'
import type { Attempt } from './sender-types.ts'
import { toAttempt } from './url-attempt.ts'
import type { Target } from './webhooks.ts'

export interface AttemptRequest extends Pick<PostRequest, 'headers' | 'body'> {
  /** The job that a destination posts; undefined for a sender. */
  readonly job?: PostedJob | undefined
}

/** A job as it was before the round that posts it. */
export interface PostedJob {
  readonly id: string
  /** The attempts of earlier rounds. */
  readonly attempts: readonly Attempt[]
}

const delivering = tracingChannel<object, DeliverEvent>('hookline:deliver')

export interface Connection extends DispatcherLike {
  /** Closes the connection. The promise never rejects. */
  destroy?(): Promise<void>
}

/** A slot holds one attempt at a time, and keeps its connection for the next attempt. Slots are never removed. */
interface Slot {
  connection: Connection | undefined
  underWay: PendingPost | undefined
}

export class OriginLimiter {
  readonly #openConnection: () => Connection
  readonly #limit: number
  readonly #timing: PostTiming
  readonly #slots: Slot[] = []
  readonly #idle: Slot[] = [] // A stack: the connection that was used last is the least likely to have been closed.
  readonly #waiting: Fifo<(slot: Slot) => void> = createFifo()
  readonly #drains: (() => void)[] = []

  constructor(open: () => Connection, limit: number, timing: PostTiming) {
    this.#openConnection = open
    this.#limit = limit
    this.#timing = timing
  }

  /** Makes an attempt. The attempt and its timeout begin once fewer attempts than the limit are under way. */
  post(target: Target, request: AttemptRequest, done: (attempt: Attempt) => void): void {
    const slot = this.#findSlot()
    if (slot === undefined) {
      const start = (free: Slot): void => this.#start(free, target, request, done)
      // `start` is called when another attempt ends. `bind` keeps the async context of this call, so that traces get the right parent.
      this.#waiting.push(delivering.hasSubscribers ? AsyncLocalStorage.bind(start) : start)
    } else this.#start(slot, target, request, done)
  }

  /** Ends the attempts under way with the error `closed`. Waiting attempts begin afterwards. */
  abort(): void {
    for (const { underWay } of this.#slots) underWay?.stop(CLOSED)
  }

  /** Resolves when no attempt is under way or waiting. */
  async drain(): Promise<void> {
    if (this.#idle.length < this.#slots.length) await new Promise<void>((resolve) => this.#drains.push(resolve))
  }

  async destroy(): Promise<void> {
    await Promise.all(this.#slots.map(({ connection }) => connection?.destroy?.()))
  }

  #findSlot(): Slot | undefined {
    if (this.#idle.length > 0 || this.#slots.length === this.#limit) return this.#idle.pop()
    const slot: Slot = { connection: undefined, underWay: undefined }
    this.#slots.push(slot)
    return slot
  }

  #start(slot: Slot, target: Target, request: AttemptRequest, done: (attempt: Attempt) => void): void {
    if (delivering.hasSubscribers) {
      const { promise, resolve } = Promise.withResolvers<Attempt>()
      void promise.then(done)
      trace(delivering, deliverEvent(target, request), () => this.#post(slot, target, request, resolve), promise)
    } else this.#post(slot, target, request, done)
  }

  #post(slot: Slot, target: Target, { headers, body }: AttemptRequest, done: (attempt: Attempt) => void): void {
    const { clock } = this.#timing
    const at = clock.now()
    const startedAt = clock.monotonic()
    const { origin, path } = target
    slot.connection ??= this.#openConnection()
    slot.underWay = post(slot.connection, { origin, path, headers, body }, this.#timing, (outcome) => {
      slot.underWay = undefined
      if (outcome.error !== undefined) this.#dropConnection(slot)
      this.#reuse(slot)
      done(toAttempt(target, outcome, new Date(at), Math.round(clock.monotonic() - startedAt)))
    })
  }

  /** Drops the connection of a failed attempt, because it may be broken, and the next attempt would then fail, too. */
  #dropConnection(slot: Slot): void {
    const { connection } = slot
    slot.connection = undefined
    queueMicrotask(() => void connection?.destroy?.()) // Lets undici finish first, because this code may run inside one of its callbacks.
  }

  /** Starts the attempt that has waited longest or, if none waits, keeps the slot for a later attempt. */
  #reuse(slot: Slot): void {
    const start = this.#waiting.shift()
    if (start !== undefined) {
      queueMicrotask(() => start(slot)) // Lets undici finish first, because this code may run inside one of its callbacks.
    } else {
      this.#idle.push(slot)
      if (this.#idle.length === this.#slots.length) for (const resolve of this.#drains.splice(0)) resolve()
    }
  }
}

function deliverEvent({ shown: url }: Target, { job }: AttemptRequest): DeliverEvent {
  const earlier = job?.attempts.filter((attempt) => attempt.url === url) ?? []
  return { url, id: job?.id, attempt: earlier.length + 1 }
}

// The `reason` of the attempt shows this text after "Got".
const CLOSED = Object.assign(new Error('a sender that was closed'), { code: 'UND_ERR_CLOSED' })
