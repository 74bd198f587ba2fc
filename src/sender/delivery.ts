/** Delivers one message: one round each time the queue hands it out, until somebody took it or its four hours are over. */

import { RETRY_WINDOW_MS } from '../protocol/limits.ts'
import type { ClaimedJob, HandleJob, Outcome } from '../queues/queue.ts'
import type { Attempt, FailureReason } from './api.ts'
import type { DestinationSettings } from './destination-options.ts'
import type { PostOffice } from './post-office.ts'
import { chooseTargets, nextStep, type Progress, readProgress, writeProgress } from './progress.ts'
import type { Report } from './reports.ts'

/** How often a message that is held while the destination is off asks whether it is on again, in milliseconds. */
const HOLD_MS = 10_000

/** What handles the jobs of a destination. */
export function createDelivery(
  { targets, clock, random }: DestinationSettings,
  office: PostOffice,
  isOn: () => boolean,
  report: Report,
): HandleJob {
  let watched: AbortSignal | undefined

  return async (job, signal) => {
    const now = clock.now()
    if (signal.aborted) return again(job, now)
    const before = readProgress(job.state, targets)
    const end = job.firstAt + RETRY_WINDOW_MS
    if (now >= end) return fail(job, before, [], isOn() ? 'window_over' : 'switched_off')
    if (!isOn()) return again(job, Math.min(now + HOLD_MS, end))

    abortWith(signal)
    const chosen = chooseTargets(targets, before, now)
    const latest = await office.postAll(job.body, chosen)
    if (latest.some(({ ok }) => ok)) {
      report(job, { status: 'delivered', latest, attempts: [...before.attempts, ...latest] })
      return { done: true }
    }
    if (signal.aborted) return again(job, now)
    const step = nextStep(targets, before, chosen, latest, { firstAt: job.firstAt, now: clock.now(), random: random() })
    if ('over' in step) {
      const reason = step.over === 'window_over' && !isOn() ? 'switched_off' : step.over
      return fail(job, step.progress, latest, reason)
    }
    const { retryAt, progress } = step
    report(job, { status: 'retrying', latest, attempts: progress.attempts, retryAt })
    return { retryAt, state: writeProgress(progress, targets) }
  }

  /** The queue gives every job one and the same signal. */
  function abortWith(signal: AbortSignal): void {
    if (signal === watched) return
    watched = signal
    signal.addEventListener('abort', () => office.abort(), { once: true })
  }

  function fail(job: ClaimedJob, progress: Progress, latest: readonly Attempt[], reason: FailureReason): Outcome {
    report(job, { status: 'failed', latest, attempts: progress.attempts, reason })
    return { dead: reason, state: writeProgress(progress, targets) }
  }
}

/** Hand it out again, as it is. */
function again({ state }: ClaimedJob, retryAt: number): Outcome {
  return state === undefined ? { retryAt } : { retryAt, state }
}
