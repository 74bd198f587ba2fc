/** Gathers messages of an inbox into batches, calls batch handlers with them, and limits how many messages are claimed. */

import {
  checkOptions,
  invalidOption,
  type OptionChecks,
  requireHandlerName,
  requireInteger,
  whole,
} from '../kit/checks.ts'
import { MAX_TIMER_MS } from '../kit/clock.ts'
import { createFifo } from '../kit/fifo.ts'
import { BODY_LIMIT } from '../protocol/limits.ts'
import type { Message, ReceivedMessage } from '../protocol/message.ts'
import type { Room } from '../store/queue-types.ts'
import type { Attempt } from './attempt.ts'
import type { Delivery, TransactionClient } from './delivery.ts'
import type { HandlerOptions } from './selection.ts'
import { inTransaction, type Member } from './transaction.ts'

/**
 * A function that handles many messages at a time. It may return a promise, which is awaited. The value that it returns is ignored. If the
 * function throws or rejects, all of the messages are retried.
 */
export type BatchHandler<M = Message> = (
  messages: readonly M[],
  deliveries: readonly Delivery[],
  batch: MessageBatch,
) => unknown

/** The third argument of a batch handler: the signal, the transaction and the failures of the batch as a whole. */
export interface MessageBatch {
  /**
   * Aborts when `inbox.timeoutMs` has passed since the first message was claimed, when `work` ends, or when the grace period of `close`
   * ends. Another attempt then follows for each message, unless the message becomes a dead letter.
   */
  readonly signal: AbortSignal
  /**
   * With `inbox.transactional`, a `pg` client in the transaction of the batch, as `delivery.db` is for a single message. Undefined
   * otherwise.
   */
  readonly db: TransactionClient | undefined
  /**
   * Makes one message of the batch fail. That message is retried; the other messages are done when the handler ends. What the handler wrote
   * through `db` for the failed message is not undone: call `fail` before you write anything for the message, or roll back to a savepoint.
   *
   * @param index The index of the message in `messages`.
   * @throws TypeError for an index that no message has.
   */
  fail(index: number, error: unknown): void
}

/** The options of a batch handler. The handler is called when a batch reaches one of these three limits, or when the receiver closes. */
export interface BatchOptions extends Pick<HandlerOptions, 'name'> {
  /** The maximum number of messages in a batch. Default 500. */
  readonly maxMessages?: number
  /**
   * How long the first message of a batch waits for others, in milliseconds. Must be less than `inbox.timeoutMs`. With 0, it waits only for
   * the messages that were claimed with it. Default 1000.
   */
  readonly maxWaitMs?: number
  /**
   * The maximum size of a batch, in bytes: the total size of its messages as stored, including their headers. A larger message is a batch
   * of its own. The inbox claims no more messages while it holds as many bytes as the `maxBytes` of all batch handlers together. It expects
   * messages of the average size of the latest ones, so it may hold more bytes for a moment when larger messages follow. Default 8 388 608
   * (8 MiB).
   */
  readonly maxBytes?: number
}

const CHECKS: OptionChecks<BatchOptions> = {
  name: requireHandlerName,
  maxMessages: whole(1),
  maxWaitMs: whole(0, MAX_TIMER_MS),
  maxBytes: whole(1),
}

interface Gathered {
  readonly attempt: Attempt
  resolve(): void
  reject(error: unknown): void
}

/** A batch handler. An attempt calls {@link add} in place of the handler, and awaits the result. */
export class BatchedHandler {
  readonly maxMessages: number
  readonly maxBytes: number
  readonly #maxWaitMs: number
  readonly #name: string
  readonly #handler: BatchHandler<ReceivedMessage>
  #gathered: Gathered[] = []
  #bytes = 0
  #stopTimer: (() => void) | undefined
  #isClosing = false

  /**
   * @param timeoutMs The option `timeoutMs` of the inbox.
   */
  constructor(handler: BatchHandler<ReceivedMessage>, options: BatchOptions, timeoutMs: number) {
    checkOptions('onBatch', options, CHECKS)
    const { name = '', maxMessages = 500, maxWaitMs = 1_000, maxBytes = 8 * 1024 * 1024 } = options
    if (maxWaitMs >= timeoutMs) {
      const advice = 'Pass a smaller value, or raise `inbox.timeoutMs`.'
      throw invalidOption('maxWaitMs', `must be less than \`inbox.timeoutMs\` (${timeoutMs})`, `${maxWaitMs}`, advice)
    }
    this.#handler = handler
    this.#name = name
    this.maxMessages = maxMessages
    this.#maxWaitMs = maxWaitMs
    this.maxBytes = maxBytes
  }

