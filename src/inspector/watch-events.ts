/** Watches a receiver: which events arrive, and which of their messages do not match their schema. */

import type { Delivery } from '../handling/delivery.ts'
import type { AnsweredEvent, ObservedFailed } from '../handling/observer.ts'
import { textMember } from '../message/elements.ts'
import type { HooklineError } from '../message/error.ts'
import type { ReceivedMessage } from '../message/message.ts'
import { MESSAGE_TYPES } from '../message/type-table.ts'
import type { Receiver } from '../receiver/api.ts'
import type { EventCounts, Kind } from './event-counts.ts'

/** Counts messages that are authentic, or handled all the same: strangers fill no list. Returns what stops that. */
export function watchEvents(receiver: Pick<Receiver, 'observe'>, counts: EventCounts): () => void {
  function answered({ delivery, message, error, elements }: AnsweredEvent): void {
    // What was dropped of a batch is none of its elements.
    for (const element of elements) {
      if (element.ok) arrived(element.delivery, element.message)
      else if (isRead(element.error)) arrived(element.delivery, undefined, element.error)
    }
    // A message is read after its signature is checked.
    if (elements.length === 0 && message !== undefined) arrived(delivery, message, error)
  }

  function arrived(delivery: Delivery, message: ReceivedMessage | undefined, error?: HooklineError): void {
    const kind = kindOf(delivery, message)
    counts.arrived(kind)
    if (error?.code === 'schema_mismatch') counts.mismatched(kind, error)
  }

  /** Without an inbox, the answer has the error already. */
  function failed({ delivery, message, error }: ObservedFailed): void {
    if (error.code === 'schema_mismatch') counts.mismatched(kindOf(delivery, message), error)
  }

  return receiver.observe({ answered, failed, forgotten: counts.forget })
}

/** Whether the message could be read, and what came after that failed. */
function isRead({ status, code }: HooklineError): boolean {
  return status >= 500 || code === 'schema_mismatch'
}

/** What is no message of the seven types is a custom one. */
function kindOf({ bytes }: Delivery, message: ReceivedMessage | undefined): Kind {
  const named = message?.type ?? textMember(bytes, 'type')
  const type = MESSAGE_TYPES.find((each) => each === named) ?? 'custom'
  if (type !== 'track') return { type }
  return { type, event: message?.type === 'track' ? message.event : textMember(bytes, 'event') }
}
