/** What is printed of calls that could not be delivered, unless somebody gave an `onError`: lines without the calls. */

import type { Clock } from '../protocol/clock.ts'
import type { DeliveryError } from './delivery-error.ts'

/** The least time between two warnings of calls that were dropped, in milliseconds: a full client drops each call. */
const LEAST_MS = 1_000

/** Warnings on the console. */
export interface Warnings {
  warn(error: DeliveryError, calls: number): void
  /** Warns of the dropped calls of which no warning told yet. */
  warnOfRest(): void
}

/** Makes warnings. */
export function createWarnings(clock: Clock): Warnings {
  let dropped = 0
  let lastMessage = ''
  let lastTime = Number.NEGATIVE_INFINITY

  function warnOfRest(): void {
    if (dropped === 0) return
    print(dropped, lastMessage)
    dropped = 0
    lastTime = clock.monotonic()
  }

  return {
    warn({ reason, message }, calls) {
      if (reason !== 'queue_full') {
        print(calls, message)
        return
      }
      dropped += calls
      lastMessage = message
      if (clock.monotonic() - lastTime >= LEAST_MS) warnOfRest()
    },
    warnOfRest,
  }
}

function print(calls: number, message: string): void {
  console.warn(`hookline: ${calls} ${calls === 1 ? 'call' : 'calls'} not delivered: ${message}`)
}
