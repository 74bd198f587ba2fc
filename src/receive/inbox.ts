/** The inbox of a receiver: stores messages in its queue, controls when they are handled, and closes the queue. */

import { requireKey } from '../kit/checks.ts'
import { unref } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { withTimeout } from '../kit/timeout.ts'
import { HooklineError } from '../protocol/error.ts'
import { idOfKey } from '../protocol/id.ts'
import { matchUser } from '../protocol/identity.ts'
import type { ReceivedMessage } from '../protocol/message.ts'
import { parseReceived } from '../protocol/parse.ts'
import { readGroup } from '../store/groups.ts'
import type { QueueCounts } from '../store/health.ts'
import { createLetters } from '../store/letters.ts'
import type {
  ClaimedJob,
  DeadLetter,
  Forgotten,
  HandleJob,
  Job,
  Queue,
  QueueLog,
  StoredJob,
} from '../store/queue-types.ts'
import type { Delivery } from './delivery.ts'
import { bodyOf, readEnvelope, sourceOf, writeEnvelope } from './envelope.ts'
import { countLostClaims, type HandlingSettings, StoredMessages, unreadableDelivery } from './handle-stored.ts'
import type { Handlers } from './handlers.ts'
import type { HandledMessage, HistoryFilter, Replay, ReplayOptions } from './history.ts'
import type { InboxSettings } from './inbox-options.ts'
import { BatchRoom } from './message-batches.ts'
import { createRoom, smallerRoom } from './pace.ts'
import { type DeliveryParts, keyWithin, ReceivedDelivery } from './received-delivery.ts'
import type { ForgetOptions } from './receiver-types.ts'
import {
  type DeadLetterMessage,
  failedIn,
  readDeadLetter,
  readStored,
  reasonOf,
  type StoredMessage,
} from './stored-message.ts'
import { Suppression } from './suppression.ts'
import { type ReceiverWorkOptions, type WorkEnd, type WorkResult, waitForEnd } from './work.ts'

interface Prepared {
  readonly job: Job
  readonly delivery: Delivery
}

export interface InboxReceiver extends HandlingSettings {
  readonly log: Log
}

const START_MS = 10_000
/** How long releasing messages may take when the work ends, in milliseconds. */
const RELEASE_MS = 1_000

export class Inbox {
  readonly timeoutMs: number
  readonly letters: ReturnType<typeof createLetters<DeadLetterMessage>>
  readonly suppression: Suppression
  readonly #settings: InboxSettings
  readonly #receiver: InboxReceiver
  readonly #handlers: Handlers
  readonly #queue: Queue
  /** The timer of the check that messages are handled. The first message starts the timer. */
  #startTimer: unknown
  #isPaused = false
  /** Handles the messages; undefined until `start` or `work` is called. */
  #stored: StoredMessages | undefined
  /** Whether messages are being handled: false before `start` or `work` is called, and between calls to `work`. */
  #isWorking = false
  readonly #closing = new AbortController()

  constructor(settings: InboxSettings, receiver: InboxReceiver, handlers: Handlers) {
    this.timeoutMs = settings.timeoutMs
    this.#settings = settings
    this.#receiver = receiver
    this.#handlers = handlers
    this.#queue = settings.queue
    this.#queue.reserve?.('inbox')
    this.suppression = new Suppression(settings.queue, receiver.tap, receiver.clock)
    this.letters = createLetters<DeadLetterMessage>(settings.queue, {
      readLetter: readDeadLetter,
      reasonOf,
      bodyOf,
      filter: 'handler',
      isOf: failedIn,
    })
  }

  /**
   * Creates the job of a message, and its delivery.
   *
   * @param message Undefined for an authentic message that is invalid.
   */
  prepare(parts: DeliveryParts, message: ReceivedMessage | undefined): Prepared {
    let delivery = new ReceivedDelivery(parts)
    const id = this.#idOf(delivery, message)
    if (id !== undefined) delivery = new ReceivedDelivery({ ...parts, id })
    const group = this.#groupOf(delivery, message)
    return { job: { id: delivery.id, body: writeEnvelope(parts, group), group }, delivery }
  }

  /** Stores jobs. Returns the ids of those that were already stored. */
  async store(jobs: readonly Job[]): Promise<ReadonlySet<string>> {
    if (jobs.length === 0) return new Set()
    try {
      const known = await this.#queue.push(jobs)
      this.#warnUnlessStarted()
      return new Set(known)
    } catch (cause) {
      const text = 'The inbox could not store the message. Send the message again.'
      throw new HooklineError('inbox_unavailable', text, { cause })
    }
  }

