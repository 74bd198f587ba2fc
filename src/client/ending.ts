/** How a batch ended, for those who recorded its calls. */

import type { Ending } from './delivery.ts'
import { DeliveryError } from './delivery-error.ts'
import type { Entry } from './entry.ts'
import type { Report } from './failure-report.ts'
import { type BatchAnswer, countUnlisted, type Refusal, readRefusals } from './refusals.ts'

/** Reports what was not delivered of a batch: all of it, the calls that the answer says are refused, or none. */
export function reportEnding(ending: Ending, entries: readonly Entry[], report: Report): void {
  if (ending instanceof DeliveryError) report(ending, entries)
  else reportRefusals(readRefusals(ending.body, entries.length), ending.attempts, entries, report)
}

function reportRefusals(
  answer: BatchAnswer | 'unreadable',
  attempts: number,
  entries: readonly Entry[],
  report: Report,
): void {
  if (answer === 'unreadable') {
    report(new DeliveryError('maybe_refused', UNREADABLE, { attempts }), entries)
    return
  }
  for (const refusal of answer.refused.values()) {
    report(describeRefusal(refusal, attempts), [entries[refusal.index] as Entry])
  }
  const unlisted = countUnlisted(answer, entries.length)
  if (unlisted === 0) return
  const others = entries.filter((_, index) => !answer.refused.has(index))
  const some = `${unlisted} of these ${others.length} calls ${unlisted === 1 ? 'was' : 'were'}`
  const message = `${some} refused by the collection service, and its answer does not list which.`
  report(new DeliveryError('maybe_refused', message, { attempts }), others)
}

const UNREADABLE = 'which of these calls the collection service refused cannot be read from its answer.'

function describeRefusal({ code, path }: Refusal, attempts: number): DeliveryError {
  const details = { attempts, ...(isName(code) && { code }), ...(isName(path) && { path }) }
  const reasons = [details.code, details.path].filter((reason) => reason !== undefined)
  const message = `refused by the collection service: ${reasons.join(', ') || 'no reason given'}.`
  return new DeliveryError('call_refused', message, details)
}

/** Names are printed: what came over the wire gets there only when it looks like one. */
function isName(value: unknown): value is string {
  return typeof value === 'string' && /^[\w.[\] -]{1,100}$/.test(value)
}
