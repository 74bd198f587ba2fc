/** Handles the jobs of a destination: one round each time a job is claimed, until a URL accepts it or four hours are over. */

import { RETRY_WINDOW_MS } from '../message/limits.ts'
import type { ClaimedJob, HandleJob, Outcome } from '../queues/queue.ts'
import type { Attempt } from '../sender/api.ts'
import type { Transport } from '../sender/transport.ts'
import type { FailureReason } from './api.ts'
import type { DestinationSettings } from './options.ts'
import type { Report } from './reports.ts'
import { type RetryState, readRetryState, writeRetryState } from './retry-state.ts'
import { chooseTargets, planNextStep } from './schedule.ts'

/** How often a held message checks whether the destination is enabled again, in milliseconds. */
const HOLD_MS = 10_000

/** A message is one line. An envelope of an inbox is two, and holds headers: it is never posted, whoever pushed it. */
const LINE_FEED = 0x0a

/** Creates the handler. */
export function createJobHandler(
  { targets, clock, random }: DestinationSettings,
  transport: Transport,
  isEnabled: () => boolean,
  report: Report,
): HandleJob {
  let watched: AbortSignal | undefined

  return async (job, signal) => {
    const now = clock.now()
    if (signal.aborted) return retryUnchanged(job, now)
    if (job.body.includes(LINE_FEED)) return { deadLetter: 'unreadable' }
    const before = readRetryState(job.retryState, targets)
    const firstAt = job.firstAt.getTime()
    const end = firstAt + RETRY_WINDOW_MS
    if (now >= end) return fail(job, before, [], isEnabled() ? 'window_over' : 'switched_off')
    if (!isEnabled()) return retryUnchanged(job, Math.min(now + HOLD_MS, end))

    abortWith(signal)
    const chosen = chooseTargets(targets, before, now)
    const latest = await transport.postRound(job.body, chosen)
    if (latest.some(({ ok }) => ok)) {
      report(job, { status: 'delivered', latest, attempts: [...before.attempts, ...latest] })
      return { complete: true }
    }
    if (signal.aborted) return retryUnchanged(job, now)
    const step = planNextStep(targets, before, chosen, latest, { firstAt, now: clock.now(), random: random() })
    if ('failure' in step) {
      const isHeld = step.failure === 'window_over' && !isEnabled()
      return fail(job, step.state, latest, isHeld ? 'switched_off' : step.failure)
    }
    const { retryAt, state } = step
    report(job, { status: 'retrying', latest, attempts: state.attempts, retryAt })
    return { retryAt, retryState: writeRetryState(state, targets) }
  }

  /** The queue passes the same signal with every job. */
  function abortWith(signal: AbortSignal): void {
    if (signal === watched) return
    watched = signal
    signal.addEventListener('abort', () => transport.abort(), { once: true })
  }

  function fail(job: ClaimedJob, state: RetryState, latest: readonly Attempt[], reason: FailureReason): Outcome {
    report(job, { status: 'failed', latest, attempts: state.attempts, reason })
    return { deadLetter: reason, retryState: writeRetryState(state, targets) }
  }
}

/** Retries a job at this time with the retry state that it has. */
function retryUnchanged({ retryState }: ClaimedJob, at: number): Outcome {
  const retryAt = new Date(at)
  return retryState === undefined ? { retryAt } : { retryAt, retryState }
}
