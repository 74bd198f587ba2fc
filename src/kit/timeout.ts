/** Waits for a promise for a limited time. */

import { type Clock, systemClock } from './clock.ts'

export const TIMED_OUT: unique symbol = Symbol('timed out')

/** Settles as the promise does, or resolves to TIMED_OUT after `ms` milliseconds. The work behind the promise continues. */
export async function withTimeout<T>(promise: Promise<T>, ms: number, clock: Clock): Promise<T | typeof TIMED_OUT> {
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

/** Waits for `ms` milliseconds, or until the signal aborts. Resolves in both cases, so the caller must check the signal. */
export async function waitUnlessAborted(ms: number, clock: Clock, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return
  const { promise: aborted, resolve } = Promise.withResolvers<void>()
  const stop = (): void => resolve()
  signal?.addEventListener('abort', stop)
  await withTimeout(aborted, ms, clock)
  signal?.removeEventListener('abort', stop)
}

/** Creates a list of waits for an engine, timed by the machine's clock. When the queue closes, all of the waits can be ended at once. */
export function createPending() {
  const rejects = new Set<(error: Error) => void>()
  return {
    /** Waits as {@link withTimeout} does, and rejects when `rejectAll` is called. */
    async wait<T>(answer: Promise<T>, ms: number): Promise<T | typeof TIMED_OUT> {
      const { promise: ended, reject } = Promise.withResolvers<never>()
      rejects.add(reject)
      try {
        return await withTimeout(Promise.race([answer, ended]), ms, systemClock)
      } finally {
        rejects.delete(reject)
      }
    },
    rejectAll(error: Error): void {
      for (const reject of rejects) reject(error)
    },
  }
}