  /** Adds the message of an attempt. Resolves when the handler has handled the message, and rejects when it has failed. */
  add(attempt: Attempt): Promise<void> {
    const { bytes = 0 } = attempt.batching ?? {}
    if (this.#bytes + bytes > this.maxBytes) this.#callNow()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#gathered.push({ attempt, resolve, reject })
    this.#bytes += bytes
    if (this.#gathered.length === this.maxMessages || this.#bytes >= this.maxBytes) this.#callNow()
    else this.#callLater()
    return promise
  }

  /** Calls the handler with the messages that are waiting. From now on, no message waits for others. */
  close(): void {
    this.#isClosing = true
    this.#stopTimer?.()
    this.#stopTimer = undefined
    if (this.#gathered.length > 0) this.#callLater()
  }

  #callLater(): void {
    const [{ attempt } = {}] = this.#gathered
    if (attempt === undefined || this.#stopTimer !== undefined) return
    const mayWait = !this.#isClosing && attempt.batching?.isAlone === false
    const timer = attempt.clock.setTimeout(() => this.#callNow(), mayWait ? this.#maxWaitMs : 0)
    this.#stopTimer = () => attempt.clock.clearTimeout(timer)
  }

  /** Closes the batch, and calls the handler. Leaves out messages whose attempts have already ended, because they will be handled again. */
  #callNow(): void {
    this.#stopTimer?.()
    this.#stopTimer = undefined
    const [first, ...others] = this.#gathered.filter(({ attempt }) => attempt.deadline.error === undefined)
    this.#gathered = []
    this.#bytes = 0
    if (first !== undefined) void this.#call([first, ...others])
  }

  async #call(gathered: readonly [Gathered, ...Gathered[]]): Promise<void> {
    const failures = new Map<number, unknown>()
    const call = async (db?: TransactionClient): Promise<void> => {
      const [{ attempt: first }] = gathered
      const fail = (index: number, error: unknown): void => {
        failures.set(requireInteger('fail: index', index, 0, gathered.length - 1), error)
      }
      const messages = gathered.map(({ attempt }) => attempt.message)
      const deliveries = gathered.map(({ attempt }) => attempt.delivery)
      await this.#handler(messages, deliveries, { signal: first.delivery.signal, db, fail })
    }
    const [member, ...others] = gathered.flatMap(({ attempt }) => attempt.batching?.member ?? [])
    try {
      if (member === undefined) await call()
      else {
        const members: readonly [Member, ...Member[]] = [member, ...others]
        const callIn = (db: TransactionClient) =>
          call(db).then(() => members.filter((_, index) => !failures.has(index)))
        await inTransaction(members, callIn, this.#name)
      }
    } catch (error) {
      for (const { reject } of gathered) reject(error)
      return
    }
    for (const [index, { resolve, reject }] of gathered.entries()) {
      if (failures.has(index)) reject(failures.get(index))
      else resolve()
    }
  }
}

/** A message that the inbox holds in memory. */
export interface Held {
  readonly bytes: number
  /** A promise that resolves when the handlers may begin; undefined if they may begin immediately. */
  readonly place: Promise<void> | undefined
  /** Frees the place of this message, if it has one, so that the handlers of another message may begin. Only the first call has an effect. */
  leavePlace(): void
  leave(): void
}

/**
 * Limits how many messages the inbox holds while some of them wait in batches. Handlers of single messages are still called for at most
 * `concurrency` messages at a time: only that many messages have a place. While a message waits for a place, no more messages are claimed.
 */
export class BatchRoom implements Room {
  #places: number
  readonly #waiting = createFifo<() => void>()
  #bytesLeft: number
  /**
   * The moving average of message sizes, in bytes. It starts at the maximum, because many large messages at the start could fill the
   * memory.
   */
  #meanBytes = BODY_LIMIT
  readonly #wake: () => void

  /**
   * @param wake Makes the queue claim again.
   */
  constructor(concurrency: number, maxBytes: number, wake: () => void) {
    this.#places = concurrency
    this.#bytesLeft = maxBytes
    this.#wake = wake
  }

  count(): number {
    return this.#waiting.size > 0 ? 0 : Math.max(0, Math.ceil(this.#bytesLeft / this.#meanBytes))
  }

  nextAt(): undefined {
    return undefined
  }

  enter(bytes: number, needsPlace: boolean): Held {
    this.#meanBytes += (bytes - this.#meanBytes) / 16
    this.#bytesLeft -= bytes
    let hasPlace = needsPlace
    const leavePlace = (): void => {
      if (hasPlace) this.#freePlace()
      hasPlace = false
    }
    const leave = (): void => {
      leavePlace()
      this.#bytesLeft += bytes
    }
    return { bytes, place: needsPlace ? this.#takePlace() : undefined, leavePlace, leave }
  }

  #takePlace(): Promise<void> | undefined {
    if (this.#places === 0) return new Promise((resolve) => this.#waiting.push(resolve))
    this.#places -= 1
    return undefined
  }

  #freePlace(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#places += 1
    else next()
    if (next !== undefined && this.#waiting.size === 0) this.#wake()
  }
}
