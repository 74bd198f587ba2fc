/** createDestination(): a customer's destination, with its switch, its queue and four hours of retries. */

import { randomUUID } from 'node:crypto'
import { HooklineError } from '../protocol/error.ts'
import { isMeantFor } from '../protocol/integrations.ts'
import { INTEGRATION_NAME, RESPONSE_TIME_MS } from '../protocol/limits.ts'
import type { Message } from '../protocol/message.ts'
import { refuseUnknown, requireText, requireWhole } from '../protocol/options.ts'
import { jobIdFromKey } from '../queues/job-id.ts'
import type { Job } from '../queues/queue.ts'
import type { Destination, FailureReason, Queued } from './api.ts'
import { createAudienceSync } from './audience-sync.ts'
import { createDelivery } from './delivery.ts'
import { type DestinationOptions, readDestinationOptions } from './destination-options.ts'
import { type Composed, composeCall, composeMessage, toMethods } from './methods.ts'
import { createPostOffice } from './post-office.ts'
import { readProgress } from './progress.ts'
import { createReport, readMessage } from './reports.ts'

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
  const { targets, clock, queue, concurrency, onAttempt } = settings
  const office = createPostOffice(settings)
  let { enabled } = settings
  let isClosed = false

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

  /** Whether nothing is on its way. */
  async function isEmpty(): Promise<boolean> {
    const { waiting, active } = await queue.counts()
    return waiting + active === 0
  }

  async function submitOne(composed: Composed): Promise<Queued> {
    const [answer] = await submit([composed], [])
    return answer as Queued
  }

  queue.work(
    createDelivery(settings, office, () => enabled, createReport(onAttempt)),
    { concurrency },
  )

  return {
    ...toMethods(async (type, call) => submitOne(composeCall(type, call, clock.now()))),
    ...createAudienceSync({ clock, submit: (composed) => submit(composed, []), isEmpty }),
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
        message: tryReadMessage(body),
        reason: FAILURE_REASONS.find((known) => known === reason) ?? 'unreadable',
        attempts: readProgress(state, targets).attempts,
        failedAt: diedAt,
      }))
    },
    redrive: (ids) => queue.redrive(ids),
    drop: (ids) => queue.drop(ids),
    close: async (options = {}) => {
      refuseUnknown(options, ['graceMs'])
      const graceMs = requireWhole('graceMs', options.graceMs ?? RESPONSE_TIME_MS, 0)
      isClosed = true
      const left = await queue.close({ graceMs })
      await office.close()
      return left.map(({ body }) => readMessage(body))
    },
  }
}

/** Those that a delivery gives; any other is the queue's, for a job that it cannot read. */
const FAILURE_REASONS: readonly FailureReason[] = ['refused', 'window_over', 'switched_off']

function tryReadMessage(body: Uint8Array): Message | undefined {
  try {
    return readMessage(body)
  } catch {
    return undefined
  }
}

function createId(key: string | undefined): string {
  if (key === undefined) return randomUUID()
  requireText('key', key)
  return jobIdFromKey(key)
}
