/** A message as the queue of a destination stores it: the bytes that are posted or, when its functions failed, the original. */

import { serialise } from '../message/compose.ts'
import type { Message } from '../message/message.ts'
import type { DeadLetter } from '../queues/api.ts'
import type { Target } from '../sender/webhooks.ts'
import type { DestinationDeadLetter } from './api.ts'
import type { FailureReason } from './observer.ts'
import { readRetryState } from './retry-state.ts'

/** Before an original: it is never posted like this. */
const SPACE = 0x20

export function isOriginal(body: Uint8Array): boolean {
  return body[0] === SPACE
}

export function writeOriginal(message: Message): Uint8Array {
  return Buffer.concat([Buffer.of(SPACE), serialise(message)])
}

/** The body of a job as others see it: the message alone. */
export function shownBody(body: Uint8Array): Uint8Array {
  return isOriginal(body) ? body.subarray(1) : body
}

/** Parses the body of a job, which was checked before it was queued. */
export function readMessage(body: Uint8Array): Message {
  const message = JSON.parse(Buffer.from(body).toString())
  if (message.type === 'alias') message.previousId = message['Previous ID']
  return message
}

export function readDeadLetter(
  { id, body, reason, retryState, failedAt }: DeadLetter,
  targets: readonly Target[],
): DestinationDeadLetter {
  const { attempts, thrown } = readRetryState(retryState, targets)
  const { message: error, stack } = thrown ?? {}
  const texts = { ...(error !== undefined && { error }), ...(stack !== undefined && { stack }) }
  return { id, message: tryReadMessage(body), reason: readReason(reason), attempts, failedAt, ...texts }
}

function tryReadMessage(body: Uint8Array): Message | undefined {
  try {
    return readMessage(body)
  } catch {
    return undefined
  }
}

export const REASONS: readonly FailureReason[] = [
  'refused',
  'window_over',
  'switched_off',
  'circuit_open',
  'transform_failed',
  'unreadable',
]

export function isFailureReason(reason: string): reason is FailureReason {
  return REASONS.some((known) => known === reason)
}

/** The reasons of the job handler. Any other is from the queue, for a job that it cannot read. */
export function readReason(stored: string): FailureReason {
  return isFailureReason(stored) ? stored : 'unreadable'
}
