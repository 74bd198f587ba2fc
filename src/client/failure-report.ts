/** Tells the program about calls that could not be delivered. */

import type { RecordedCall } from './api.ts'
import type { DeliveryError } from './delivery-error.ts'
import type { Entry } from './entry.ts'

/** Tells of entries; their text is parsed for it. Never throws. */
export type Report = (error: DeliveryError, entries: readonly Entry[]) => void

/** Makes a report of `onError`: what that throws is printed, and nothing else comes of it. */
export function createReport(onError: (error: DeliveryError, calls: readonly RecordedCall[]) => unknown): Report {
  return async (error, entries) => {
    try {
      await onError(error, entries.map(toCall))
    } catch (thrown) {
      console.error('hookline: onError of the client failed:', thrown)
    }
  }
}

/** The call that waits as text. */
export function toCall({ text }: Entry): RecordedCall {
  return JSON.parse(text) as RecordedCall
}

/** The default of `onError`: one line, without the calls. */
export function printFailure(error: DeliveryError, calls: readonly RecordedCall[]): void {
  console.warn(`hookline: ${calls.length} ${calls.length === 1 ? 'call' : 'calls'} not delivered: ${error.message}`)
}