  /** Handles messages until one of the conditions in the options ends the work, then releases the messages in progress. */
  async work({ forMs = Number.POSITIVE_INFINITY, until, signal }: ReceiverWorkOptions): Promise<WorkResult> {
    const { clock } = this.#receiver
    const endsAt = clock.monotonic() + forMs
    this.#stored ??= this.#begin()
    const stored = this.#stored
    const { handled, failed } = stored.ended
    const isEmpty = until && (async () => !stored.isBusy && (await this.counts()).oldestDueAt === undefined)
    const anySignal = AbortSignal.any(signal === undefined ? [this.#closing.signal] : [this.#closing.signal, signal])
    for (;;) {
      const wasEmpty = await this.#workUntil(stored, { endsAt, clock, signal: anySignal, isEmpty })
      const { waiting, oldestDueAt } = await this.counts()
      // A claim may have been in progress when the inbox was found empty. The message of that claim was released and is due again, so the
      // work continues.
      if (wasEmpty && oldestDueAt !== undefined) continue
      const now = stored.ended
      return { handled: now.handled - handled, failed: now.failed - failed, left: waiting }
    }
  }

  async #workUntil(stored: StoredMessages, end: WorkEnd): Promise<boolean> {
    this.#isWorking = true
    if (!this.#isPaused) this.#queue.resume()
    try {
      return await waitForEnd(end)
    } finally {
      const pausing = this.#queue.pause()
      if (this.#closing.signal.aborted) {
        await pausing // Does not stop the handlers, because `close` gives them a grace period.
      } else {
        stored.stop()
        await withTimeout(pausing, RELEASE_MS, end.clock)
      }
      this.#isWorking = false
    }
  }

  start(): void {
    this.#stored = this.#begin()
    this.#isWorking = true
  }

  #begin(): StoredMessages {
    const { concurrency, history, maxPerSecond } = this.#settings
    // When a process died, one of the messages that it was handling may have crashed it. Each of those messages now runs alone, so that
    // only the one at fault loses its claim again.
    const runsAlone = (job: ClaimedJob): boolean => countLostClaims(job) > 0
    const onUnreadable = (letter: DeadLetter): void => this.#reportUnreadable(letter)
    const { batchHandlers } = this.#handlers
    const sum = (bound: 'maxMessages' | 'maxBytes') => batchHandlers.reduce((all, handler) => all + handler[bound], 0)
    const batches = batchHandlers.length === 0 ? undefined : new BatchRoom(concurrency, sum('maxBytes'), () => wake())
    const pace = maxPerSecond === undefined ? undefined : createRoom(maxPerSecond, this.#receiver.clock)
    const stored = new StoredMessages(this.#settings, this.#receiver, this.#handlers, this.suppression, batches)
    const handle: HandleJob = (...claimed) => {
      pace?.take()
      return stored.handle(...claimed)
    }
    const room = smallerRoom(batches, pace)
    const wake = this.#queue.work(handle, {
      ...{ concurrency: concurrency + sum('maxMessages'), onUnreadable, runsAlone },
      ...(history && { history }),
      ...(room && { room }),
      ...(maxPerSecond !== undefined && { maxPerSecond }),
    })
    this.#receiver.clock.clearTimeout(this.#startTimer)
    this.#startTimer = 'none' // With this value, later messages do not set the timer.
    return stored
  }

  /** Whether this process is paused: `pause` was called, and `resume` has not been called since. */
  get isPaused(): boolean {
    return this.#isPaused
  }

  async pause(): Promise<void> {
    this.#isPaused = true
    await this.#queue.pause()
  }

  resume(): void {
    this.#isPaused = false
    if (this.#isWorking) this.#queue.resume()
  }

  counts(): Promise<QueueCounts> {
    return this.#queue.counts()
  }

  async *history(filter: HistoryFilter): AsyncGenerator<HandledMessage> {
    const log = this.#logFor('history')
    const { listHistory } = await loadHistory()
    yield* listHistory(log, filter)
  }

  async replay(options: ReplayOptions): Promise<Replay> {
    const log = this.#logFor('replay')
    const { replay } = await loadHistory()
    const requireNames = (names: readonly string[]): void => this.#handlers.requireNames('replay: handlers', names)
    const isFor = ({ body }: StoredJob, names: readonly string[]): boolean => {
      try {
        return this.#handlers.match(parseReceived(readEnvelope(body).bytes, this.#receiver.takesCustom), names)
      } catch {
        return false // The message is unreadable or invalid.
      }
    }
    return replay({ queue: this.#queue, log, clock: this.#receiver.clock, requireNames, isFor }, options)
  }

  /** Deletes the messages of users, and tells observers to forget these users, too. */
  async forget(ids: string | readonly string[], { source, suppressForMs }: ForgetOptions): Promise<Forgotten> {
    const isOfUser = matchUser(ids)
    if (suppressForMs !== undefined) await this.suppression.suppress(ids, source, suppressForMs)
    this.#receiver.tap.observers.publish('forgotten', { ids, source })
    const isOfSource = (body: Uint8Array): boolean => source === undefined || sourceOf(body) === source
    return this.#queue.forget(({ body }) => isOfUser(bodyOf(body)) && isOfSource(body))
  }

  async close(graceMs: number): Promise<readonly StoredMessage[]> {
    for (const handler of this.#handlers.batchHandlers) handler.close()
    this.#closing.abort()
    return (await this.#queue.close({ graceMs })).map(readStored)
  }

  #reportUnreadable(letter: DeadLetter): void {
    const { id, reason, body, failedAt } = letter
    const text = `The queue cannot read a job of the inbox: ${reason.replace(/\.$/, '')}. Inspect the dead letter with receiver.deadLetters(), then call receiver.redrive or receiver.drop with ['${id}'].`
    const line = { code: 'dead_letter', text: `dead letter ${id}: ${text}`, fields: { id, reason: 'unreadable' } }
    const error = new HooklineError('internal', text)
    const tried = { delivery: unreadableDelivery({ id, body, at: failedAt }), message: undefined, isStored: true }
    this.#receiver.tap.reportFailed(tried, { error, next: 'dead_letter', attempt: 0 }, line)
    this.#receiver.tap.reportDeadLetter(() => readDeadLetter(letter))
  }

  /** Checks after START_MS whether messages are still due. If so, warns that no process handles them. */
  #warnUnlessStarted(): void {
    const check = () =>
      void this.#queue.counts().then(
        (counts) => this.#warnUnlessHandled(counts),
        () => {},
      )
    this.#startTimer ??= unref(this.#receiver.clock.setTimeout(check, START_MS))
  }

  #warnUnlessHandled({ oldestDueAt }: QueueCounts): void {
    const { clock, log } = this.#receiver
    if (oldestDueAt === undefined || clock.now() - oldestDueAt.getTime() < START_MS / 2) return
    // The log is silent if the receiver has an `onError`. That function does not get this warning, because no request failed.
    if (log.isSilent) process.emitWarning(NOT_STARTED, { code: 'HOOKLINE_INBOX_NOT_STARTED' })
    else log.write({ level: 'warn', code: 'inbox_not_started', text: `inbox_not_started: ${NOT_STARTED}` })
  }

  #idOf(delivery: Delivery, message: ReceivedMessage | undefined): string | undefined {
    const { key } = this.#settings
    if (key === undefined || message === undefined) return undefined
    const chosen: unknown = key(message, delivery)
    requireKey('inbox.key', chosen)
    return idOfKey(keyWithin(delivery.source, chosen))
  }

  #groupOf(delivery: Delivery, message: ReceivedMessage | undefined): string | undefined {
    const { groupBy } = this.#settings
    if (groupBy === undefined || message === undefined) return undefined
    const group = readGroup('inbox.', groupBy(message, delivery))
    return group && keyWithin(delivery.source, group)
  }

  #logFor(call: string): QueueLog {
    if (this.#settings.history !== undefined && this.#queue.log !== undefined) return this.#queue.log
    throw new TypeError(
      `\`${call}\` needs the option \`history\` of the inbox. Pass \`inbox: { queue, history: { maxAgeMs } }\`.`,
    )
  }
}

/** Loads the code of the history on first use, because most receivers never need it. */
const loadHistory = () => import('./history.ts')

const NOT_STARTED =
  'The inbox stores messages, but nothing handles them. Call receiver.start(), here or in a worker process, or receiver.work() on a schedule.'
