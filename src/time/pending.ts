/** Answers of an engine that are waited for: each for a bounded time, and none longer than until the queue closes. */

import { systemClock } from './clock.ts'
import { type TIMED_OUT, within } from './timeout.ts'

export interface Pending {
  /** As `within`, by the machine's clock, as sockets wait. Rejects when {@link rejectAll} is called before. */
  wait<T>(answer: Promise<T>, ms: number): Promise<T | typeof TIMED_OUT>
  rejectAll(error: Error): void
}

export function createPending(): Pending {
  const rejects = new Set<(error: Error) => void>()
  return {
    async wait(answer, ms) {
      const { promise: ended, reject } = Promise.withResolvers<never>()
      rejects.add(reject)
      try {
        return await within(Promise.race([answer, ended]), ms, systemClock)
      } finally {
        rejects.delete(reject)
      }
    },
    rejectAll(error) {
      for (const reject of rejects) reject(error)
    },
  }
}
