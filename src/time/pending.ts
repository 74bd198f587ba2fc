/** Answers of an engine that are waited for: each for a bounded time, and none longer than until the queue closes. */

import { systemClock } from './clock.ts'
import { type TIMED_OUT, within } from './timeout.ts'

export function createPending() {
  const rejects = new Set<(error: Error) => void>()
  return {
    /** As `within`, by the machine's clock, as sockets wait. Rejects when `rejectAll` is called before. */
    async wait<T>(answer: Promise<T>, ms: number): Promise<T | typeof TIMED_OUT> {
      const { promise: ended, reject } = Promise.withResolvers<never>()
      rejects.add(reject)
      try {
        return await within(Promise.race([answer, ended]), ms, systemClock)
      } finally {
        rejects.delete(reject)
      }
    },
    rejectAll(error: Error): void {
      for (const reject of rejects) reject(error)
    },
  }
}
