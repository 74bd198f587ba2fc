/** The body of a destination's job: the bytes of a message. If the message has a source, a line with its quoted name comes first. */

import type { Message } from '../protocol/message.ts'
import type { DeadLetter } from '../store/queue-types.ts'
import type { FailureReason } from './destination-events.ts'
import type { DestinationDeadLetter } from './destination-types.ts'
import { readRetryState } from './retry-state.ts'
import type { Target } from './webhooks.ts'

const LINE_FEED = 0x0a
const [BRACE, QUOTE] = [0x7b, 0x22]

export function writeStored(bytes: Uint8Array, source: string | undefined): Uint8Array {
  return source === undefined ? bytes : Buffer.concat([Buffer.from(`${JSON.stringify(source)}\n`), bytes])
}

/**
 * Returns whether {@link writeStored} wrote these bytes. Returns false for the envelope of an inbox, which must never be posted, because it
 * contains headers.
 */
export function isStored(stored: Uint8Array): boolean {
  const start = stored[0] === QUOTE ? stored.indexOf(LINE_FEED) + 1 : 0
  return stored[start] === BRACE && !stored.includes(LINE_FEED, start)
}

export function readSource(stored: Uint8Array): string | undefined {
  return stored[0] === QUOTE ? JSON.parse(decoder.decode(stored.subarray(0, stored.indexOf(LINE_FEED)))) : undefined
}

export function messageBytes(stored: Uint8Array): Uint8Array {
  return stored[0] === QUOTE ? stored.subarray(stored.indexOf(LINE_FEED) + 1) : stored
}

/**
 * Parses the message, which was checked before it was queued. It is stored in the form in which it is sent, so an alias has its previous id
 * only as 'Previous ID'.
 */
export function readMessage(stored: Uint8Array): Message {
  const message = JSON.parse(decoder.decode(messageBytes(stored)))
  if (message.type === 'alias') message.previousId = message['Previous ID']
  return message
}

const decoder = new TextDecoder()

export function readDeadLetter(
  { id, body, reason, retryState, failedAt }: DeadLetter,
  targets: readonly Target[],
): DestinationDeadLetter {
  const { attempts, thrown } = readRetryState(retryState, targets)
  const letter = { id, message: tryReadMessage(body), reason: readReason(reason), attempts, failedAt }
  if (thrown === undefined) return isFailureReason(reason) ? letter : { ...letter, error: reason }
  const { message: error, stack } = thrown
  return stack === undefined ? { ...letter, error } : { ...letter, error, stack }
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

/**
 * Reads the reason of a dead letter. Any reason that destinations do not use comes from the queue itself, for a job that it could not read.
 */
export function readReason(stored: string): FailureReason {
  return isFailureReason(stored) ? stored : 'unreadable'
}
