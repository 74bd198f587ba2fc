/** Handles the messages of the inbox: makes one attempt for each claim, and determines its outcome. */

import type { Clock } from '../kit/clock.ts'
import { createDeadlines, type Deadlines } from '../kit/deadlines.ts'
import { HooklineError } from '../protocol/error.ts'
import type { ReceivedMessage } from '../protocol/message.ts'
import { parseReceived } from '../protocol/parse.ts'
import type { BeginTransaction, ClaimedJob, Complete, Outcome, SaveState } from '../store/queue-types.ts'
import type { Attempt, Progress } from './attempt.ts'
import { Deadline } from './deadline.ts'
import type { Delivery } from './delivery.ts'
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
import type { BatchRoom, Held } from './message-batches.ts'
import { type DeliveryParts, NO_PROOF, ReceivedDelivery } from './received-delivery.ts'
import type { Validate } from './schema.ts'
import { readDeadLetter } from './stored-message.ts'
import type { Suppression } from './suppression.ts'
import type { Tap, Tried } from './tap.ts'
import { inTransaction, type Member } from './transaction.ts'

export interface HandlingSettings {
  readonly validate: Validate
  readonly takesCustom: boolean
  readonly clock: Clock
  readonly tap: Tap
}

/** A claim of a readable message, before its attempt. */
interface ReadableClaim {
  readonly job: ClaimedJob
  readonly parts: DeliveryParts
  readonly before: RetryState
  readonly signal: AbortSignal
  readonly save: SaveState | undefined
  /** Begins a transaction; undefined when handlers need none. */
  readonly begin: BeginTransaction | undefined
}

/** A claimed message, and the progress of its attempt. */
interface ClaimedMessage {
  readonly job: ClaimedJob
  readonly before: RetryState
  delivery: Delivery
  /** The message before its schema is applied; undefined until it is parsed. */
  wire?: ReceivedMessage
  /** The attempt; undefined until handlers are called. */
  attempt?: Attempt
  /** The progress of the handlers; undefined when no handler may see the message. */
  progress?: Progress
  /** The values that a transaction needs to complete the message; undefined without a transaction. */
  member?: Member
}

/** A message whose handlers may be called now. */
interface Placed {
  readonly wire: ReceivedMessage
  readonly parts: DeliveryParts
  readonly deadline: Deadline
  /** The message as the inbox holds it in memory, for batches; undefined without batch handlers. */
  readonly held: Held | undefined
}

const BEGIN_AGAIN_MS = 1_000
const MAX_LOST_CLAIMS = 5

/** Counts the claims of a job that were lost, because the process died or the lease lapsed. */
export function countLostClaims(job: ClaimedJob): number {
  const { attempts, releases } = retryStateOf(job)
  return job.claimCount - 1 - attempts - releases
}

/** Reads the retry state of a job. When the state is unreadable, each earlier claim counts as an attempt. */
function retryStateOf({ claimCount, retryState }: ClaimedJob): RetryState {
  return readRetryState(retryState, { attempts: claimCount - 1, releases: 0 })
}

export class StoredMessages {
  readonly #inbox: InboxSettings
  readonly #receiver: HandlingSettings
  readonly #tap: Tap
  readonly #handlers: Handlers
  readonly #suppression: Suppression
  readonly #room: BatchRoom | undefined
  readonly #deadlines: Deadlines
  readonly #stops = new Set<() => void>()
  #signal: AbortSignal | undefined
  #handled = 0
  #failed = 0
  #lastTurn = Number.NEGATIVE_INFINITY

  constructor(
    inbox: InboxSettings,
    receiver: HandlingSettings,
    handlers: Handlers,
    suppression: Suppression,
    room: BatchRoom | undefined,
  ) {
    this.#suppression = suppression
    this.#room = room
    this.#inbox = inbox
    this.#receiver = receiver
    this.#tap = receiver.tap
    this.#handlers = handlers
    this.#deadlines = createDeadlines(inbox.timeoutMs, receiver.clock)
  }

