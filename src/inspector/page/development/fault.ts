/** Faults: from the fields of their form, and in words. */

import type { Fault } from '../../wire.ts'
import { formatDuration } from '../format.ts'

/** What the form holds, as text. */
export interface FaultFields {
  readonly count: string
  /** Empty: the normal answer. */
  readonly status: string
  /** Empty: none. */
  readonly delayMs: string
}

/** Reads the form. Returns what is wrong where it is no fault. */
export function readFault(part: string, { count, status, delayMs }: FaultFields): Fault | string {
  const fault: Fault = {
    part,
    count: Number(count),
    ...(status !== '' && { status: Number(status) }),
    ...(delayMs !== '' && Number(delayMs) !== 0 && { delayMs: Number(delayMs) }),
  }
  if (!isBetween(fault.count, 1, 10_000)) return 'Requests must be a whole number from 1 to 10000.'
  if (fault.status === undefined && fault.delayMs === undefined) return 'Choose a status, a delay or both.'
  if (fault.delayMs !== undefined && !isBetween(fault.delayMs, 0, 60_000)) {
    return 'The delay must be a whole number from 0 to 60000 milliseconds.'
  }
  return fault
}

function isBetween(value: number, least: number, most: number): boolean {
  return Number.isInteger(value) && value >= least && value <= most
}

/** `The next 3 requests are answered 503 after 2 s.` */
export function describeFault(fault: Fault | undefined): string {
  if (fault === undefined || fault.count === 0) return 'Requests are answered normally.'
  const { count, status, delayMs = 0 } = fault
  const which = count === 1 ? 'The next request is' : `The next ${count} requests are`
  const answer = status === undefined ? 'normally' : String(status)
  return `${which} answered ${answer}${delayMs > 0 ? ` after ${formatDuration(delayMs)}` : ''}.`
}
