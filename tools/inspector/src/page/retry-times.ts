/** Calculates when the next attempts of a message are expected, and whether any of its URLs may be tried. */

import { nextDelay } from '../../../../src/internals.ts'
import type { AttemptLine, QueueStatus, Row, Step, UrlLine } from '../wire.ts'

export function findTried(steps: readonly Step[]): readonly Pick<AttemptLine, 'at' | 'ok'>[] {
  return steps.flatMap((step) => (step.what === 'attempt' ? [{ at: step.attempt.at, ok: step.attempt.ok }] : []))
}

/**
 * Returns the expected times of the attempts after the next one. Assumes that each attempt fails, and that each delay is the mean of its
 * range.
 *
 * @param rounds The number of rounds that have ended.
 */
export function expectAttempts(nextAt: number, rounds: number, startedAt: number): readonly number[] {
  const times: number[] = []
  for (let [at, round] = [nextAt, rounds + 1]; ; round += 1) {
    const delayMs = nextDelay(round, at - startedAt, 0.5)
    if (delayMs === undefined) return times
    at += delayMs
    times.push(at)
  }
}

/** Returns the position of a time on the line, from 0 to 1. The early part of the line is wider, because most attempts are early. */
export function placeOf(elapsedMs: number, windowMs: number): number {
  return Math.sqrt(Math.max(0, Math.min(1, elapsedMs / windowMs)))
}

/** The URLs that may still accept a message. */
export interface Remaining {
  /** The URLs whose circuit is open. */
  readonly open: readonly UrlLine[]
  /** The number of remaining URLs whose circuit is not open. */
  readonly others: number
}

export function findRemaining(urls: readonly UrlLine[], { finalUrls = [] }: Pick<Row, 'finalUrls'>): Remaining {
  const remaining = urls.filter(({ url }) => !finalUrls.includes(url))
  const open = remaining.filter(({ circuit }) => circuit === 'open')
  return { open, others: remaining.length - open.length }
}

/** Returns whether no remaining URL may be tried, because every circuit is open, or because the destination is disabled. */
export function isHeld(row: Row, queue: QueueStatus | undefined): boolean {
  const { open, others } = findRemaining(queue?.urls ?? [], row)
  return queue?.isOff === true || (open.length > 0 && others === 0)
}