  /** How many attempts have succeeded, and how many have failed. */
  get ended(): { readonly handled: number; readonly failed: number } {
    return { handled: this.#handled, failed: this.#failed }
  }

  /** Whether an attempt is in progress, or a message waits for its turn. */
  get isBusy(): boolean {
    return this.#stops.size > 0 || this.#receiver.clock.now() < this.#lastTurn
  }

  /** Handles a claimed job, and returns the outcome. Makes an attempt unless the job is unreadable or its claims were lost too often. */
  async handle(job: ClaimedJob, signal: AbortSignal, save?: SaveState, begin?: BeginTransaction): Promise<Outcome> {
    const stored = retryStateOf(job)
    const isRedriven = job.claimCount === 1 && stored.attempts + stored.releases > 0
    const before = isRedriven ? { ...INITIAL, handlers: stored.handlers } : stored // Handlers that are done stay done.
    if (signal.aborted) return this.#release(before)
    if (isRedriven) {
      await save?.(writeRetryState(before)) // Attempts are counted from 0 again, even if this process dies now.
      if (signal.aborted) return this.#release(before)
    }
    let parts: DeliveryParts
    try {
      parts = { ...readEnvelope(job.body), id: job.id }
    } catch (error) {
      const delivery = unreadableDelivery({ ...job, at: job.firstAt })
      return this.#deadLetter({ job, before, delivery }, toError(error), 'unreadable')
    }
    if (this.#suppression.drops(parts)) return { complete: true }
    const lost = countLostClaims(job)
    if (lost < MAX_LOST_CLAIMS) {
      return this.#attempt({ job, parts, before, signal, save, begin: this.#inbox.transactional ? begin : undefined })
    }
    const reason = this.#inbox.queue.leaseMs === undefined ? 'crashed' : 'lease_lapsed'
    const message = `${lost} claims of the message ended before its handlers did: ${this.#explainLostClaim(job)}. Fix the cause, then redrive the message.`
    const error = new HooklineError(reason === 'crashed' ? 'internal' : reason, message)
    return this.#deadLetter({ job, before, delivery: new ReceivedDelivery(parts) }, error, reason)
  }

  /** Explains why a claim was lost. A lease lapses when its process dies, or when its process lives but cannot renew the lease. */
  #explainLostClaim({ blockedMs }: ClaimedJob): string {
    if (blockedMs !== undefined) return `the event loop was blocked for ${(blockedMs / 1_000).toFixed(1)} s`
    return this.#inbox.queue.leaseMs === undefined
      ? 'the process died'
      : 'each process died, blocked its event loop or lost its connection to the engine'
  }

  async #attempt({ job, parts, before, signal, save, begin }: ReadableClaim): Promise<Outcome> {
    const deadline = new Deadline(this.#deadlines, 'handlers')
    // In a transaction, no handler is done until all of them are, so nothing is saved before then.
    const saving = createDeferredSave(
      () => begin === undefined && save?.(writeRetryState(this.#withHandlers(before, progress))),
    )
    const { done = [], failed = [] } = before.handlers ?? {}
    const progress: Progress = {
      ...{ done, failed },
      turns: new Map(before.turns),
      only: parts.replay?.handlers,
      save: saving.later,
    }
    const claimed: ClaimedMessage = { job, before, delivery: new ReceivedDelivery(parts, deadline), progress }
    const stop = (): void => deadline.pass(new HooklineError('shutting_down', STOPPED))
    this.#stopAllOnAbort(signal)
    this.#stops.add(stop)
    let held: Held | undefined
    try {
      const wire = parseReceived(parts.bytes, this.#receiver.takesCustom)
      claimed.wire = wire
      if (begin !== undefined && this.#handlers.match(wire)) {
        const note: Member['note'] = (...names) => this.#completionOf(claimed, names).log
        claimed.member = { job, deadline, begin: () => begin(this.#inbox.timeoutMs), note }
      }
      held = this.#room?.enter(job.body.byteLength, this.#handlers.matchAlone(wire))
      if (held?.place !== undefined) await held.place
      deadline.startStage('handlers') // Throws if the attempt was stopped while it waited.
      await deadline.wait(this.#runHandlers(claimed, { wire, parts, deadline, held }), (error) =>
        this.#reportLate(error, claimed, deadline),
      )
      const { turns } = progress
      if (turns.size > 0) {
        this.#lastTurn = Math.max(this.#lastTurn, ...turns.values())
        claimed.attempt?.endTrace?.()
        return this.#release(this.#withHandlers(before, progress), Math.min(...turns.values()))
      }
      this.#handled += 1
      if (claimed.attempt !== undefined) this.#tap.publishHandled(claimed.attempt)
      return this.#completionOf(claimed)
    } catch (thrown) {
      const error = toError(thrown)
      if (error.code === 'shutting_down' && error === deadline.error) {
        claimed.attempt?.endTrace?.(error)
        return this.#release(this.#withHandlers(before, progress))
      }
      const isFinal = isUnusable(error) && !claimed.member?.isUncounted
      return isFinal ? this.#deadLetter(claimed, error) : this.#retry(claimed, error)
    } finally {
      deadline.stop()
      held?.leave()
      saving.cancel()
      this.#stops.delete(stop)
    }
  }

  async #runHandlers(claimed: ClaimedMessage, { wire, parts, deadline, held }: Placed): Promise<void> {
    const message = await this.#receiver.validate(wire)
    deadline.startStage('handlers')
    const { job, progress, before, member } = claimed
    if (progress !== undefined && !this.#handlers.takeTurns(wire, progress)) return
    const dispatch = (delivery: Delivery): Promise<undefined> | undefined => {
      claimed.delivery = delivery
      claimed.attempt = this.#tap.beginAttempt({
        message,
        wire,
        delivery,
        deadline,
        progress,
        number: before.attempts + 1,
        batching: held && { ...held, isAlone: countLostClaims(job) > 0, member },
      })
      return this.#handlers.dispatch(claimed.attempt)
    }
    // When only batch handlers match, their batch begins the transaction.
    if (member === undefined || !this.#handlers.matchAlone(wire)) return dispatch(claimed.delivery)
    await inTransaction([member], (db) => dispatch(new ReceivedDelivery({ ...parts, db }, deadline)))
  }

  /** Reports errors of handlers after the deadline. Errors of handlers that `close` or `work` stopped are expected, and not reported. */
  #reportLate(error: unknown, { delivery, wire }: ClaimedMessage, deadline: Deadline): void {
    if (error === deadline.error || deadline.error?.code === 'shutting_down') return
    this.#tap.reportLate(toError(error), { delivery, message: wire })
  }

  /**
   * Returns the outcome of a message whose handlers have all succeeded, including those with these names. A copy made by a replay gets no
   * note, because the log already has the original message.
   */
  #completionOf({ delivery, attempt, progress }: ClaimedMessage, names: readonly string[] = []): Complete {
    if (this.#inbox.history === undefined || delivery.replay !== undefined) return { complete: true }
    const done = [...(progress as Progress).done, ...names]
    const isNamed = done.some((name) => name !== '')
    return { complete: true, log: writeNote({ handlers: isNamed ? done : [], ignored: attempt?.isIgnored === true }) }
  }

  #retry(claimed: ClaimedMessage, error: HooklineError): Outcome {
    const { before, progress } = claimed
    const isUncounted = claimed.member?.isUncounted
    const attempts = before.attempts + (isUncounted ? 0 : 1)
    const releases = before.releases + (isUncounted ? 1 : 0)
    const delay = isUncounted ? BEGIN_AGAIN_MS : this.#inbox.nextDelay(attempts, error)
    if (delay === undefined) return this.#deadLetter(claimed, error)
    if (!isUncounted) this.#failed += 1
    const retryAt = new Date(this.#receiver.clock.now() + delay)
    const state = this.#withHandlers({ ...before, attempts, releases, error: toStoredError(error) }, progress)
    const { handlers: names } = state
    const next = `${describeHandlers(names)}Attempt ${attempts}; the next follows at ${retryAt.toISOString()}.`
    const line = describe(error, subjectOf(claimed), next, { attempts, retryAt, handlers: names })
    this.#tap.reportFailed(triedIn(claimed), { error, next: { retryAt }, attempt: attempts, handlers: names }, line)
    return { retryAt, retryState: writeRetryState(state) }
  }

  /** @param unattempted The reason for the dead letter when there was no attempt. Default: the code of the error. */
  #deadLetter(claimed: ClaimedMessage, error: HooklineError, unattempted?: DeadLetterReason): Outcome {
    const { job, before, progress } = claimed
    const { id, body } = job
    this.#failed += 1
    const attempts = before.attempts + (unattempted === undefined ? 1 : 0)
    const reason = unattempted ?? error.code
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

  /**
   * Adds the progress of named handlers to a retry state. In a transactional inbox, adds no handler that succeeded in this attempt, because
   * the transaction was rolled back.
   */
  #withHandlers(state: RetryState, progress: Progress | undefined): RetryState {
    if (progress === undefined) return state
    const done = this.#inbox.transactional ? (state.handlers?.done ?? []) : progress.done
    const { failed } = progress
    const isNamed = done.length > 0 || failed.some((name) => name !== '')
    const { turns: _, ...rest } = state
    const turns = progress.turns.size > 0 && { turns: [...progress.turns] }
    return { ...rest, ...(isNamed && { handlers: { done, failed } }), ...turns }
  }

  /**
   * Releases a job, which is due again now or at the given time. The release is counted, so that the claim counts neither as an attempt nor
   * as lost.
   */
  #release(before: RetryState, at = this.#receiver.clock.now()): Outcome {
    return {
      retryAt: new Date(at),
      retryState: writeRetryState({ ...before, releases: before.releases + 1 }),
    }
  }

  /** Tells all handlers to stop, and releases their messages. */
  readonly stop = (): void => {
    for (const stop of this.#stops) stop()
  }

  /**
   * Stops all attempts when the signal aborts. The queue gives every job the same signal, so one listener is enough for all jobs. Jobs that
   * arrive after the abort are released without an attempt.
   */
  #stopAllOnAbort(signal: AbortSignal): void {
    if (signal === this.#signal) return
    this.#signal = signal
    signal.addEventListener('abort', this.stop, { once: true })
  }
}

const STOPPED =
  'The receiver closed, or `work` ended, before the handlers finished. Stop handling the message: another attempt follows.'

/** Delays a save to the next turn of the event loop. Most attempts have ended by then, and need no save. */
function createDeferredSave(save: () => unknown) {
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

function subjectOf({ delivery, wire }: ClaimedMessage): Subject {
  return { delivery, message: wire }
}

function triedIn({ delivery, attempt }: ClaimedMessage): Tried {
  return attempt ?? { delivery, message: undefined, isStored: true }
}

/** Returns the delivery of a job whose body is not an envelope. */
export function unreadableDelivery({
  id,
  body,
  at,
}: Pick<ClaimedJob, 'id' | 'body'> & { readonly at: Date }): Delivery {
  const arrival = {
    method: 'POST',
    headers: {},
    bytes: body,
    bodySource: 'argument',
    receivedAt: at.getTime(),
  } as const
  return new ReceivedDelivery({ ...arrival, ...NO_PROOF, id })
}
