/** When a message was tried, and when it will be: for the line of its four hours. */

import { nextDelay } from '../../destination/schedule.ts'
import type { Step } from '../wire-message.ts'

/** An attempt that ended. */
export interface Tried {
  readonly at: number
  readonly ok: boolean
}

/** The attempts among the steps of a message. */
export function findTried(steps: readonly Step[]): readonly Tried[] {
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
