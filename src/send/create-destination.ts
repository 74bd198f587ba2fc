/** createDestination(): queues messages, posts them with retries for up to four hours, and syncs audiences. */

import { invalidOption, kindOf, refuseUnknown, requireInteger } from '../kit/checks.ts'
import type { Clock } from '../kit/clock.ts'
import { shownUrl } from '../kit/shown.ts'
import { HooklineError } from '../protocol/error.ts'
import { newId } from '../protocol/id.ts'
import { matchUser } from '../protocol/identity.ts'
import { isMeantFor } from '../protocol/integrations.ts'
import { INTEGRATION_NAME, RESPONSE_TIME_MS } from '../protocol/limits.ts'
import type { Message } from '../protocol/message.ts'
import { createMethods, MESSAGE_TYPES } from '../protocol/type-table.ts'
import { readGroup } from '../store/groups.ts'
import { checkHealth } from '../store/health.ts'
import { createLetters, type LettersOwner } from '../store/letters.ts'
import type { Job, PushOptions } from '../store/queue-types.ts'
import { createAudienceSync, type SyncTarget } from './audience-sync.ts'
import { Circuits } from './circuits.ts'
import { type Composed, composeCall, composeMessage, composeSubmission } from './compose-call.ts'
import { type CurrentSettings, createCurrentSettings } from './current-settings.ts'
import { JobHandler } from './deliver.ts'
import type { SkipReason } from './destination-events.ts'
import { createDestinationObservers, type DestinationObservers } from './destination-observers.ts'
import type { DestinationOptions, DestinationSettings } from './destination-options.ts'
import type {
  Destination,
  DestinationChanges,
  DestinationCloseOptions,
  DestinationDeadLetter,
  Queued,
  Submission,
} from './destination-types.ts'
import { createFunctions } from './message-functions.ts'
import { readRetryState } from './retry-state.ts'
import { pushes } from './shared-submit.ts'
import { messageBytes, REASONS, readDeadLetter, readMessage, readReason } from './stored-submission.ts'

/**
 * Creates a destination ("Outbound event delivery"): it delivers each queued message to at least one of its URLs, or reports it
 * as failed. The promise of a method resolves when the message is in the queue; `onAttempt` and the diagnostics channel
 * `hookline:attempt` receive a report after every round.
 *
 * @throws TypeError for an invalid option, which the error names, and for a queue that already serves another destination or an inbox.
 * @example
 * const destination = createDestination({ webhooks: [{ url: 'https://shop.example/webhooks' }], sharedSecret: 'secret' })
 * await destination.track({ userId: 'user-1', event: 'Order Completed' })
 * const undelivered = await destination.close()
 */
export function createDestination(options: DestinationOptions): Destination {
  const current = createCurrentSettings(options)
  const { clock, queue, concurrency, onDeadLetter } = current.settings
  const observers = createDestinationObservers(
    current.settings,
    (letter) => onDeadLetter?.(readDeadLetter(letter, current.settings.targets)),
    () => current.settings.targets.length > 1,
  )
  const circuits = new Circuits(current.settings, (event) => observers.publish('circuit', event))
  const functions = createFunctions(current.settings.functions, clock)
  const outbox = new Outbox(current, observers)

  function update(changes: DestinationChanges): void {
    current.update(changes)
    circuits.update(current.settings)
    lookForJobs()
  }

  queue.reserve?.('destination')
  const handler = new JobHandler(current, circuits, observers, functions, outbox)
  const lookForJobs = queue.work((job, signal, save) => handler.handle(job, signal, save), {
    concurrency,
    room: circuits.room,
    onUnreadable: (letter) => handler.endUnreadable(letter),
  })

  const destination: Destination = {
    ...createMethods(MESSAGE_TYPES, (type, call, options?: PushOptions) =>
      outbox.pushOne(() => composeCall(type, call, clock), options),
    ),
    ...createAudienceSync(outbox),
    get enabled() {
      return current.settings.enabled
    },
    send: (message, options) => outbox.pushOne(() => composeMessage(message, clock), options),
    submit: (submissions, options) => outbox.submit(submissions, options),
    enable: () => update({ enabled: true }),
    disable: () => update({ enabled: false }),
    update(changes) {
      outbox.refuseWhenClosed()
      update(changes)
    },
    observe: (observer) => observers.add(observer),
    async health() {
      const { urls } = circuits
      const hasOpenCircuit = urls.some(({ circuit }) => circuit !== 'closed')
      const health = await checkHealth(() => queue.counts(), outbox.isClosed, clock, hasOpenCircuit)
      return { ...health, urls, skipped: { ...outbox.skipped }, transformFailed: functions.failures }
    },
    ...createLetters(queue, describeLetters(current)),
    async forget(ids) {
      const isAbout = matchUser(ids)
      observers.publish('forgotten', { ids })
      return queue.forget(({ body }) => isAbout(messageBytes(body)))
    },
    close: (options) => outbox.close(options),
  }
  pushes.set(destination.submit, (composed) => outbox.pushAt(composed, clock.now()))
  return destination
}

