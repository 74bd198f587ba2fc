/** Tells what happened to a message: to `onAttempt`, and on the diagnostics channel `hookline:attempt`. */

import { channel } from 'node:diagnostics_channel'
import type { Message } from '../protocol/message.ts'
import { tell } from '../protocol/report.ts'
import type { ClaimedJob } from '../queues/queue.ts'
import type { DeliveryReport, FailureReason } from './api.ts'

/** Tells what happened to the message of a job. Never throws, and is not waited for. */
export type Report = (job: ClaimedJob, what: Omit<DeliveryReport, 'id' | 'message'>) => void

const attempts = channel('hookline:attempt')

/** Makes it. */
export function createReport(onAttempt: (report: DeliveryReport) => unknown): Report {
  return ({ id, body }, what) => {
    const report = new Told(id, body, what)
    attempts.publish(report)
    tell(() => onAttempt(report), 'onAttempt', 'HOOKLINE_ON_ATTEMPT')
  }
}

/**
 * A report. Its message is read when somebody asks for it, which most do not. Hot path: as a literal with a getter it cost a
 * destination some 8 % of its processor time in a laboratory loop.
 */
class Told implements DeliveryReport {
  readonly #body: Uint8Array
  readonly status: DeliveryReport['status']
  readonly id: string
  readonly latest: DeliveryReport['latest']
  readonly attempts: DeliveryReport['attempts']
  declare readonly retryAt?: number
  declare readonly reason?: FailureReason

  constructor(id: string, body: Uint8Array, what: Omit<DeliveryReport, 'id' | 'message'>) {
    this.#body = body
    this.status = what.status
    this.id = id
    this.latest = what.latest
    this.attempts = what.attempts
    if (what.retryAt !== undefined) this.retryAt = what.retryAt
    if (what.reason !== undefined) this.reason = what.reason
  }

  get message(): Message {
    return readMessage(this.#body)
  }
}

/** The message of bytes that were checked when they were queued. */
export function readMessage(body: Uint8Array): Message {
  const message = JSON.parse(Buffer.from(body).toString())
  return message.type === 'alias' ? { ...message, previousId: message['Previous ID'] } : message
}
