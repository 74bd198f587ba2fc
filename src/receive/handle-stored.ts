/** Handles the messages of the inbox: one attempt for each claim, and the outcome of the attempt. */

import type { Clock } from '../kit/clock.ts'
import { createDeadlines, type Deadlines } from '../kit/deadlines.ts'
import { HooklineError } from '../protocol/error.ts'
import type { ReceivedMessage } from '../protocol/message.ts'
import { parseReceived } from '../protocol/parse.ts'
import type { BeginTransaction, ClaimedJob, Outcome, SaveState } from '../store/queue-types.ts'
import type { Attempt, Progress } from './attempt.ts'
import { Deadline } from './deadline.ts'
import type { Delivery, TransactionClient } from './delivery.ts'
import { readEnvelope } from './envelope.ts'
import { isUnusable, toError } from './failure.ts'
import type { Handlers } from './handlers.ts'
import type { InboxSettings } from './inbox-options.ts'
import {
  type DeadLetterReason,
  INITIAL,
  type RetryState,
  readRetryState,
  toStoredError,
  writeNote,
  writeRetryState,
} from './inbox-state.ts'
import { describe, describeHandlers, type Subject } from './log-lines.ts'
import { type DeliveryParts, NO_PROOF, ReceivedDelivery } from './received-delivery.ts'
import type { Validate } from './schema.ts'
import { readDeadLetter } from './stored-message.ts'
import type { Tap, Tried } from './tap.ts'

export interface HandlingSettings {
  readonly validate: Validate
  readonly takesCustom: boolean
  readonly clock: Clock
  readonly tap: Tap
}

/** A claimed message, and how far its attempt came. */
interface Claimed {
  readonly job: ClaimedJob
  readonly before: RetryState
  delivery: Delivery
  /** Undefined until it is parsed. */
  wire?: ReceivedMessage
  /** Undefined until its handlers are called. */
  attempt?: Attempt
  /** Undefined for one that no handler may see. */
  progress?: Progress
}

/** The database did not begin a transaction: no handler ran. */
class NotBegun extends Error {
  readonly error: HooklineError

  constructor(error: HooklineError) {
    super(error.message)
    this.error = error
  }
}

const BEGIN_AGAIN_MS = 1_000
const MAX_LOST_CLAIMS = 5

/** How many claims of a job ended with their process, or lapsed. When its state is unreadable, each earlier claim is an attempt. */
export function countLostClaims({ claimCount, retryState }: ClaimedJob): number {
  const { attempts, releases } = readRetryState(retryState, { attempts: claimCount - 1, releases: 0 })
  return claimCount - 1 - attempts - releases
}

/** Handles the messages of an inbox. */
export class StoredMessages {
  readonly #inbox: InboxSettings
  readonly #receiver: HandlingSettings
  readonly #tap: Tap
  readonly #handlers: Handlers
  readonly #deadlines: Deadlines
  readonly #stops = new Set<() => void>()
  #watched: AbortSignal | undefined

  constructor(inbox: InboxSettings, receiver: HandlingSettings, handlers: Handlers) {
    this.#inbox = inbox
    this.#receiver = receiver
    this.#tap = receiver.tap
    this.#handlers = handlers
    this.#deadlines = createDeadlines(inbox.timeoutMs, receiver.clock)
  }

  /** Handles a claimed job. */
  async handle(job: ClaimedJob, signal: AbortSignal, save?: SaveState, begin?: BeginTransaction): Promise<Outcome> {
    const stored = readRetryState(job.retryState, { attempts: job.claimCount - 1, releases: 0 })
    const isRedriven = job.claimCount === 1 && stored.attempts + stored.releases > 0
    const before = isRedriven ? begunAnew(stored) : stored
    if (signal.aborted) return this.#release(before)
    if (isRedriven) {
      await save?.(writeRetryState(before)) // It has begun anew, also when this process dies.
      if (signal.aborted) return this.#release(before)
    }
    let parts: DeliveryParts
    try {
      parts = { ...readEnvelope(job.body), id: job.id }
    } catch (error) {
      const delivery = deliveryOf({ ...job, at: job.firstAt })
      return this.#deadLetter({ job, before, delivery }, error as HooklineError, 'unreadable')
    }
    const lost = countLostClaims(job)
    if (lost < MAX_LOST_CLAIMS)
      return this.#attempt(job, parts, before, signal, save, this.#inbox.transactional ? begin : undefined)
    const reason = this.#inbox.queue.leaseMs === undefined ? 'crashed' : 'lease_lapsed'
    const message = `${lost} claims of the message ended before its handlers: ${this.#explain(job)}. Fix the cause, then redrive it.`
    const error = new HooklineError(reason === 'crashed' ? 'internal' : reason, message)
    return this.#deadLetter({ job, before, delivery: new ReceivedDelivery(parts) }, error, reason)
  }

