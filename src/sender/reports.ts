/** Tells what happened to a message: to `onAttempt`, and on the diagnostics channel `hookline:attempt`. */

import { channel } from 'node:diagnostics_channel'
import type { Message } from '../protocol/message.ts'
import { tell } from '../protocol/report.ts'
import type { ClaimedJob } from '../queues/queue.ts'
import type { DeliveryReport } from './api.ts'

/** Tells what happened to the message of a job. Never throws, and is not waited for. */
export type Report = (job: ClaimedJob, what: Omit<DeliveryReport, 'id' | 'message'>) => void

const attempts = channel('hookline:attempt')

/** Makes it. */
export function createReport(onAttempt: (report: DeliveryReport) => unknown): Report {
  return ({ id, body }, what) => {
    const report: DeliveryReport = {
      id,
      ...what,
      get message() {
        return readMessage(body) // Most reports are not asked for it.
      },
    }
    attempts.publish(report)
    tell(() => onAttempt(report), 'onAttempt', 'HOOKLINE_ON_ATTEMPT')
  }
}

/** The message of bytes that were checked when they were queued. */
export function readMessage(body: Uint8Array): Message {
  const message = JSON.parse(Buffer.from(body).toString())
  return message.type === 'alias' ? { ...message, previousId: message['Previous ID'] } : message
}
