/** A dedupe store that remembers handled messages in memory, for a receiver that runs in one process. */

import { aClock, checkOptions, type OptionChecks, whole } from '../kit/checks.ts'
import { type Clock, systemClock } from '../kit/clock.ts'
import { HooklineError } from '../protocol/error.ts'
import type { Dedupe } from './dedupe.ts'

/** The options of `memoryDedupe`. */
export interface MemoryDedupeOptions {
  /** How long a handled message is remembered, in milliseconds. Default 86 400 000 (24 hours). */
  readonly dedupeWindowMs?: number
  /**
   * How long a claim lasts if it is neither confirmed nor released, in milliseconds. Default 60 000. Set it to more than your slowest
   * handler takes: once a claim has expired, a copy of its message may be handled while the first handler is still running.
   */
  readonly leaseMs?: number
  /**
   * The maximum number of keys to hold, both of handled messages and of messages that are being handled. Default 100 000. When the store is
   * full, it forgets the message that was handled longest ago: a later copy of that message is handled again. The store never forgets a
   * message that is being handled; when it holds only such messages, a claim throws `dedupe_unavailable`.
   */
  readonly maxKeys?: number
  /** The source of the time. Default: the clock of the machine. */
  readonly clock?: Clock
}

const CHECKS: OptionChecks<MemoryDedupeOptions> = {
  dedupeWindowMs: whole(1, Number.MAX_SAFE_INTEGER),
  leaseMs: whole(1, Number.MAX_SAFE_INTEGER),
  maxKeys: whole(1, 2 ** 24 - 1), // The maximum size of a Map.
  clock: aClock,
}

/**
 * Creates a dedupe store that keeps its keys in memory. It measures durations with a monotonic clock.
 *
 * @throws TypeError that names the invalid option.
 * @example
 * const receiver = createReceiver({ secret, dedupe: memoryDedupe() })
 */
export function memoryDedupe(options: MemoryDedupeOptions = {}): Dedupe {
  checkOptions('memoryDedupe', options, CHECKS)
  const { dedupeWindowMs = 24 * 60 * 60_000, leaseMs = 60_000, maxKeys = 100_000, clock = systemClock } = options
  const claims = createExpiring()
  const done = createExpiring()
  let isClosed = false

  /** If the store is full, forgets the message that was handled longest ago. Returns whether there is room for another key. */
  function makeRoom(): boolean {
    if (claims.size + done.size < maxKeys) return true
    const oldest = done.oldest()
    if (oldest !== undefined) done.remove(oldest)
    return oldest !== undefined
  }

  function remember(key: string): void {
    const now = clock.monotonic()
    if (done.get(key, now) === undefined && makeRoom()) done.add(key, now + dedupeWindowMs)
  }

  return {
    claim(key) {
      if (isClosed) {
        const message = 'The dedupe store is closed. Create a new store.'
        throw new HooklineError('shutting_down', message)
      }
      const now = clock.monotonic()
      forgetExpired(claims, now)
      forgetExpired(done, now)
      if (done.get(key, now) !== undefined) return 'done'
      if (claims.get(key, now) !== undefined) return 'in_progress'
      if (!makeRoom()) {
        const message = `The dedupe store is full: all of its ${maxKeys} messages (\`maxKeys\`) are still being handled. Raise \`maxKeys\`.`
        throw new HooklineError('dedupe_unavailable', message)
      }
      const claim = claims.add(key, now + leaseMs)
      let isOver = false
      return {
        confirm() {
          if (isOver || isClosed) return
          isOver = true
          const holder = claims.get(key, clock.monotonic())
          if (holder !== undefined && holder !== claim) return
          claims.remove(claim)
          remember(key)
        },
        release() {
          isOver = true
          claims.remove(claim)
        },
      }
    },
    close() {
      isClosed = true
      claims.clear()
      done.clear()
    },
  }
}

interface ExpiringKey {
  readonly key: string
  readonly until: number
}

/** Creates a list of keys that expire. They must be added in the order in which they expire. */
function createExpiring() {
  const entries = new Map<string, ExpiringKey>()
  // The iterator is kept between calls, because a new one would step over every entry that was removed since the Map was last compacted.
  let iterator = entries.values()
  let first: ExpiringKey | undefined

  return {
    get size() {
      return entries.size
    },
    get(key: string, now: number): ExpiringKey | undefined {
      const entry = entries.get(key)
      return entry !== undefined && entry.until > now ? entry : undefined
    },
    oldest(): ExpiringKey | undefined {
      if (first !== undefined && entries.get(first.key) === first) return first
      let next = iterator.next()
      if (next.done) {
        iterator = entries.values()
        next = iterator.next()
      }
      first = next.value
      return first
    },
    add(key: string, until: number): ExpiringKey {
      const entry = { key, until }
      entries.delete(key) // Deleted first, so that the new entry goes to the end.
      entries.set(key, entry)
      return entry
    },
    remove(entry: ExpiringKey): void {
      if (entries.get(entry.key) === entry) entries.delete(entry.key)
    },
    clear: () => entries.clear(),
  }
}

/** Forgets up to two keys that have expired. Two for each claim are enough, because a claim adds at most one. */
function forgetExpired(keys: ReturnType<typeof createExpiring>, now: number): void {
  for (let left = 2; left > 0; left -= 1) {
    const oldest = keys.oldest()
    if (oldest === undefined || oldest.until > now) return
    keys.remove(oldest)
  }
}
