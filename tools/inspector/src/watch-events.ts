/** Watches a receiver: which events arrive, and which of their messages do not match their schema. */

import type { AnsweredEvent, Delivery, FailedEvent, HooklineError, ReceivedMessage, Receiver } from 'hookline'
import { isMessage, tryParse } from '../../json.ts'
import type { EventCounts, Kind } from './event-counts.ts'

/** Counts messages that are authentic, or handled all the same: strangers fill no list. Returns what stops that. */
export function watchEvents(receiver: Pick<Receiver, 'observe'>, counts: EventCounts): () => void {
  function answered({ delivery, message, error, elements }: AnsweredEvent): void {
    for (const element of elements) {
      if (element.ok) arrived(element.delivery, element.message)
      else if (isRead(element.error)) arrived(element.delivery, undefined, element.error)
    }
    // A message is read after its signature is checked.
    if (elements.length === 0 && message !== undefined) arrived(delivery, message, error)
  }

  function arrived(delivery: Delivery, message: ReceivedMessage | undefined, error?: HooklineError): void {
    const kind = kindOf(message ?? tryParse(delivery.bytes))
    counts.arrived(kind)
    if (error?.code === 'schema_mismatch') counts.mismatched(kind, error)
  }

  /** Without an inbox, the answer has the error already. */
  function failed({ delivery, message, error }: FailedEvent): void {
    if (error.code === 'schema_mismatch') counts.mismatched(kindOf(message ?? tryParse(delivery.bytes)), error)
  }

  return receiver.observe({ answered, failed, forgotten: counts.forget })
}

/** Whether the message could be read, and what came after that failed. */
function isRead({ status, code }: HooklineError): boolean {
  return status >= 500 || code === 'schema_mismatch'
}

/** What is no message of the seven types is a custom one. */
export function kindOf(fields: unknown): Kind {
  if (!isMessage(fields)) return { type: 'custom' }
  const { type, event } = fields
  return type === 'track' ? { type, event: typeof event === 'string' ? event : undefined } : { type }
}
