/** Watches a receiver: which events arrive, and which messages do not match their schema. */

import type { AnsweredEvent, Delivery, FailedEvent, HooklineError, ReceivedMessage, Receiver } from 'hookline'
import { isMessage, tryParse } from '../../json.ts'
import type { EventCounts, Kind } from './event-counts.ts'

/**
 * Counts the events of messages that are verified, or handled without verification. Other messages are not counted, so that strangers
 * cannot fill the list of events. Returns a function that stops the counting.
 */
export function watchEvents(receiver: Pick<Receiver, 'observe'>, counts: EventCounts): () => void {
  function answered({ delivery, message, error, elements }: AnsweredEvent): void {
    for (const element of elements) {
      if (element.ok) arrived(element.delivery, element.message)
      else if (isRead(element.error)) arrived(element.delivery, undefined, element.error)
    }
    // A message is parsed only after its signature is checked. If there is no message, a stranger may have sent the request.
    if (elements.length === 0 && message !== undefined) arrived(delivery, message, error)
  }

  function arrived(delivery: Delivery, message: ReceivedMessage | undefined, error?: HooklineError): void {
    const kind = kindOf(message ?? tryParse(delivery.bytes))
    counts.arrived(kind)
    if (error?.code === 'schema_mismatch') counts.mismatched(kind, error)
  }

  /** Counts a mismatch of a message in an inbox. Without an inbox, `answered` gets the error. */
  function failed({ delivery, message, error }: FailedEvent): void {
    if (error.code === 'schema_mismatch') counts.mismatched(kindOf(message ?? tryParse(delivery.bytes)), error)
  }

  return receiver.observe({ answered, failed, forgotten: counts.forget })
}

/** Returns whether the message was parsed before it failed. */
function isRead({ status, code }: HooklineError): boolean {
  return status >= 500 || code === 'schema_mismatch'
}

/** Returns the kind of a message. Any message that is not one of the seven types is custom. */
export function kindOf(fields: unknown): Kind {
  if (!isMessage(fields)) return { type: 'custom' }
  const { type, event } = fields
  return type === 'track' ? { type, event: typeof event === 'string' ? event : undefined } : { type }
}
