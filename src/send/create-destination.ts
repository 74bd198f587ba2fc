/** createDestination(): messages in a queue, retried for four hours, with a switch and audiences. */

import { invalidOption, kindOf, refuseUnknown, requireInteger, requireText } from '../kit/checks.ts'
import { shownUrl } from '../kit/shown.ts'
import { HooklineError } from '../protocol/error.ts'
import { idOfKey, newId } from '../protocol/id.ts'
import { matchUser } from '../protocol/identity.ts'
import { isMeantFor } from '../protocol/integrations.ts'
import { INTEGRATION_NAME, RESPONSE_TIME_MS } from '../protocol/limits.ts'
import type { Message } from '../protocol/message.ts'
import { createMethods, MESSAGE_TYPES } from '../protocol/type-table.ts'
import { readGroup } from '../store/groups.ts'
import { checkHealth } from '../store/health.ts'
import { createLetters } from '../store/letters.ts'
import type { Job, PushOptions } from '../store/queue-types.ts'
import { createAudienceSync } from './audience-sync.ts'
import { Circuits } from './circuits.ts'
import { type Composed, composeCall, composeMessage } from './compose-call.ts'
import { createCurrentSettings } from './current-settings.ts'
import { createJobHandler } from './deliver.ts'
import type { SkipReason } from './destination-events.ts'
import type { DestinationOptions, DestinationSettings } from './destination-options.ts'
import { createDestinationEvents, JobReport, UNREADABLE } from './destination-reports.ts'
import type {
  Destination,
  DestinationChanges,
  DestinationDeadLetter,
  DestinationLetterFilter,
  Queued,
  Submission,
} from './destination-types.ts'
import { createFunctions } from './message-functions.ts'
import { readRetryState } from './retry-state.ts'
import { messageBytes, REASONS, readDeadLetter, readMessage, readReason, writeStored } from './stored-submission.ts'

/**
 * Creates a destination ("Outbound event delivery"): it delivers each queued message to at least one of its URLs, or reports it
 * as failed. The promise of a method resolves when the message is in the queue; `onAttempt` and the diagnostics channel
 * `hookline:attempt` receive a report after every round.
 *
 * @throws TypeError that names the option, and for a queue that serves another destination or an inbox.
 * @example
 * const destination = createDestination({ webhooks: [{ url: 'https://shop.example/webhooks' }], sharedSecret: 'secret' })
 * await destination.track({ userId: 'user-1', event: 'Order Completed' })
 * const undelivered = await destination.close()
 */
