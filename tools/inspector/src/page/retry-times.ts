/** When a message was tried, when it will be, and what holds it. */

import { nextDelay } from '../../../../src/internals.ts'
import type { AttemptLine, QueueStatus, Row, Step, UrlLine } from '../wire.ts'

export function findTried(steps: readonly Step[]): readonly Pick<AttemptLine, 'at' | 'ok'>[] {
  return steps.flatMap((step) => (step.what === 'attempt' ? [{ at: step.attempt.at, ok: step.attempt.ok }] : []))
}

/**
 * Tells when the attempts after the next one come, if each of them fails and each delay is the mean of what it may be.
 *
 * @param rounds How many have ended.
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

/** Tells where a time is on the line, from 0 to 1. It grows with the square root: most attempts are in the first minutes. */
export function placeOf(elapsedMs: number, windowMs: number): number {
  return Math.sqrt(Math.max(0, Math.min(1, elapsedMs / windowMs)))
}

/** The URLs that may still accept a message. */
export interface Remaining {
  /** Those whose circuit is open. */
  readonly open: readonly UrlLine[]
  /** How many do not. */
  readonly others: number
}

export function findRemaining(urls: readonly UrlLine[], { finalUrls = [] }: Pick<Row, 'finalUrls'>): Remaining {
  const remaining = urls.filter(({ url }) => !finalUrls.includes(url))
  const open = remaining.filter(({ circuit }) => circuit === 'open')
  return { open, others: remaining.length - open.length }
}

/** Whether no URL that may accept a message is tried: it waits for a probe, or until its destination is enabled again. */
export function isHeld(row: Row, queue: QueueStatus | undefined): boolean {
  const { open, others } = findRemaining(queue?.urls ?? [], row)
  return queue?.isOff === true || (open.length > 0 && others === 0)
}
