/** Waiting for something, but not for ever. */

import type { Clock } from './clock.ts'

export const TIMED_OUT: unique symbol = Symbol('timed out')

/**
 * Waits for a promise, at most `ms` milliseconds. Resolves to its value, or to {@link TIMED_OUT} when the time is over
 * first, and then what the promise does later is ignored. Rejects as the promise does before.
 */
export async function within<T>(promise: Promise<T>, ms: number, clock: Clock): Promise<T | typeof TIMED_OUT> {
  let timer: unknown
  const timedOut = new Promise<typeof TIMED_OUT>((resolve) => {
    timer = clock.setTimeout(() => resolve(TIMED_OUT), ms)
  })
  try {
    return await Promise.race([promise, timedOut])
  } finally {
    clock.clearTimeout(timer)
  }
}
