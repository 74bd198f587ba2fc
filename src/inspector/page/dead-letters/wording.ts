/** Which dead letters a change is about, in words. */

import type { Change, Changed } from '../../wire.ts'
import { formatCount, formatNumber } from '../format.ts'

/** What is done to dead letters. */
export type Action = 'redrive' | 'drop'

/** Which ones: by id, by reason, or all. */
export type Scope = Pick<Change, 'ids' | 'reason'>

/** The text of a button: `Redrive 3 selected`, `Drop all handler_failed`, `Redrive all`. */
export function nameChange(action: Action, { ids, reason }: Scope): string {
  const verb = action === 'redrive' ? 'Redrive' : 'Drop'
  if (ids !== undefined) return `${verb} ${formatNumber(ids.length)} selected`
  return reason === undefined ? `${verb} all` : `${verb} all ${reason}`
}

/** What a change would do: `Would redrive 12 dead letters of inbox: 10 handler_failed, 2 schema_mismatch.` */
export function describePlan(action: Action, part: string, { count, reasons }: Changed): string {
  if (count === 0) return `Would ${action} nothing: ${part} has none of these dead letters any more.`
  const groups = reasons.map((group) => `${formatNumber(group.count)} ${group.reason}`).join(', ')
  return `Would ${action} ${formatCount(count, 'dead letter')} of ${part}: ${groups}.`
}

/** What a change did: `Redriven: 12.` */
export function describeDone(action: Action, { count }: Changed): string {
  return `${action === 'redrive' ? 'Redriven' : 'Dropped'}: ${formatNumber(count)}.`
}
