/** createDestination(): a customer's destination, with its switch, its queue and four hours of retries. */

import { createHash, randomUUID } from 'node:crypto'
import { channel } from 'node:diagnostics_channel'
import { HooklineError } from '../protocol/error.ts'
import { isMeantFor } from '../protocol/integrations.ts'
import { INTEGRATION_NAME, RESPONSE_TIME_MS, RETRY_WINDOW_MS } from '../protocol/limits.ts'
import { parse } from '../protocol/parse.ts'
import type { ClaimedJob, Job, Outcome } from '../queues/queue.ts'
import type { DeliveryReport, Destination, FailureReason, Queued } from './api.ts'
import { createAudienceSync } from './audience-sync.ts'
import { type DestinationOptions, readDestinationOptions } from './destination-options.ts'
import { type Composed, composeCall, composeMessage, toMethods } from './methods.ts'
import { createPostOffice } from './post-office.ts'
import { chooseTargets, nextStep, type Progress, readProgress, writeProgress } from './progress.ts'

/** How often a message that is held while the destination is off asks whether it is on again, in milliseconds. */
const HOLD_MS = 10_000

const attempts = channel('hookline:attempt')

/**
 * Creates a destination ("Outbound event delivery"): what it takes is delivered to at least one of its URLs, or reported
 * as failed. The promise of a method resolves when the message is in the queue; what becomes of it is told to
 * `onAttempt`, and on the diagnostics channel `hookline:attempt`.
 *
 * @throws TypeError that names the option, or for a queue that serves somebody else already.
 * @example
 * const destination = createDestination({ webhooks: [{ url: 'https://shop.example/webhooks' }], sharedSecret: 'secret' })
 * await destination.track({ userId: 'user-1', event: 'Order Completed' })
 * const left = await destination.close()
 */
export function createDestination(options: DestinationOptions): Destination {
  const settings = readDestinationOptions(options)
  const { targets, clock, queue, concurrency, random, onAttempt } = settings
  const office = createPostOffice(settings)
  let { enabled } = settings
  let isClosed = false
  let watched: AbortSignal | undefined

  async function submit(
    composed: readonly Composed[],
    keys: readonly (string | undefined)[],
  ): Promise<readonly Queued[]> {
    if (isClosed) throw new HooklineError('shutting_down', 'The destination is closed.')
    if (!enabled) return composed.map(() => ({ queued: false, reason: 'switched_off' }))
    const jobs: Job[] = []
    const answers = composed.map(({ message, bytes }, index): Queued => {
      if (!isMeantFor(INTEGRATION_NAME, message.integrations)) return { queued: false, reason: 'not_selected' }
      const id = createId(keys[index])
      jobs.push({ id, body: bytes })
      return { queued: true, id }
    })
    if (jobs.length > 0) await queue.push(jobs)
    return answers
  }

  async function submitOne(composed: Composed): Promise<Queued> {
    const [answer] = await submit([composed], [])
    return answer as Queued
  }

  /** One round for one message. */
  async function deliver(job: ClaimedJob, signal: AbortSignal): Promise<Outcome> {
    const before = readProgress(job.state)
    const now = clock.now()
    const end = job.firstAt + RETRY_WINDOW_MS
    if (now >= end) return fail(job, before, [], enabled ? 'window_over' : 'switched_off')
    if (!enabled) return { retryAt: Math.min(now + HOLD_MS, end), ...(job.state && { state: job.state }) }

    abortWith(signal)
    const chosen = chooseTargets(targets, before, now)
    const latest = await office.postAll(job.body, chosen)
    if (latest.some(({ ok }) => ok)) {
      report(job, { status: 'delivered', latest, attempts: [...before.attempts, ...latest] })
      return { done: true }
    }
    if (signal.aborted) return { retryAt: now, ...(job.state && { state: job.state }) }
    const step = nextStep(targets, before, chosen, latest, { firstAt: job.firstAt, now: clock.now(), random: random() })
    if ('over' in step) {
      const reason = step.over === 'window_over' && !enabled ? 'switched_off' : step.over
      return fail(job, step.progress, latest, reason)
    }
    const { retryAt, progress } = step
    report(job, { status: 'retrying', latest, attempts: progress.attempts, retryAt })
    return { retryAt, state: writeProgress(progress) }
  }

  /** The queue gives every job one and the same signal. */
  function abortWith(signal: AbortSignal): void {
    if (signal === watched) return
    watched = signal
    signal.addEventListener('abort', () => office.abort(), { once: true })
  }

  function fail(job: ClaimedJob, progress: Progress, latest: DeliveryReport['latest'], reason: FailureReason): Outcome {
    report(job, { status: 'failed', latest, attempts: progress.attempts, reason })
    return { dead: reason, state: writeProgress(progress) }
  }

  function report({ id, body }: ClaimedJob, what: Omit<DeliveryReport, 'id' | 'message'>): void {
    const given: DeliveryReport = {
      id,
      ...what,
      get message() {
        return parse(body) // Most reports are not asked for it.
      },
    }
    attempts.publish(given)
    void tell(given)
  }

  async function tell(given: DeliveryReport): Promise<void> {
    try {
      await onAttempt(given)
    } catch (failure) {
      process.emitWarning('onAttempt failed', {
        code: 'HOOKLINE_ON_ATTEMPT',
        detail: failure instanceof Error ? failure.message : 'It threw what is no Error.',
      })
    }
  }

  queue.work(deliver, { concurrency })

  return {
    ...toMethods(async (type, call) => submitOne(composeCall(type, call, clock.now()))),
    ...createAudienceSync({ clock, submit: (composed) => submit(composed, []) }),
    get enabled() {
      return enabled
    },
    send: async (message) => submitOne(composeMessage(message, clock.now())),
    submit: async (submissions) => {
      const now = clock.now()
      const composed = submissions.map(({ message }) => composeMessage(message, now))
      return submit(
        composed,
        submissions.map(({ key }) => key),
      )
    },
    enable() {
      enabled = true
    },
    disable() {
      enabled = false
    },
    dead: async (page) => {
      const jobs = await queue.dead(page)
      return jobs.map(({ id, body, reason, state, diedAt }) => ({
        id,
        message: parse(body),
        reason: reason as FailureReason,
        attempts: readProgress(state).attempts,
        failedAt: diedAt,
      }))
    },
    redrive: (ids) => queue.redrive(ids),
    close: async ({ graceMs = RESPONSE_TIME_MS } = {}) => {
      isClosed = true
      const left = await queue.close({ graceMs })
      await office.close()
      return left.map(({ body }) => parse(body))
    },
  }
}

/** A UUID, the same one for the same key. */
function createId(key: string | undefined): string {
  if (key === undefined) return randomUUID()
  const hex = createHash('sha256').update(key).digest('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join(
    '-',
  )
}