  /** Where claims are leases, a lapsed one does not tell a process that died from one that lives. */
  #explain({ blockedMs }: ClaimedJob): string {
    if (blockedMs !== undefined) return `event loop blocked for ${(blockedMs / 1_000).toFixed(1)} s`
    return this.#inbox.queue.leaseMs === undefined
      ? 'the process died'
      : 'the process died, blocked its event loop or lost the engine'
  }

  async #attempt(
    job: ClaimedJob,
    parts: DeliveryParts,
    before: RetryState,
    signal: AbortSignal,
    save: SaveState | undefined,
    begin: BeginTransaction | undefined,
  ): Promise<Outcome> {
    const deadline = new Deadline(this.#deadlines, 'handlers')
    const saving = createSaving(
      () => begin === undefined && save?.(writeRetryState(this.#withHandlers(before, progress))),
    )
    const { done = [], failed = [] } = before.handlers ?? {}
    const progress: Progress = { done, failed, only: parts.replay?.handlers, save: saving.later }
    const claimed: Claimed = { job, before, delivery: new ReceivedDelivery(parts, deadline), progress }
    const stop = (): void => deadline.pass(new HooklineError('shutting_down', STOPPED))
    this.#watch(signal)
    this.#stops.add(stop)
    try {
      await deadline.wait(this.#run(claimed, parts, deadline, begin), (error) =>
        this.#tellLate(error, claimed, deadline),
      )
      if (claimed.attempt !== undefined) this.#tap.publishHandled(claimed.attempt)
      return this.#completed(claimed)
    } catch (thrown) {
      const error = toError(thrown)
      if (error.code === 'shutting_down' && error === deadline.error)
        return this.#release(this.#withHandlers(before, progress))
      if (thrown instanceof NotBegun) return this.#retry(claimed, thrown.error, BEGIN_AGAIN_MS)
      return isUnusable(error) ? this.#deadLetter(claimed, error) : this.#retry(claimed, error)
    } finally {
      deadline.end()
      saving.cancel()
      this.#stops.delete(stop)
    }
  }

  async #run(
    claimed: Claimed,
    parts: DeliveryParts,
    deadline: Deadline,
    begin: BeginTransaction | undefined,
  ): Promise<void> {
    const wire = parseReceived(parts.bytes, this.#receiver.takesCustom)
    claimed.wire = wire
    const message = await this.#receiver.validate(wire)
    deadline.startStage('handlers')
    const { progress, before } = claimed
    const dispatch = (delivery: Delivery): Promise<undefined> | undefined => {
      claimed.delivery = delivery
      claimed.attempt = this.#tap.beginAttempt({
        message,
        wire,
        delivery,
        deadline,
        progress,
        number: before.attempts + 1,
      })
      return this.#handlers.dispatch(claimed.attempt)
    }
    if (begin === undefined || !this.#handlers.match(wire)) return dispatch(claimed.delivery)
    await this.#inTransaction(begin, deadline, claimed, (db) =>
      dispatch(new ReceivedDelivery({ ...parts, db }, deadline)),
    )
  }

  /** What the handlers write and the completion of the message commit together. */
  async #inTransaction(
    begin: BeginTransaction,
    deadline: Deadline,
    claimed: Claimed,
    dispatch: (db: TransactionClient) => Promise<undefined> | undefined,
  ): Promise<void> {
    const transaction = await begin(this.#inbox.timeoutMs).catch((error) => {
      throw new NotBegun(toError(error))
    })
    const rollback = (): void => void transaction.rollback()
    deadline.signal.addEventListener('abort', rollback, { once: true })
    try {
      if (deadline.error !== undefined) return await transaction.rollback()
      await dispatch(transaction.db as TransactionClient)
      if (deadline.error !== undefined) return
      deadline.end() // The commit alone decides from here on.
      const outcome = this.#completed(claimed)
      await transaction.commit('log' in outcome ? outcome.log : undefined)
    } catch (error) {
      await transaction.rollback()
      throw error
    } finally {
      deadline.signal.removeEventListener('abort', rollback)
    }
  }

  /** A handler that was told to stop is expected to fail. */
  #tellLate(error: unknown, { delivery, wire }: Claimed, deadline: Deadline): void {
    if (error === deadline.error || deadline.error?.code === 'shutting_down') return
    this.#tap.reportLate(toError(error), { delivery, message: wire })
  }

  /** The message of a copy is in the log already. */
  #completed({ delivery, attempt, progress }: Claimed): Outcome {
    if (this.#inbox.history === undefined || delivery.replay !== undefined) return { complete: true }
    const { done } = progress as Progress
    const isNamed = done.some((name) => name !== '')
    const note = { ...(isNamed && { handlers: done }), ...(attempt?.isIgnored && { ignored: true as const }) }
    return { complete: true, log: writeNote(note) }
  }

  /** @param uncountedMs When no handler ran: it is no attempt, and this is the delay. */
  #retry(claimed: Claimed, error: HooklineError, uncountedMs?: number): Outcome {
    const { before, progress } = claimed
    const isCounted = uncountedMs === undefined
    const attempts = before.attempts + (isCounted ? 1 : 0)
    const releases = before.releases + (isCounted ? 0 : 1)
    const delay = uncountedMs ?? this.#inbox.nextDelay(attempts, error)
    if (delay === undefined) return this.#deadLetter(claimed, error)
    const retryAt = new Date(this.#receiver.clock.now() + delay)
    const state = this.#withHandlers({ ...before, attempts, releases, error: toStoredError(error) }, progress)
    const { handlers: names } = state
    const next = `${describeHandlers(names)}Attempt ${attempts}; the next follows at ${retryAt.toISOString()}.`
    const line = describe(error, subjectOf(claimed), next, { attempts, retryAt, handlers: names })
    this.#tap.reportFailed(triedIn(claimed), { error, next: { retryAt }, attempt: attempts, handlers: names }, line)
    return { retryAt, retryState: writeRetryState(state) }
  }

  #deadLetter(claimed: Claimed, error: HooklineError, given?: DeadLetterReason): Outcome {
    const { job, before, progress } = claimed
    const { id, body } = job
    const attempts = before.attempts + (given === undefined ? 1 : 0)
    const reason = given ?? error.code
    const state = this.#withHandlers({ ...before, attempts, error: toStoredError(error) }, progress)
    const { handlers: names } = state
    const next = `${describeHandlers(names)}Attempts: ${attempts}. Fix the cause, then call receiver.redrive(['${id}']).`
    const { text, fields } = describe(error, subjectOf(claimed), next, { reason, attempts, handlers: names })
    const line = { level: 'error', code: 'dead_letter', text: `dead letter: ${text}`, fields } as const
    this.#tap.reportFailed(triedIn(claimed), { error, next: 'dead_letter', attempt: attempts, handlers: names }, line)
    const retryState = writeRetryState(state)
    this.#tap.reportDeadLetter(() =>
      readDeadLetter({ id, body, reason, retryState, failedAt: new Date(this.#receiver.clock.now()) }),
    )
    return { deadLetter: reason, retryState }
  }

  /** In a transaction, what succeeded in this attempt was undone with the rest. */
  #withHandlers(state: RetryState, progress: Progress | undefined): RetryState {
    if (progress === undefined) return state
    const done = this.#inbox.transactional ? (state.handlers?.done ?? []) : progress.done
    const { failed } = progress
    const isNamed = done.length > 0 || failed.some((name) => name !== '')
    return isNamed ? { ...state, handlers: { done, failed } } : state
  }

  /** Due again at once. Counted, so that it is taken neither for a failed attempt nor for a crash. */
  #release(before: RetryState): Outcome {
    return {
      retryAt: new Date(this.#receiver.clock.now()),
      retryState: writeRetryState({ ...before, releases: before.releases + 1 }),
    }
  }

  #watch(signal: AbortSignal): void {
    if (signal === this.#watched) return
    this.#watched = signal
    signal.addEventListener('abort', () => [...this.#stops].forEach((stop) => void stop()), { once: true })
  }
}

/** What handlers have done stays done. */
function begunAnew({ handlers }: RetryState): RetryState {
  return { ...INITIAL, ...(handlers && { handlers }) }
}

const STOPPED = 'The receiver closed before the handlers finished. Stop: another attempt follows.'

/** Saves in the next turn: most messages are over by then. */
function createSaving(save: () => unknown) {
  let immediate: NodeJS.Immediate | undefined
  return {
    later(): void {
      immediate ??= setImmediate(() => {
        immediate = undefined
        save()
      })
    },
    cancel: (): void => clearImmediate(immediate),
  }
}

function subjectOf({ delivery, wire }: Claimed): Subject {
  return { delivery, message: wire }
}

function triedIn({ delivery, attempt }: Claimed): Tried {
  return attempt ?? { delivery, message: undefined, isStored: true }
}

/** The delivery of a job whose body cannot be read as a stored message. */
export function deliveryOf({ id, body, at }: Pick<ClaimedJob, 'id' | 'body'> & { readonly at: Date }): Delivery {
  const arrival = {
    method: 'POST',
    headers: {},
    bytes: body,
    bodySource: 'argument',
    receivedAt: at.getTime(),
  } as const
  return new ReceivedDelivery({ ...arrival, ...NO_PROOF, id })
}
