/** The marks of a queue, as this process knows them. The process reads the changes of other processes every second. */

import { createHmac } from 'node:crypto'
import { invalidOption, kindOf, requireText, requireTime } from '../kit/checks.ts'
import { type Clock, unref } from '../kit/clock.ts'
import type { Mark, MarkStore } from './queue-store.ts'
import type { Queue, QueueMarks } from './queue-types.ts'
import { PAGE } from './walk.ts'

/** While this mark is set, no process of the queue claims jobs. */
export const PAUSED = 'paused'
export const FOREVER: Date = new Date(8.64e15)

const EVERY_MS = 1_000
/**
 * How often all marks are read again, in milliseconds. This finds changes that were missed, for example because the engine lost its marks.
 */
const ALL_EVERY_MS = 10 * 60_000
/** How long a mark stays in the store after it has ended, in milliseconds, so that every process can read that it has ended. */
const ENDED_MS = 2 * ALL_EVERY_MS

export interface MarksOptions {
  /** The name of the queue, which is the key of the digests. */
  readonly name: string
  readonly clock: Clock
  /** Whether other processes may change the marks. */
  readonly isShared: boolean
  readonly onError: (error: unknown) => void
}

export class Marks implements QueueMarks {
  readonly #store: MarkStore
  readonly #options: MarksOptions
  /** The time at which each mark ends, in milliseconds since the epoch, keyed by its digest. */
  #ends = new Map<string, number>()
  #version = 0
  #readAt = Number.NEGATIVE_INFINITY
  #allReadAt = Number.NEGATIVE_INFINITY
  #reading: Promise<void> = Promise.resolve()
  #onRead: (() => void) | undefined
  #timer: unknown
  #isClosed = false

  constructor(store: MarkStore, options: MarksOptions) {
    this.#store = store
    this.#options = options
  }

  get size(): number {
    return this.#ends.size
  }

  readonly has = (key: string): boolean => {
    const end = this.#ends.get(this.#digestOf(key))
    return end !== undefined && end > this.#options.clock.now()
  }

  readonly set: QueueMarks['set'] = async (keys, until) => {
    if (!Array.isArray(keys))
      throw invalidOption('keys', 'must be a list of strings', kindOf(keys), "Pass a list such as ['user-1'].")
    for (const [index, key] of keys.entries()) requireText(`keys[${index}]`, key, 'user-1')
    requireTime('until', until)
    // A mark that is unset ends now, not earlier, so that it stays in the store until all processes have read that it has ended.
    const end = new Date(Math.max(until.getTime(), this.#options.clock.now()))
    const marks = [...new Set(keys)].map((key): Mark => ({ key: this.#digestOf(key), until: end }))
    for (let start = 0; start < marks.length; start += PAGE.limit) {
      await this.#store.set(marks.slice(start, start + PAGE.limit), this.#endedBefore())
    }
    await this.#readInOrder()
  }

  /** Reads the changes, unless the last read was less than a second ago. */
  async refresh(): Promise<void> {
    if (this.#options.clock.monotonic() - this.#readAt >= EVERY_MS) await this.#readInOrder()
  }

  /** Reads the marks now, and the changes of other processes from then on. Calls `onRead` after each read. */
  follow(onRead: () => void): void {
    this.#onRead = onRead
    void this.#readAgain()
  }

  close(): void {
    this.#isClosed = true
    this.#options.clock.clearTimeout(this.#timer)
  }

  async #readAgain(): Promise<void> {
    const { clock, isShared, onError } = this.#options
    let hasFailed = false
    await this.#readInOrder().catch((error) => {
      hasFailed = true
      if (!this.#isClosed) onError(error)
    })
    if (this.#isClosed || !(isShared || hasFailed)) return
    this.#timer = unref(clock.setTimeout(() => void this.#readAgain(), EVERY_MS))
  }

  #readInOrder(): Promise<void> {
    this.#reading = this.#reading.catch(() => {}).then(() => this.#readChanges())
    return this.#reading
  }

  async #readChanges(): Promise<void> {
    const { clock } = this.#options
    const [startedAt, now, endedBefore] = [clock.monotonic(), clock.now(), this.#endedBefore()]
    const readsAll = startedAt - this.#allReadAt >= ALL_EVERY_MS
    const ends = readsAll ? new Map<string, number>() : this.#ends
    let version = readsAll ? 0 : this.#version
    let hasOld = false
    for (let count = PAGE.limit; count === PAGE.limit; ) {
      const page = await this.#store.list(version, PAGE.limit)
      for (const { key, until } of page) {
        if (until.getTime() > now) ends.set(key, until.getTime())
        else ends.delete(key)
        hasOld ||= until < endedBefore
      }
      version = page.at(-1)?.version ?? version
      count = page.length
    }
    this.#ends = ends
    this.#version = version
    this.#readAt = startedAt
    if (readsAll) this.#allReadAt = startedAt
    this.#onRead?.()
    if (hasOld && this.#onRead !== undefined) await this.#store.set([], endedBefore) // Only a process with a handler deletes old marks.
  }

  #endedBefore(): Date {
    return new Date(this.#options.clock.now() - ENDED_MS)
  }

  /** Returns the digest of a key. The engine stores only digests, because marks may name people. */
  #digestOf(key: string): string {
    return createHmac('sha256', this.#options.name).update(key).digest('base64url')
  }
}

/**
 * Returns the marks of a queue.
 *
 * @throws TypeError for a queue without marks.
 */
export function requireMarks({ marks }: Pick<Queue, 'marks'>, option: string): QueueMarks {
  if (marks !== undefined) return marks
  throw new TypeError(
    `\`${option}\` needs a queue with marks. Use one of the queues of Hookline, or add \`marks\` to your store.`,
  )
}
