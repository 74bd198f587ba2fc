/** Handles the messages of the inbox: one attempt for each claim, and the outcome of the attempt. */

import type { TransactionClient } from '../handling/delivery.ts'
import { isUnusable, toError } from '../handling/failure.ts'
import type { Handlers } from '../handling/handlers.ts'
import { describe, describeHandlers } from '../handling/log-lines.ts'
import type { ReceiverObservers } from '../handling/observer.ts'
import { OpenDelivery, type Progress } from '../handling/open-delivery.ts'
import type { Validate } from '../handling/schema.ts'
import type { Tap } from '../handling/tap.ts'
import { HooklineError } from '../message/error.ts'
import type { BeginTransaction, ClaimedJob, DeadLetter, HandleJob, Outcome, SaveState } from '../queues/api.ts'
import type { Clock } from '../time/clock.ts'
import { createDeadlines } from '../time/deadlines.ts'
import { readEnvelope } from './envelope.ts'
import type { InboxSettings } from './options.ts'
import {
  type DeadLetterReason,
  INITIAL,
  type RetryState,
  readRetryState,
  toStoredError,
  writeNote,
  writeRetryState,
} from './retry-state.ts'

export interface HandlingSettings {
  readonly validate: Validate
  readonly takesCustom: boolean
  readonly clock: Clock
  readonly tap: Tap
  readonly observers: ReceiverObservers
}

