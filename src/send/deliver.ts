/** Handles the jobs of a destination: one round each time a job is claimed, until a URL accepts it or four hours are over. */

import type { Clock } from '../kit/clock.ts'
import { RETRY_WINDOW_MS } from '../protocol/limits.ts'
import type { ClaimedJob, DeadLetter, Outcome, SaveState, StoredJob } from '../store/queue-types.ts'
import type { Circuits } from './circuits.ts'
import type { Composed } from './compose-call.ts'
import type { CurrentSettings } from './current-settings.ts'
import type { FailureReason, SkipReason } from './destination-events.ts'
import { type DestinationEvents, JobReport, type ReportDetails, UNREADABLE } from './destination-reports.ts'
import type { Functions } from './message-functions.ts'
import { type RetryState, readRetryState, toStoredThrown, writeRetryState } from './retry-state.ts'
import { chooseTargets, findNextTime, LAST_START_MS, planNextStep } from './schedule.ts'
import type { Attempt } from './sender-types.ts'
import { isStored, messageBytes, readMessage } from './stored-submission.ts'
import type { Target } from './webhooks.ts'

type Skip = (composed: Pick<Composed, 'message' | 'at'>, reason: SkipReason, id: string) => void

/** A round uses the settings in force when it begins, and what follows it those in force when it ends. */
export class JobHandler {
  readonly #live: CurrentSettings
  readonly #circuits: Circuits
  readonly #events: DestinationEvents
  readonly #functions: Functions
  readonly #skip: Skip
  readonly #clock: Clock
  #watched: AbortSignal | undefined

  constructor(live: CurrentSettings, circuits: Circuits, events: DestinationEvents, functions: Functions, skip: Skip) {
    this.#live = live
    this.#circuits = circuits
    this.#events = events
    this.#functions = functions
    this.#skip = skip
    this.#clock = live.settings.clock
  }

  async handle(job: ClaimedJob, signal: AbortSignal, save: SaveState | undefined): Promise<Outcome> {
    if (signal.aborted) return retryUnchanged(job, this.#clock.now())
    if (!isStored(job.body)) {
      this.#report(job, UNREADABLE)
      return this.#giveUp(job, 'unreadable')
    }
    const { targets } = this.#live.settings
    const isRedriven = job.claimCount === 1 && job.retryState !== undefined // It begins anew, also when this process dies.
    const before = readRetryState(isRedriven ? undefined : job.retryState, targets)
    if (isRedriven) await save?.(writeRetryState(before, targets))
    const isMade = this.#functions.isEmpty || before.body !== undefined
    return isMade ? this.#post(job, before, signal) : this.#makeAndPost(job, before, signal, save)
  }

  /** Reports a job that the queue could not read, and made a dead letter. */
  endUnreadable(letter: DeadLetter): void {
    this.#report(letter, UNREADABLE)
    this.#events.publish('deadLetter', letter)
  }

  /** Stores what the functions make before it is posted, so that each attempt has the same bytes. */
  async #makeAndPost(
    job: ClaimedJob,
    before: RetryState,
    signal: AbortSignal,
    save: SaveState | undefined,
  ): Promise<Outcome> {
    let made: Uint8Array | undefined
    try {
      made = await this.#functions.apply(job.body)
    } catch (error) {
      return this.#fail(job, { ...before, thrown: toStoredThrown(error) }, [], 'transform_failed', error)
    }
    if (signal.aborted) return retryUnchanged(job, this.#clock.now())
    if (made === undefined) {
      this.#skip({ message: readMessage(job.body), at: this.#clock.now() }, 'filtered', job.id)
      return { complete: true }
    }
    const state = { ...before, body: Buffer.from(made).toString() }
    const retryState = this.#write(state)
    await save?.(retryState)
    return this.#post({ ...job, retryState }, state, signal)
  }

  /** Posts the message to the URLs whose turn it is, unless its time is over or none of them may be tried. */
  async #post(job: ClaimedJob, before: RetryState, signal: AbortSignal): Promise<Outcome> {
    const circuits = this.#circuits
    const now = this.#clock.now()
    const { targets, enabled } = this.#live.settings
    const startedAt = before.rounds > 0 ? job.firstAt.getTime() : circuits.windowStart(job, before.startedAt)
    const isOver = now >= startedAt + (enabled ? RETRY_WINDOW_MS : LAST_START_MS)
    if (isOver) return this.#fail(job, before, [], this.#reasonAtEnd(enabled))
    if (!enabled) return this.#hold(job, before, startedAt, now + circuits.holdMs(targets))

    const due = chooseTargets(targets, before, now)
    if (due.length === 0) return this.#waitForOthers(job, before, now)
    const admitted = circuits.admit(due)
    if (admitted.length > 0) return this.#postRound(job, before, startedAt, due, admitted, signal)
    if (now < startedAt + LAST_START_MS) return this.#hold(job, before, startedAt, now + circuits.holdMs(due))
    if (!circuits.admitLast()) return this.#fail(job, before, [], 'circuit_open')
    return this.#postRound(job, before, startedAt, due, due, signal)
  }

