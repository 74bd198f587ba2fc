/** How a batch ended, for those who recorded its calls. */

import type { Ending } from './delivery.ts'
import { DeliveryError } from './delivery-error.ts'
import type { Entry } from './entry.ts'
import type { Report } from './failure-report.ts'

/** Reports what was not delivered of a batch: all of it, the calls that the answer lists as refused, or none. */
export function reportEnding(ending: Ending, entries: readonly Entry[], report: Report): void {
  if (ending instanceof DeliveryError) report(ending, entries)
  else for (const refusal of readRefusals(ending.body, entries)) reportRefusal(refusal, ending.attempts, report)
}

function reportRefusal({ entry, code, path }: Refusal, attempts: number, report: Report): void {
  const details = { attempts, ...(isName(code) && { code }), ...(isName(path) && { path }) }
  const reasons = [details.code, details.path].filter((reason) => reason !== undefined)
  const message = `refused by the collection service: ${reasons.join(', ') || 'no reason given'}.`
  report(new DeliveryError('call_refused', message, details), [entry])
}

interface Refusal {
  readonly entry: Entry
  readonly code: unknown
  readonly path: unknown
}

/**
 * The calls that an answer lists: `{"refused":[{"index":0,"code":"call_invalid","path":"event"}]}`. Another collection
 * service may answer anything else, which lists none.
 */
function readRefusals(body: string, entries: readonly Entry[]): Iterable<Refusal> {
  const refusals = new Map<Entry, Refusal>()
  if (!body.includes('"refused"')) return []
  for (const item of readList(body)) {
    const { index, code, path } = Object(item)
    const entry = Number.isInteger(index) ? entries[index] : undefined
    if (entry !== undefined) refusals.set(entry, { entry, code, path })
  }
  return refusals.values()
}

function readList(body: string): readonly unknown[] {
  try {
    const { refused } = Object(JSON.parse(body))
    return Array.isArray(refused) ? refused : []
  } catch {
    return []
  }
}

/** Names are printed: what came over the wire gets there only when it looks like one. */
function isName(value: unknown): value is string {
  return typeof value === 'string' && /^[\w.[\] -]{1,100}$/.test(value)
}
