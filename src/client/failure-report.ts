/** Tells the program about calls that could not be delivered. */

import type { Clock } from '../protocol/clock.ts'
import type { RecordedCall } from './api.ts'
import type { DeliveryError } from './delivery-error.ts'
import type { Entry } from './entry.ts'
import { createWarnings } from './warnings.ts'

/** Tells of entries; their text is parsed for it. Never throws. */
export type Report = (error: DeliveryError, entries: readonly Entry[]) => void

/** What is told to the program. */
export interface Reports {
  readonly report: Report
  /** Resolves when all that was reported before is told: when what `onError` returned is settled. Never rejects. */
  told(): Promise<void>
}

/** The `onError` of a client: what it throws is printed, and nothing else comes of it. */
type OnError = (error: DeliveryError, calls: readonly RecordedCall[]) => unknown

/** Makes reports to `onError`, or to the console when there is none. */
export function createReports(onError: OnError | undefined, clock: Clock): Reports {
  return onError === undefined ? reportToConsole(clock) : reportTo(onError)
}

function reportTo(onError: OnError): Reports {
  const underWay = new Set<Promise<void>>()

  async function tell(error: DeliveryError, entries: readonly Entry[]): Promise<void> {
    try {
      await onError(error, entries.map(toCall))
    } catch (thrown) {
      console.error('hookline: onError of the client failed:', thrown)
    }
  }

  return {
    report(error, entries) {
      const telling = tell(error, entries).then(() => {
        underWay.delete(telling)
      })
      underWay.add(telling)
    },
    async told() {
      await Promise.all(underWay)
    },
  }
}

function reportToConsole(clock: Clock): Reports {
  const warnings = createWarnings(clock)
  return {
    report: (error, entries) => warnings.warn(error, entries.length),
    async told() {
      warnings.warnOfRest()
    },
  }
}

/** The call that waits as text. */
export function toCall({ text }: Entry): RecordedCall {
  return JSON.parse(text) as RecordedCall
}