  async #postRound(
    job: ClaimedJob,
    before: RetryState,
    startedAt: number,
    due: readonly Target[],
    chosen: readonly Target[],
    signal: AbortSignal,
  ): Promise<Outcome> {
    this.#abortWith(signal)
    const { transport } = this.#live
    const now = this.#clock.now()
    const ends = chosen.map((target) => this.#circuits.begin(target))
    const sent = sentOf(job, before)
    const latest = await new Promise<readonly Attempt[]>((end) => transport.postRound(sent.body, chosen, end))
    for (const [index, attempt] of latest.entries()) ends[index]?.(attempt)
    if (latest.some(({ ok }) => ok)) {
      this.#report(sent, { status: 'delivered', latest, attempts: [...before.attempts, ...latest] })
      return { complete: true }
    }
    if (signal.aborted) return retryUnchanged(job, now)
    const { random, targets, enabled } = this.#live.settings
    const held = due.filter((target) => !chosen.includes(target))
    const context = { startedAt, now: this.#clock.now(), random: random(), held }
    const step = planNextStep(targets, before, chosen, latest, context)
    if ('failure' in step) {
      const isSwitchedOff = step.failure === 'window_over' && !enabled
      return this.#fail(job, step.state, latest, isSwitchedOff ? 'switched_off' : step.failure)
    }
    const { retryAt, state } = step
    this.#report(sent, { status: 'retrying', latest, attempts: state.attempts, retryAt })
    return { retryAt, retryState: this.#write(state) }
  }

  #reasonAtEnd(enabled: boolean): FailureReason {
    if (!enabled) return 'switched_off'
    return this.#circuits.areOpen ? 'circuit_open' : 'window_over'
  }

  /** No URL that is due may be tried now: it looks again at this time, and when it runs out. */
  #hold(job: ClaimedJob, before: RetryState, startedAt: number, at: number): Outcome {
    const until = Math.min(at, startedAt + LAST_START_MS)
    if (before.rounds > 0) return retryUnchanged(job, until)
    return { retryAt: new Date(until), retryState: this.#write({ ...before, startedAt }) }
  }

  /** The URLs whose turn it was are no longer in the settings. */
  #waitForOthers(job: ClaimedJob, before: RetryState, now: number): Outcome {
    const at = findNextTime(this.#live.settings.targets, before, now)
    return at === undefined ? this.#fail(job, before, [], 'refused') : retryUnchanged(job, at)
  }

  /** The queue passes the same signal with every job. */
  #abortWith(signal: AbortSignal): void {
    if (signal === this.#watched) return
    this.#watched = signal
    signal.addEventListener('abort', () => this.#live.abort(), { once: true })
  }

  #fail(
    job: ClaimedJob,
    state: RetryState,
    latest: readonly Attempt[],
    reason: FailureReason,
    error?: unknown,
  ): Outcome {
    this.#report(sentOf(job, state), { status: 'failed', latest, attempts: state.attempts, reason, error })
    return this.#giveUp(job, reason, this.#write(state))
  }

  #giveUp({ id, body }: ClaimedJob, reason: FailureReason, retryState?: Uint8Array): Outcome {
    this.#events.publish('deadLetter', { id, body, reason, retryState, failedAt: new Date(this.#clock.now()) })
    return retryState === undefined ? { deadLetter: reason } : { deadLetter: reason, retryState }
  }

  #report(sent: StoredJob, details: ReportDetails): void {
    this.#events.publish('attempted', new JobReport(sent, details))
  }

  #write(state: RetryState): Uint8Array {
    return writeRetryState(state, this.#live.settings.targets)
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