interface Claimed {
  readonly job: ClaimedJob
  readonly delivery: OpenDelivery
  readonly before: RetryState
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

export function createJobHandler(
  { queue, nextDelay, timeoutMs, history, transactional }: InboxSettings,
  { validate, takesCustom, clock, tap, observers }: HandlingSettings,
  handlers: Handlers,
  onDeadLetter: (letter: DeadLetter) => void,
): HandleJob {
  const deadlines = createDeadlines(timeoutMs, clock)
  const stops = new Set<() => void>()
  let watched: AbortSignal | undefined

  return async (job, signal, save, begin) => {
    const stored = readRetryState(job.retryState, { attempts: job.claimCount - 1, releases: 0 })
    const isRedriven = job.claimCount === 1 && stored.attempts + stored.releases > 0
    const before = isRedriven ? begunAnew(stored) : stored
    if (signal.aborted) return release(before)
    if (isRedriven) await save?.(writeRetryState(before)) // It has begun anew, also when this process dies.
    let delivery: OpenDelivery
    try {
      delivery = readEnvelope(job.body)
      delivery.id = job.id
      delivery.setObserved(observers.current, true)
    } catch (error) {
      delivery = deliveryOf({ ...job, at: job.firstAt }, observers)
      return deadLetter({ job, delivery, before }, error as HooklineError, 'unreadable')
    }
    const lost = countLostClaims(job)
    if (lost < MAX_LOST_CLAIMS)
      return attempt({ job, delivery, before }, signal, save, transactional ? begin : undefined)
    const reason = queue.leaseMs === undefined ? 'crashed' : 'lease_lapsed'
    const message = `The handlers of a message must end while its claim lasts. Got ${lost} claims that ended before: ${explain(job)}. Fix the cause, then redrive it.`
    const error = new HooklineError(reason === 'crashed' ? 'internal' : reason, message)
    return deadLetter({ job, delivery, before }, error, reason)
  }

  /** Where claims are leases, a lapsed one does not tell a process that died from one that lives. */
  function explain({ blockedMs }: ClaimedJob): string {
    if (blockedMs !== undefined) return `event loop blocked for ${(blockedMs / 1_000).toFixed(1)} s`
    return queue.leaseMs === undefined
      ? 'the process died'
      : 'the process died, blocked its event loop or lost the engine'
  }

  function attempt(
    claimed: Claimed,
    signal: AbortSignal,
    save?: SaveState,
    begin?: BeginTransaction,
  ): Promise<Outcome> {
    const { delivery, before } = claimed
    watch(signal)
    return new Promise((resolve) => {
      let isReleased = false
      let saving: NodeJS.Immediate | undefined // In the next turn: most messages are over by then.
      delivery.progress = {
        done: before.handlers?.done ?? [],
        failed: before.handlers?.failed ?? [],
        only: delivery.replay?.handlers,
        save() {
          if (begin !== undefined) return // What was done is undone when another one fails.
          saving ??= setImmediate(() => {
            saving = undefined
            void save?.(writeRetryState(withHandlers(before, delivery)))
          })
        },
      }
      const endWait = (): void => {
        clearImmediate(saving)
        deadlines.clear(deadline)
        stops.delete(stop)
      }
      const end = (outcome: Outcome): void => {
        endWait()
        resolve(outcome)
      }
      const stop = (): void => {
        isReleased = true
        const message =
          'The handlers must finish before the receiver closes. Got no result. Stop: another attempt follows.'
        delivery.expire(new HooklineError('shutting_down', message))
        end(release(withHandlers(before, delivery)))
      }
      const deadline = deadlines.set(() => end(retry(claimed, delivery.expire())))
      stops.add(stop)

      run(claimed, begin, endWait).then(
        () => {
          if (delivery.expired !== undefined) return
          tap.handled(delivery, before.attempts + 1)
          end(completed(claimed))
        },
        (thrown: unknown) => {
          const error = toError(thrown)
          if (isReleased) return // Its signal fired, so an error is expected.
          if (delivery.expired !== undefined) tap.failedLate(delivery, error)
          else if (thrown instanceof NotBegun) end(retry(claimed, thrown.error, BEGIN_AGAIN_MS))
          else end(isUnusable(error) ? deadLetter(claimed, error) : retry(claimed, error))
        },
      )
    })
  }

  async function run(claimed: Claimed, begin: BeginTransaction | undefined, endWait: () => void): Promise<void> {
    const { delivery } = claimed
    delivery.enter('handlers')
    const wire = delivery.read(takesCustom)
    const message = await validate(wire)
    if (delivery.expired !== undefined) return
    delivery.setDispatched(message, tap.startOf('handled', delivery))
    const dispatch = () => handlers.dispatch(message, wire, delivery)
    if (begin === undefined || !handlers.match(wire)) await dispatch()
    else await inTransaction(claimed, begin, dispatch, endWait)
  }

  /** What the handlers write and the completion of the message commit together. */
  async function inTransaction(
    claimed: Claimed,
    begin: BeginTransaction,
    dispatch: () => Promise<void> | undefined,
    endWait: () => void,
  ): Promise<void> {
    const { delivery } = claimed
    const transaction = await begin(timeoutMs).catch((error) => {
      throw new NotBegun(toError(error))
    })
    const rollback = (): void => void transaction.rollback()
    delivery.signal.addEventListener('abort', rollback, { once: true })
    try {
      if (delivery.expired !== undefined) return await transaction.rollback()
      delivery.db = transaction.db as TransactionClient
      await dispatch()
      if (delivery.expired !== undefined) return
      endWait() // The commit alone decides from here on.
      const outcome = completed(claimed)
      await transaction.commit('log' in outcome ? outcome.log : undefined)
    } catch (error) {
      await transaction.rollback()
      throw error
    } finally {
      delivery.signal.removeEventListener('abort', rollback)
    }
  }

  /** The message of a copy is in the log already. */
  function completed({ delivery }: Claimed): Outcome {
    if (history === undefined || delivery.replay !== undefined) return { complete: true }
    const { done } = delivery.progress as Progress
    const isNamed = done.some((name) => name !== '')
    const note = { ...(isNamed && { handlers: done }), ...(delivery.isIgnored && { ignored: true as const }) }
    return { complete: true, log: writeNote(note) }
  }

  /** @param uncountedMs When no handler ran: it is no attempt, and this is the delay. */
  function retry(claimed: Claimed, error: HooklineError, uncountedMs?: number): Outcome {
    const { delivery, before } = claimed
    const isCounted = uncountedMs === undefined
    const attempts = before.attempts + (isCounted ? 1 : 0)
    const releases = before.releases + (isCounted ? 0 : 1)
    const delay = uncountedMs ?? nextDelay(attempts, error)
    if (delay === undefined) return deadLetter(claimed, error)
    const retryAt = new Date(clock.now() + delay)
    const state = withHandlers({ ...before, attempts, releases, error: toStoredError(error) }, delivery)
    const { handlers: names } = state
    const next = `${describeHandlers(names)}Attempt ${attempts}; the next follows at ${retryAt.toISOString()}.`
    const line = describe(error, delivery, next, { attempts, retryAt, handlers: names })
    tap.failed(delivery, { error, next: { retryAt }, attempt: attempts, handlers: names }, line)
    return { retryAt, retryState: writeRetryState(state) }
  }

  function deadLetter(
    { job: { id, body }, delivery, before }: Claimed,
    error: HooklineError,
    given?: DeadLetterReason,
  ): Outcome {
    const attempts = before.attempts + (given === undefined ? 1 : 0)
    const reason = given ?? error.code
    const state = withHandlers({ ...before, attempts, error: toStoredError(error) }, delivery)
    const { handlers: names } = state
    const next = `${describeHandlers(names)}Attempts: ${attempts}. Fix the cause, then call receiver.redrive(['${id}']).`
    const { text, fields } = describe(error, delivery, next, { reason, attempts, handlers: names })
    const line = { level: 'error', code: 'dead_letter', text: `dead letter: ${text}`, fields } as const
    tap.failed(delivery, { error, next: 'dead_letter', attempt: attempts, handlers: names }, line)
    const retryState = writeRetryState(state)
    onDeadLetter({ id, body, reason, retryState, failedAt: new Date(clock.now()) })
    return { deadLetter: reason, retryState }
  }

  /** In a transaction, what succeeded in this attempt was undone with the rest. */
  function withHandlers(state: RetryState, { progress }: OpenDelivery): RetryState {
    if (progress === undefined) return state
    const done = transactional ? (state.handlers?.done ?? []) : progress.done
    const { failed } = progress
    const isNamed = done.length > 0 || failed.some((name) => name !== '')
    return isNamed ? { ...state, handlers: { done, failed } } : state
  }

  /** Due again at once. Counted, so that it is taken neither for a failed attempt nor for a crash. */
  function release(before: RetryState): Outcome {
    return { retryAt: new Date(clock.now()), retryState: writeRetryState({ ...before, releases: before.releases + 1 }) }
  }

  function watch(signal: AbortSignal): void {
    if (signal === watched) return
    watched = signal
    signal.addEventListener('abort', () => [...stops].forEach((stop) => void stop()), { once: true })
  }
}

/** What handlers have done stays done. */
function begunAnew({ handlers }: RetryState): RetryState {
  return { ...INITIAL, ...(handlers && { handlers }) }
}

/** The delivery of a job whose body cannot be read as a stored message. */
export function deliveryOf(
  { id, body, at }: Pick<ClaimedJob, 'id' | 'body'> & { readonly at: Date },
  observers: ReceiverObservers,
): OpenDelivery {
  const delivery = new OpenDelivery({}, at.getTime())
  delivery.id = id
  delivery.setBody({ bytes: body, source: 'argument' })
  delivery.setObserved(observers.current, true)
  return delivery
}