export function createDestination(options: DestinationOptions): Destination {
  const live = createCurrentSettings(options)
  const { clock, queue, concurrency, groupBy, onDeadLetter, log } = live.settings
  const events = createDestinationEvents(
    live.settings,
    (letter) => onDeadLetter?.(readDeadLetter(letter, live.settings.targets)),
    () => live.settings.targets.length > 1,
  )
  const circuits = new Circuits(live.settings, (event) => events.publish('circuit', event))
  const functions = createFunctions(live.settings.functions, clock)
  const skipped: Record<SkipReason, number> = { switched_off: 0, not_selected: 0, historical: 0, filtered: 0 }
  let isClosed = false

  function refuseWhenClosed(): void {
    if (!isClosed) return
    const message = 'The destination is closed. Got a call after close(). Create a new destination.'
    throw new HooklineError('shutting_down', message)
  }

  async function push(composed: readonly Composed[], options?: PushOptions): Promise<readonly Queued[]> {
    refuseWhenClosed()
    const jobs: Job[] = []
    const results = composed.map(({ message, bytes, at, source, id = newId() }): Queued => {
      const reason = findSkipReason(message, live.settings, at)
      if (reason !== undefined) return { queued: false, reason }
      jobs.push({ id, body: writeStored(bytes, source), group: readGroup('', groupBy?.(message)) })
      return { queued: true, id }
    })
    if (jobs.length > 0) await queue.push(jobs, options)
    for (const [index, result] of results.entries()) {
      const { message, bytes, at } = composed[index] as Composed
      if (result.queued) events.publish('queued', { id: result.id, message, bytes, at })
      else skip({ message, at }, result.reason)
    }
    return results
  }

  /** @param id That of a message that was queued. */
  function skip({ message, at }: Pick<Composed, 'message' | 'at'>, reason: SkipReason, id?: string): void {
    skipped[reason] += 1
    events.publish('skipped', { message, reason, at, ...(id !== undefined && { id }) })
  }

  async function pushOne(compose: () => Composed, options?: PushOptions): Promise<Queued> {
    const [result] = await push([compose()], options)
    return result as Queued
  }

  const submit: Destination['submit'] = async (submissions, options) => {
    if (!Array.isArray(submissions)) {
      throw invalidOption('submissions', 'must be a list', kindOf(submissions), 'Pass [{ message }].')
    }
    const composed = (submissions as readonly Submission[]).map(({ message, key, source }) => {
      if (key !== undefined) requireText('key', key)
      if (source !== undefined) requireText('source', source, 'shop')
      return { ...composeMessage(message, clock), id: key && idOfKey(key), source }
    })
    return push(composed, options)
  }
  async function isEmpty(): Promise<boolean> {
    const { waiting, active } = await queue.counts()
    return waiting + active === 0
  }

  function update(changes: DestinationChanges): void {
    live.update(changes)
    circuits.update(live.settings)
    wake()
  }

  queue.reserve?.('destination')
  const handle = createJobHandler(live, circuits, events, functions, skip)
  const wake = queue.work(handle, {
    concurrency,
    room: circuits.room,
    onUnreadable(letter) {
      events.publish('attempted', new JobReport(letter, UNREADABLE))
      events.publish('deadLetter', letter)
    },
  })

  return {
    ...createMethods(MESSAGE_TYPES, (type, call, options?: PushOptions) =>
      pushOne(() => composeCall(type, call, clock), options),
    ),
    ...createAudienceSync({ clock, push, isEmpty }),
    get enabled() {
      return live.settings.enabled
    },
    send: (message, options) => pushOne(() => composeMessage(message, clock), options),
    submit,
    enable: () => update({ enabled: true }),
    disable: () => update({ enabled: false }),
    update(changes) {
      refuseWhenClosed()
      update(changes)
    },
    observe: (observer) => events.add(observer),
    health: async () => {
      const { urls } = circuits
      const hasOpenCircuit = urls.some(({ circuit }) => circuit !== 'closed')
      const health = await checkHealth(() => queue.counts(), isClosed, clock, hasOpenCircuit)
      const { failures: transformFailed } = functions
      return { ...health, urls, skipped: { ...skipped }, transformFailed }
    },
    ...createLetters<DestinationDeadLetter, DestinationLetterFilter>(queue, {
      read: (letter) => readDeadLetter(letter, live.settings.targets),
      reasonOf: ({ reason }) => readReason(reason),
      bodyOf: messageBytes,
      reasons: REASONS,
      filter: 'url',
      isOf: ({ retryState }, url) =>
        readRetryState(retryState, live.settings.targets).attempts.some((attempt) => attempt.url === shownUrl(url)),
    }),
    async forget(ids) {
      const isAbout = matchUser(ids)
      events.publish('forgotten', { ids })
      return queue.forget(({ body }) => isAbout(messageBytes(body)))
    },
    close: async (options = {}) => {
      refuseUnknown(options, ['graceMs'])
      const graceMs = requireInteger('graceMs', options.graceMs ?? RESPONSE_TIME_MS, 0)
      isClosed = true
      try {
        return (await queue.close({ graceMs })).map(({ body }) => readMessage(body))
      } finally {
        await live.close()
        log.flush()
      }
    },
  }
}

/** @param now When the message was composed, so that one without a timestamp is new. */
function findSkipReason(
  { type, timestamp, integrations }: Message,
  { enabled, whenDisabled, historicalAfterMs }: DestinationSettings,
  now: number,
): Exclude<SkipReason, 'filtered'> | undefined {
  if (!enabled && whenDisabled === 'drop') return 'switched_off'
  if (!isMeantFor(INTEGRATION_NAME, integrations)) return 'not_selected'
  if (historicalAfterMs === undefined || type === 'delete') return undefined // The request to delete is new, whatever its timestamp.
  return now - Date.parse(String(timestamp)) > historicalAfterMs ? 'historical' : undefined
}
