/** Handles the jobs of a destination: one round each time a job is claimed, until a URL accepts it or four hours are over. */

import { RETRY_WINDOW_MS } from '../protocol/limits.ts'
import type { ClaimedJob, HandleJob, Outcome, SaveState, StoredJob } from '../store/queue-types.ts'
import type { Circuits } from './circuits.ts'
import type { Composed } from './compose-call.ts'
import type { CurrentSettings } from './current-settings.ts'
import type { FailureReason, SkipReason } from './destination-events.ts'
import { type DestinationEvents, JobReport, UNREADABLE } from './destination-reports.ts'
import type { Functions } from './message-functions.ts'
import { type RetryState, readRetryState, toStoredThrown, writeRetryState } from './retry-state.ts'
import { chooseTargets, findNextTime, LAST_START_MS, planNextStep } from './schedule.ts'
import type { Attempt } from './sender-types.ts'
import { isStored, messageBytes, readMessage } from './stored-submission.ts'

/**
 * Creates the handler. A round uses the settings in force when it begins, and what follows it those in force when it
 * ends.
 */
export function createJobHandler(
  live: CurrentSettings,
  circuits: Circuits,
  events: DestinationEvents,
  functions: Functions,
  skip: (composed: Pick<Composed, 'message' | 'at'>, reason: SkipReason, id: string) => void,
): HandleJob {
  const { clock, random } = live.settings
  let watched: AbortSignal | undefined

  return async (job, signal, save) => {
    if (signal.aborted) return retryUnchanged(job, clock.now())
    if (!isStored(job.body)) {
      events.publish('attempted', new JobReport(job, UNREADABLE))
      return giveUp(job, 'unreadable')
    }
    const { targets } = live.settings
    const isRedriven = job.claimCount === 1 && job.retryState !== undefined // It begins anew, also when this process dies.
    const before = readRetryState(isRedriven ? undefined : job.retryState, targets)
    if (isRedriven) await save?.(writeRetryState(before, targets))
    const isMade = functions.isEmpty || before.body !== undefined
    return isMade ? post(job, before, signal) : makeAndPost(job, before, signal, save)
  }

  /** Stores what the functions make before it is posted, so that each attempt has the same bytes. */
  async function makeAndPost(
    job: ClaimedJob,
    before: RetryState,
    signal: AbortSignal,
    save: SaveState | undefined,
  ): Promise<Outcome> {
    let made: Uint8Array | undefined
    try {
      made = await functions.apply(job.body)
    } catch (error) {
      return fail(job, { ...before, thrown: toStoredThrown(error) }, [], 'transform_failed', error)
    }
    if (signal.aborted) return retryUnchanged(job, clock.now())
    if (made === undefined) {
      skip({ message: readMessage(job.body), at: clock.now() }, 'filtered', job.id)
      return { complete: true }
    }
    const state = { ...before, body: Buffer.from(made).toString() }
    const retryState = writeRetryState(state, live.settings.targets)
    await save?.(retryState)
    return post({ ...job, retryState }, state, signal)
  }

  async function post(job: ClaimedJob, before: RetryState, signal: AbortSignal): Promise<Outcome> {
    const now = clock.now()
    const { transport, settings } = live
    const { targets, enabled } = settings
    const startedAt = before.rounds > 0 ? job.firstAt.getTime() : circuits.windowStart(job, before.startedAt)
    const isOver = now >= startedAt + (enabled ? RETRY_WINDOW_MS : LAST_START_MS)
    if (isOver) return fail(job, before, [], reasonAtEnd(enabled))
    if (!enabled) return hold(job, before, startedAt, now + circuits.holdMs(targets))

    const due = chooseTargets(targets, before, now)
    if (due.length === 0) return waitForOthers(job, before, now)
    const admitted = circuits.admit(due)
    const isHeld = admitted.length === 0
    const isLast = isHeld && now >= startedAt + LAST_START_MS
    if (isLast && !circuits.admitLast()) return fail(job, before, [], 'circuit_open')
    if (isHeld && !isLast) return hold(job, before, startedAt, now + circuits.holdMs(due))
    const chosen = isLast ? due : admitted
    abortWith(signal)
    const ends = chosen.map((target) => circuits.begin(target))
    const sent = sentOf(job, before)
    const latest = await new Promise<readonly Attempt[]>((end) => transport.postRound(sent.body, chosen, end))
    for (const [index, attempt] of latest.entries()) ends[index]?.(attempt)
    if (latest.some(({ ok }) => ok)) {
      events.publish(
        'attempted',
        new JobReport(sent, { status: 'delivered', latest, attempts: [...before.attempts, ...latest] }),
      )
      return { complete: true }
    }
    if (signal.aborted) return retryUnchanged(job, now)
    const held = due.filter((target) => !chosen.includes(target))
    const context = { startedAt, now: clock.now(), random: random(), held }
    const step = planNextStep(live.settings.targets, before, chosen, latest, context)
    if ('failure' in step) {
      const isSwitchedOff = step.failure === 'window_over' && !live.settings.enabled
      return fail(job, step.state, latest, isSwitchedOff ? 'switched_off' : step.failure)
    }
    const { retryAt, state } = step
    events.publish('attempted', new JobReport(sent, { status: 'retrying', latest, attempts: state.attempts, retryAt }))
    return { retryAt, retryState: writeRetryState(state, live.settings.targets) }
  }

  function reasonAtEnd(enabled: boolean): FailureReason {
    if (!enabled) return 'switched_off'
    return circuits.areOpen ? 'circuit_open' : 'window_over'
  }

  /** No URL that is due may be tried now: it looks again at this time, and when it runs out. */
  function hold(job: ClaimedJob, before: RetryState, startedAt: number, at: number): Outcome {
    const until = Math.min(at, startedAt + LAST_START_MS)
    if (before.rounds > 0) return retryUnchanged(job, until)
    const retryState = writeRetryState({ ...before, startedAt }, live.settings.targets)
    return { retryAt: new Date(until), retryState }
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

  function fail(
    job: ClaimedJob,
    state: RetryState,
    latest: readonly Attempt[],
    reason: FailureReason,
    error?: unknown,
  ): Outcome {
    const { attempts } = state
    events.publish(
      'attempted',
      new JobReport(sentOf(job, state), { status: 'failed', latest, attempts, reason, error }),
    )
    return giveUp(job, reason, writeRetryState(state, live.settings.targets))
  }

  function giveUp({ id, body }: ClaimedJob, reason: FailureReason, retryState?: Uint8Array): Outcome {
    events.publish('deadLetter', { id, body, reason, retryState, failedAt: new Date(clock.now()) })
    return retryState === undefined ? { deadLetter: reason } : { deadLetter: reason, retryState }
  }
}

/** A message as it is posted. */
function sentOf({ id, body }: ClaimedJob, { body: made }: RetryState): StoredJob {
  return { id, body: made === undefined ? messageBytes(body) : Buffer.from(made) }
}

function retryUnchanged({ retryState }: ClaimedJob, at: number): Outcome {
  const retryAt = new Date(at)
  return retryState === undefined ? { retryAt } : { retryAt, retryState }
}
