/** Handles the jobs of a destination: posts one round for each claim, until a URL accepts the message or its four hours are over. */

import type { Clock } from '../kit/clock.ts'
import { RETRY_WINDOW_MS } from '../protocol/limits.ts'
import type { ClaimedJob, DeadLetter, Outcome, SaveState, StoredJob } from '../store/queue-types.ts'
import type { Circuits } from './circuits.ts'
import type { Composed } from './compose-call.ts'
import type { CurrentSettings } from './current-settings.ts'
import type { FailureReason, SkipReason } from './destination-events.ts'
import { type DestinationObservers, JobReport, type ReportDetails, UNREADABLE } from './destination-observers.ts'
import type { Functions } from './message-functions.ts'
import { type RetryState, readRetryState, toStoredThrown, writeRetryState } from './retry-state.ts'
import { chooseTargets, findNextTime, LAST_START_MS, planNextStep } from './schedule.ts'
import type { Attempt } from './sender-types.ts'
import { isStored, messageBytes, readMessage } from './stored-submission.ts'
import type { Target } from './webhooks.ts'

/** Counts and reports messages that are not sent. */
interface SkipCounter {
  skip(composed: Pick<Composed, 'message' | 'at'>, reason: SkipReason, id: string): void
}

/** A round that may be posted now. */
interface DueRound {
  readonly job: ClaimedJob
  readonly before: RetryState
  readonly startedAt: number
  /** The targets whose next attempt is due. */
  readonly due: readonly Target[]
  /** The due targets to which the message is posted. */
  readonly chosen: readonly Target[]
  readonly signal: AbortSignal
}

/** Posts each round with the settings at its start. After a failed round, plans the next step with the settings at that time. */
export class JobHandler {
  readonly #current: CurrentSettings
  readonly #circuits: Circuits
  readonly #observers: DestinationObservers
  readonly #functions: Functions
  readonly #skips: SkipCounter
  readonly #clock: Clock
  #watchedSignal: AbortSignal | undefined

  constructor(
    current: CurrentSettings,
    circuits: Circuits,
    observers: DestinationObservers,
    functions: Functions,
    skips: SkipCounter,
  ) {
    this.#current = current
    this.#circuits = circuits
    this.#observers = observers
    this.#functions = functions
    this.#skips = skips
    this.#clock = current.settings.clock
  }

  async handle(job: ClaimedJob, signal: AbortSignal, save: SaveState | undefined): Promise<Outcome> {
    if (signal.aborted) return retryUnchanged(job, this.#clock.now())
    if (!isStored(job.body)) {
      this.#report(job, UNREADABLE)
      return this.#makeDeadLetter(job, 'unreadable')
    }
    const { targets } = this.#current.settings
    const isRedriven = job.claimCount === 1 && job.retryState !== undefined
    const before = readRetryState(isRedriven ? undefined : job.retryState, targets)
    if (isRedriven) await save?.(writeRetryState(before, targets)) // If this process dies, the next claim also starts from this state.
    const isTransformed = this.#functions.isEmpty || before.body !== undefined
    return isTransformed ? this.#post(job, before, signal) : this.#transformAndPost(job, before, signal, save)
  }

  /** Reports a job that became a dead letter because the queue could not read it. */
  endUnreadable(letter: DeadLetter): void {
    this.#report(letter, UNREADABLE)
    this.#observers.publish('deadLetter', letter)
  }

  /** Calls `filter` and `transform`, and stores the result before the message is posted, so that each attempt posts the same bytes. */
  async #transformAndPost(
    job: ClaimedJob,
    before: RetryState,
    signal: AbortSignal,
    save: SaveState | undefined,
  ): Promise<Outcome> {
    let transformed: Uint8Array | undefined
    try {
      transformed = await this.#functions.apply(job.body)
    } catch (error) {
      return this.#fail(job, { ...before, thrown: toStoredThrown(error) }, [], 'transform_failed', error)
    }
    if (signal.aborted) return retryUnchanged(job, this.#clock.now())
    if (transformed === undefined) {
      this.#skips.skip({ message: readMessage(job.body), at: this.#clock.now() }, 'filtered', job.id)
      return { complete: true }
    }
    const state = { ...before, body: Buffer.from(transformed).toString() }
    const retryState = this.#writeState(state)
    await save?.(retryState)
    return this.#post({ ...job, retryState }, state, signal)
  }

  /** Posts the message to the URLs that are due, unless its four hours are over or none of these URLs may be tried. */
  async #post(job: ClaimedJob, before: RetryState, signal: AbortSignal): Promise<Outcome> {
    const circuits = this.#circuits
    const now = this.#clock.now()
    const { targets, enabled } = this.#current.settings
    const startedAt = before.rounds > 0 ? job.firstAt.getTime() : circuits.windowStart(job, before.startedAt)
    const isOver = now >= startedAt + (enabled ? RETRY_WINDOW_MS : LAST_START_MS)
    if (isOver) return this.#fail(job, before, [], this.#reasonAtEnd(enabled))
    if (!enabled) return this.#hold(job, before, startedAt, now + circuits.holdMs(targets))

    const due = chooseTargets(targets, before, now)
    if (due.length === 0) return this.#waitForNextUrl(job, before, now)
    const admitted = circuits.admit(due)
    const round = { job, before, startedAt, due, signal }
    if (admitted.length > 0) return this.#postRound({ ...round, chosen: admitted })
    if (now < startedAt + LAST_START_MS) return this.#hold(job, before, startedAt, now + circuits.holdMs(due))
    if (!circuits.admitLast()) return this.#fail(job, before, [], 'circuit_open')
    return this.#postRound({ ...round, chosen: due })
  }