/** Returns the functions that read and filter the dead letters of a destination. */
function describeLetters(current: CurrentSettings): LettersOwner<DestinationDeadLetter> {
  return {
    readLetter: (letter) => readDeadLetter(letter, current.settings.targets),
    reasonOf: ({ reason }) => readReason(reason),
    bodyOf: messageBytes,
    reasons: REASONS,
    filter: 'url',
    isOf({ retryState }, url) {
      const { attempts } = readRetryState(retryState, current.settings.targets)
      return attempts.some((attempt) => attempt.url === shownUrl(url))
    },
  }
}

/** Puts messages into the queue, and counts and reports those that are skipped. */
class Outbox implements SyncTarget {
  readonly clock: Clock
  readonly skipped: Record<SkipReason, number> = { switched_off: 0, not_selected: 0, historical: 0, filtered: 0 }
  isClosed = false
  readonly #current: CurrentSettings
  readonly #observers: DestinationObservers

  constructor(current: CurrentSettings, observers: DestinationObservers) {
    this.clock = current.settings.clock
    this.#current = current
    this.#observers = observers
  }

  refuseWhenClosed(): void {
    if (!this.isClosed) return
    throw new HooklineError('shutting_down', 'The destination is closed. Create a new destination.')
  }

  async close(options: DestinationCloseOptions = {}): Promise<readonly Message[]> {
    refuseUnknown(options, ['graceMs'])
    const graceMs = requireInteger('graceMs', options.graceMs ?? RESPONSE_TIME_MS, 0)
    const { queue, log } = this.#current.settings
    this.isClosed = true
    try {
      return (await queue.close({ graceMs })).map(({ body }) => readMessage(body))
    } finally {
      await this.#current.close()
      log.flush()
    }
  }

  async isEmpty(): Promise<boolean> {
    const { waiting, active } = await this.#current.settings.queue.counts()
    return waiting + active === 0
  }

  async submit(submissions: readonly Submission[], options?: PushOptions): Promise<readonly Queued[]> {
    if (!Array.isArray(submissions)) {
      throw invalidOption(
        'submissions',
        'must be a list',
        kindOf(submissions),
        'Pass a list, for example [{ message }].',
      )
    }
    return this.push(
      submissions.map((submission) => composeSubmission(submission, this.clock)),
      options,
    )
  }

  /** Composes and queues one message. If `compose` throws, the promise rejects. */
  async pushOne(compose: () => Composed, options?: PushOptions): Promise<Queued> {
    const [result] = await this.push([compose()], options)
    return result as Queued // `push` returns one result for each message.
  }

  /** Queues messages that were composed with another clock. `at` is the current time on the clock of this destination. */
  pushAt(composed: readonly Composed[], at: number): Promise<readonly Queued[]> {
    return this.push(composed.map((each) => ({ ...each, at })))
  }

  async push(composed: readonly Composed[], options?: PushOptions): Promise<readonly Queued[]> {
    this.refuseWhenClosed()
    const { settings } = this.#current
    const { queue, groupBy } = settings
    const jobs: Job[] = []
    const results = composed.map(({ message, bytes, stored = bytes, at, id = newId() }): Queued => {
      const reason = findSkipReason(message, settings, at)
      if (reason !== undefined) return { queued: false, reason }
      jobs.push({ id, body: stored, group: readGroup('', groupBy?.(message)) })
      return { queued: true, id }
    })
    if (jobs.length > 0) await queue.push(jobs, options)
    for (const [index, { message, bytes, at }] of composed.entries()) {
      const result = results[index]
      if (result?.queued === true) this.#observers.publish('queued', { id: result.id, message, bytes, at })
      else if (result !== undefined) this.skip({ message, at }, result.reason)
    }
    return results
  }

  /**
   * Counts and reports a message that is not queued or not sent.
   *
   * @param id The id of the message, if it was queued before.
   */
  skip({ message, at }: Pick<Composed, 'message' | 'at'>, reason: SkipReason, id?: string): void {
    this.skipped[reason] += 1
    this.#observers.publish('skipped', id === undefined ? { message, reason, at } : { message, reason, at, id })
  }
}

/** @param composedAt When the message was composed. The age of the message is measured at this time. */
function findSkipReason(
  { type, timestamp, integrations }: Message,
  { enabled, whenDisabled, historicalAfterMs }: DestinationSettings,
  composedAt: number,
): Exclude<SkipReason, 'filtered'> | undefined {
  if (!enabled && whenDisabled === 'drop') return 'switched_off'
  if (!isMeantFor(INTEGRATION_NAME, integrations)) return 'not_selected'
  if (historicalAfterMs === undefined || type === 'delete') return undefined // A deletion request is never historical.
  return composedAt - Date.parse(String(timestamp)) > historicalAfterMs ? 'historical' : undefined
}
