/** Handles the jobs of a destination: one round each time a job is claimed, until a URL accepts it or four hours are over. */

import { RETRY_WINDOW_MS } from '../message/limits.ts'
import type { ClaimedJob, DeadLetter, HandleJob, Outcome } from '../queues/queue.ts'
import type { Attempt } from '../sender/api.ts'
import type { FailureReason } from './api.ts'
import type { Live } from './live.ts'
import { type Report, UNREADABLE } from './reports.ts'
import { type RetryState, readRetryState, writeRetryState } from './retry-state.ts'
import { chooseTargets, findNextTime, planNextStep } from './schedule.ts'

/** How often a held message checks whether the destination is enabled again, in milliseconds. */
const HOLD_MS = 10_000

/** A message is one line. An envelope of an inbox is two, and holds headers: it is never posted, whoever pushed it. */
const LINE_FEED = 0x0a

/**
 * Creates the handler. A round uses the settings in force when it begins, and what follows it those in force when it ends.
 *
 * @param onDeadLetter Must not throw.
 */
export function createJobHandler(live: Live, report: Report, onDeadLetter: (letter: DeadLetter) => void): HandleJob {
  const { clock, random } = live.settings
  let watched: AbortSignal | undefined

  return async (job, signal) => {
    const now = clock.now()
    if (signal.aborted) return retryUnchanged(job, now)
    const { transport, settings } = live
    const { targets, enabled } = settings
    if (job.body.includes(LINE_FEED)) {
      report(job, UNREADABLE)
      return giveUp(job, 'unreadable')
    }
    const before = readRetryState(job.retryState, targets)
    const firstAt = job.firstAt.getTime()
    const end = firstAt + RETRY_WINDOW_MS
    if (now >= end) return fail(job, before, [], enabled ? 'window_over' : 'switched_off')
    if (!enabled) return retryUnchanged(job, Math.min(now + HOLD_MS, end))

    const chosen = chooseTargets(targets, before, now)
    if (chosen.length === 0) return waitForOthers(job, before, now)
    abortWith(signal)
    const latest = await transport.postRound(job.body, chosen)
    if (latest.some(({ ok }) => ok)) {
      report(job, { status: 'delivered', latest, attempts: [...before.attempts, ...latest] })
      return { complete: true }
    }
    if (signal.aborted) return retryUnchanged(job, now)
    const times = { firstAt, now: clock.now(), random: random() }
    const step = planNextStep(live.settings.targets, before, chosen, latest, times)
    if ('failure' in step) {
      const isHeld = step.failure === 'window_over' && !live.settings.enabled
      return fail(job, step.state, latest, isHeld ? 'switched_off' : step.failure)
    }
    const { retryAt, state } = step
    report(job, { status: 'retrying', latest, attempts: state.attempts, retryAt })
    return { retryAt, retryState: writeRetryState(state, live.settings.targets) }
  }

  /** The URLs whose turn it was are no longer in the settings. */
  function waitForOthers(job: ClaimedJob, before: RetryState, now: number): Outcome {
    const at = findNextTime(live.settings.targets, before, now)
    return at === undefined ? fail(job, before, [], 'refused') : retryUnchanged(job, at)
  }

  /** The queue passes the same signal with every job. */
  function abortWith(signal: AbortSignal): void {
    if (signal === watched) return
    watched = signal
    signal.addEventListener('abort', () => live.abort(), { once: true })
  }

  function fail(job: ClaimedJob, state: RetryState, latest: readonly Attempt[], reason: FailureReason): Outcome {
    report(job, { status: 'failed', latest, attempts: state.attempts, reason })
    return giveUp(job, reason, writeRetryState(state, live.settings.targets))
  }

  function giveUp({ id, body }: ClaimedJob, reason: FailureReason, retryState?: Uint8Array): Outcome {
    onDeadLetter({ id, body, reason, retryState, failedAt: new Date(clock.now()) })
    return retryState === undefined ? { deadLetter: reason } : { deadLetter: reason, retryState }
  }
}

/** Retries a job at this time with the retry state that it has. */
function retryUnchanged({ retryState }: ClaimedJob, at: number): Outcome {
  const retryAt = new Date(at)
  return retryState === undefined ? { retryAt } : { retryAt, retryState }
}