  async #postRound({ job, before, startedAt, due, chosen, signal }: DueRound): Promise<Outcome> {
    this.#abortPostsOn(signal)
    const { transport } = this.#current
    const now = this.#clock.now()
    const ends = chosen.map((target) => this.#circuits.begin(target))
    const sent = readSent(job, before)
    const posted = { id: job.id, attempts: before.attempts }
    const latest = await new Promise<readonly Attempt[]>((resolve) =>
      transport.postRound(sent.body, chosen, resolve, posted),
    )
    for (const [index, attempt] of latest.entries()) ends[index]?.(attempt)
    if (latest.some(({ ok }) => ok)) {
      this.#report(sent, { status: 'delivered', latest, attempts: [...before.attempts, ...latest] })
      return { complete: true }
    }
    if (signal.aborted) return retryUnchanged(job, now) // Attempts that `close` ended do not count.
    const { random, targets, enabled } = this.#current.settings
    const held = due.filter((target) => !chosen.includes(target))
    const times = { startedAt, now: this.#clock.now(), random: random() }
    const step = planNextStep({ targets, before, chosen, attempts: latest, held, ...times })
    if ('failure' in step) {
      const isSwitchedOff = step.failure === 'window_over' && !enabled
      return this.#fail(job, step.state, latest, isSwitchedOff ? 'switched_off' : step.failure)
    }
    const { retryAt, state } = step
    this.#report(sent, { status: 'retrying', latest, attempts: state.attempts, retryAt })
    return { retryAt, retryState: this.#writeState(state) }
  }

  #reasonAtEnd(enabled: boolean): FailureReason {
    if (!enabled) return 'switched_off'
    return this.#circuits.areOpen ? 'circuit_open' : 'window_over'
  }

  /** Holds a message until the given time or the latest possible start of a round, whichever is earlier. */
  #hold(job: ClaimedJob, before: RetryState, startedAt: number, until: number): Outcome {
    const retryAt = Math.min(until, startedAt + LAST_START_MS)
    if (before.rounds > 0) return retryUnchanged(job, retryAt)
    return { retryAt: new Date(retryAt), retryState: this.#writeState({ ...before, startedAt }) }
  }

  /**
   * Returns the outcome of a message whose due URLs were removed by an update: a retry when the next URL is due, or a dead letter if no URL
   * is left.
   */
  #waitForNextUrl(job: ClaimedJob, before: RetryState, now: number): Outcome {
    const at = findNextTime(this.#current.settings.targets, before, now)
    return at === undefined ? this.#fail(job, before, [], 'refused') : retryUnchanged(job, at)
  }

  /** Ends all posts when the signal aborts. Adds only one listener, because the queue passes the same signal with every job. */
  #abortPostsOn(signal: AbortSignal): void {
    if (signal === this.#watchedSignal) return
    this.#watchedSignal = signal
    signal.addEventListener('abort', () => this.#current.abort(), { once: true })
  }

  #fail(
    job: ClaimedJob,
    state: RetryState,
    latest: readonly Attempt[],
    reason: FailureReason,
    error?: unknown,
  ): Outcome {
    this.#report(readSent(job, state), { status: 'failed', latest, attempts: state.attempts, reason, error })
    return this.#makeDeadLetter(job, reason, this.#writeState(state))
  }

  #makeDeadLetter({ id, body }: ClaimedJob, reason: FailureReason, retryState?: Uint8Array): Outcome {
    this.#observers.publish('deadLetter', { id, body, reason, retryState, failedAt: new Date(this.#clock.now()) })
    return retryState === undefined ? { deadLetter: reason } : { deadLetter: reason, retryState }
  }

  #report(sent: StoredJob, details: ReportDetails): void {
    this.#observers.publish('attempted', new JobReport(sent, details))
  }

  #writeState(state: RetryState): Uint8Array {
    return writeRetryState(state, this.#current.settings.targets)
  }
}

/** Returns the message that is posted for a job: the result of `transform` or, without `transform`, the message as it was submitted. */
function readSent({ id, body }: ClaimedJob, { body: transformed }: RetryState): StoredJob {
  return { id, body: transformed === undefined ? messageBytes(body) : Buffer.from(transformed) }
}

function retryUnchanged({ retryState }: ClaimedJob, at: number): Outcome {
  const retryAt = new Date(at)
  return retryState === undefined ? { retryAt } : { retryAt, retryState }
}
