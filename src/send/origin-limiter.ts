/** Limits how many POSTs to one origin are under way at a time; the others wait. */

import { createFifo, type Fifo } from '../kit/fifo.ts'
import { type DispatcherLike, type PendingPost, type PostRequest, type PostTiming, post } from '../kit/post.ts'
import type { Attempt } from './sender-types.ts'
import { toAttempt } from './url-attempt.ts'
import type { Target } from './webhooks.ts'

export type AttemptRequest = Pick<PostRequest, 'headers' | 'body'>

export interface Connection extends DispatcherLike {
  /** Closes the connection. Its promise never rejects. */
  destroy?(): Promise<void>
}

/** A place for one attempt at a time. There are as many as were ever needed at once: nothing comes and goes with an attempt. */
interface Slot {
  connection: Connection | undefined
  underWay: PendingPost | undefined
}

export class OriginLimiter {
  readonly #open: () => Connection
  readonly #limit: number
  readonly #timing: PostTiming
  readonly #slots: Slot[] = []
  readonly #idle: Slot[] = [] // The one that was used last on top: its connection is the least likely to have gone.
  readonly #waiting: Fifo<(slot: Slot) => void> = createFifo()
  readonly #drains: (() => void)[] = []

  constructor(open: () => Connection, limit: number, timing: PostTiming) {
    this.#open = open
    this.#limit = limit
    this.#timing = timing
  }

  /** Makes an attempt. It begins, and its timeout with it, when fewer than the limit are under way. */
  post(target: Target, request: AttemptRequest, done: (attempt: Attempt) => void): void {
    const slot = this.#findSlot()
    if (slot === undefined) this.#waiting.push((free) => this.#start(free, target, request, done))
    else this.#start(slot, target, request, done)
  }

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

  #start(slot: Slot, target: Target, { headers, body }: AttemptRequest, done: (attempt: Attempt) => void): void {
    const { clock } = this.#timing
    const at = clock.now()
    const startedAt = clock.monotonic()
    const { origin, path } = target
    slot.connection ??= this.#open()
    slot.underWay = post(slot.connection, { origin, path, headers, body }, this.#timing, (outcome) => {
      slot.underWay = undefined
      if (outcome.error !== undefined) this.#close(slot)
      this.#startNext(slot)
      done(toAttempt(target, outcome, new Date(at), Math.round(clock.monotonic() - startedAt)))
    })
  }

  /** A connection that failed may still be about to fail: it would take the next attempt with it. */
  #close(slot: Slot): void {
    const { connection } = slot
    slot.connection = undefined
    queueMicrotask(() => void connection?.destroy?.()) // Not at once: undici may be in the middle of its work.
  }

  #startNext(slot: Slot): void {
    const next = this.#waiting.shift()
    if (next !== undefined) {
      queueMicrotask(() => next(slot)) // For the same reason.
    } else {
      this.#idle.push(slot)
      if (this.#idle.length === this.#slots.length) for (const resolve of this.#drains.splice(0)) resolve()
    }
  }
}

const CLOSED = Object.assign(new Error('a sender that was closed'), { code: 'UND_ERR_CLOSED' })
