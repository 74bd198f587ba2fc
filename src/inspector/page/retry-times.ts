/** When a message was tried, when it will be, and what holds it. */

import { isRetryable, nextDelay } from '../../destination/schedule.ts'
import type { AttemptLine, CircuitLine, Step } from '../wire.ts'

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

/** The circuits of the URLs that may still accept a message. */
export interface Remaining {
  readonly open: readonly CircuitLine[]
  /** How many do not. */
  readonly others: number
}

/** Finds the circuits of the URLs that have not given a message a final response. */
export function findRemaining(circuits: readonly CircuitLine[], steps: readonly Step[]): Remaining {
  const last = new Map<string, AttemptLine>()
  for (const step of steps) {
    if (step.what === 'attempt') last.set(step.attempt.url, step.attempt)
    else if (step.what === 'redriven') last.clear() // All URLs are tried again.
  }
  const remaining = circuits.filter(({ url }) => isRetryable(last.get(url) ?? {}))
  const open = remaining.filter(({ state }) => state === 'open')
  return { open, others: remaining.length - open.length }
}
