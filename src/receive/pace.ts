/** Limits how many messages per second an inbox, or one of its handlers, gets in this process. */

import type { Clock } from '../kit/clock.ts'
import { createTokenBucket } from '../kit/token-bucket.ts'
import type { Room } from '../store/queue-types.ts'

/** Creates a room that limits the claims of an inbox. The caller takes a token for each message that it begins to handle. */
export function createRoom(maxPerSecond: number, clock: Clock): Room & { take(): void } {
  const bucket = createTokenBucket(maxPerSecond)
  return {
    count: () => bucket.count(clock.monotonic()),
    nextAt: () => new Date(clock.now() + bucket.nextAt(clock.monotonic()) - clock.monotonic()),
    take: () => bucket.take(clock.monotonic()),
  }
}

/** Returns a room that allows only what both rooms allow. */
export function smallerRoom(one: Room | undefined, other: Room | undefined): Room | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return {
    count: () => Math.min(one.count(), other.count()),
    nextAt: () => (one.count() === 0 ? one.nextAt() : other.nextAt()),
  }
}

const BURST_MS = 100

/** Gives each message of a handler its turn: the earliest time at which the handler gets the message. */
export class Pace {
  readonly #maxPerSecond: number
  readonly #clock: Clock
  /** Holds the tokens of one second, because an engine that looks for due jobs twice a second finds the jobs of half a second at once. */
  readonly #bucket: ReturnType<typeof createTokenBucket>
  /** When the next free turn begins, on the monotonic clock. */
  #freeAt = Number.NEGATIVE_INFINITY

  constructor(maxPerSecond: number, clock: Clock) {
    this.#maxPerSecond = maxPerSecond
    this.#clock = clock
    this.#bucket = createTokenBucket(maxPerSecond, 1_000)
  }

  /**
   * Returns undefined if the message may be handled now; otherwise, the time of its turn, in milliseconds since the epoch. A message
   * without a turn gets one after all earlier turns, so that a message that has a turn waits only once.
   *
   * @param turn The time that an earlier call returned for this message.
   */
  turnOf(turn?: number): number | undefined {
    const now = this.#clock.monotonic()
    const toWallClock = this.#clock.now() - now
    if (turn !== undefined && turn > this.#clock.now()) return turn
    const intervalMs = 1_000 / this.#maxPerSecond
    const isFree = turn !== undefined || this.#freeAt + intervalMs - now <= Math.max(BURST_MS, intervalMs)
    const begins = Math.max(this.#freeAt, now)
    if (isFree && this.#bucket.count(now) > 0) {
      this.#bucket.take(now)
      if (turn === undefined) this.#freeAt = begins + intervalMs
      return undefined
    }
    const at = Math.max(begins, this.#bucket.nextAt(now))
    this.#freeAt = at + intervalMs
    return Math.ceil(at + toWallClock)
  }
}
