/**
 * Remembers handled messages in the memory of this process: for a receiver that runs in one process.
 *
 * @module hookline/dedupe/memory
 */

import { HooklineError } from '../protocol/error.ts'
import { refuseUnknown, requireWhole } from '../protocol/options.ts'
import type { Dedupe } from './dedupe.ts'
import { createExpiring, type Expiring } from './expiring.ts'
import { type DedupeTimes, readShared, requireKey, SHARED } from './settings.ts'

export type { Claim, Claimed, Dedupe } from './dedupe.ts'
export type { DedupeTimes } from './settings.ts'

/** What `memoryDedupe` takes. */
export interface MemoryDedupeOptions extends DedupeTimes {
  /**
   * Most keys, of messages that are being handled and of those that were. Default 100 000. When it is full, the message
   * that was handled the longest ago is forgotten: a copy of it that still comes is handled again. One that is being
   * handled is never forgotten; when there is nothing else, a claim throws `dedupe_unavailable`.
   */
  readonly maxKeys?: number
}

/**
 * Makes a store that ends with the process. It goes by a clock that nobody sets.
 *
 * @throws TypeError that names the option.
 * @example
 * const receiver = createReceiver({ secret, dedupe: memoryDedupe() })
 */
export function memoryDedupe(options: MemoryDedupeOptions = {}): Dedupe {
  if (typeof options !== 'object' || options === null) throw new TypeError('memoryDedupe: its options are an object.')
  refuseUnknown(options, [...SHARED, 'maxKeys'])
  const { windowMs, leaseMs, clock } = readShared(options)
  const maxKeys = requireWhole('maxKeys', options.maxKeys ?? 100_000, 1, 2 ** 24 - 1) // What a Map holds.
  const claims = createExpiring()
  const done = createExpiring()
  let isClosed = false

  /** Makes room for one more key, if it can. */
  function makeRoom(): boolean {
    if (claims.size + done.size < maxKeys) return true
    const oldest = done.oldest()
    if (oldest !== undefined) done.remove(oldest)
    return oldest !== undefined
  }

  function confirm(key: string): void {
    const now = clock.monotonic()
    if (done.get(key, now) === undefined && makeRoom()) done.add(key, now + windowMs)
  }

  return {
    claim(key) {
      requireKey(key)
      if (isClosed) throw new HooklineError('shutting_down', 'The store of handled messages is closed.')
      const now = clock.monotonic()
      forgetEnded(claims, now)
      forgetEnded(done, now)
      if (done.get(key, now) !== undefined) return 'done'
      if (claims.get(key, now) !== undefined) return 'in_progress'
      if (!makeRoom()) {
        throw new HooklineError('dedupe_unavailable', `As many messages as maxKeys (${maxKeys}) are being handled.`)
      }
      const claim = claims.add(key, now + leaseMs)
      let isSettled = false
      return {
        confirm() {
          if (isSettled || isClosed) return
          isSettled = true
          const holder = claims.get(key, clock.monotonic())
          if (holder !== undefined && holder !== claim) return
          claims.remove(claim)
          confirm(key)
        },
        release() {
          isSettled = true
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

/** Forgets some of the keys that ended. A claim adds at most one to each store, so this keeps pace. */
function forgetEnded(keys: Expiring, now: number): void {
  for (let left = 2; left > 0; left -= 1) {
    const oldest = keys.oldest()
    if (oldest === undefined || oldest.until > now) return
    keys.remove(oldest)
  }
}
