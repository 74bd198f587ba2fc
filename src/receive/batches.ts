/** Splits batches: bodies that are JSON arrays of messages. The signature covers such a body as a whole. */

import { HooklineError } from '../protocol/error.ts'
import { idOfKey } from '../protocol/id.ts'
import type { ReceivedMessage } from '../protocol/message.ts'
import { checkReceived, parseJson } from '../protocol/parse.ts'
import { toError } from './failure.ts'
import { type DeliveryParts, ReceivedDelivery } from './received-delivery.ts'

/** A message of a request that passed the check of its signature, or that needed none. The message is not validated yet. */
export interface Incoming {
  readonly parts: DeliveryParts
  /** Parses the message. @throws HooklineError when the message is invalid. */
  readonly parse: () => ReceivedMessage
}

/** Splits a batch into its elements. Returns any other body, and a batch that is refused as a whole, as one message. */
export function splitBatch(parts: DeliveryParts, limit: number, takesCustom: boolean): Incoming | Incoming[] {
  try {
    const value = parseJson(parts.bytes)
    if (!Array.isArray(value)) return { parts, parse: () => checkReceived(value, takesCustom) }
    requireSize(value, limit)
    const { id } = new ReceivedDelivery(parts)
    return value.map((element, index) =>
      toIncoming(element, { ...parts, id: idOfKey(JSON.stringify([id, index])) }, takesCustom),
    )
  } catch (error) {
    return { parts, parse: () => refuse(error) }
  }
}

function toIncoming(element: unknown, parts: DeliveryParts, takesCustom: boolean): Incoming {
  try {
    const bytes = Buffer.from(JSON.stringify(element))
    return { parts: { ...parts, bytes }, parse: () => checkReceived(element, takesCustom) }
  } catch {
    const text =
      'The element of the batch is nested too deeply to be written as JSON again. Send it as a message of its own.'
    // No bytes are passed on for this element, because it cannot be written as JSON again.
    return {
      parts: { ...parts, bytes: new Uint8Array() },
      parse: () => refuse(new HooklineError('body_not_json', text)),
    }
  }
}

function refuse(error: unknown): never {
  throw toError(error)
}

function requireSize({ length }: readonly unknown[], limit: number): void {
  if (length === 0) throw new HooklineError('batch_empty', 'The batch is empty. Send one message or more.')
  if (length > limit) {
    const text = `A batch must hold at most ${limit} messages. Got ${length}. Send smaller batches, or raise \`batchLimit\`.`
    throw new HooklineError('batch_too_large', text)
  }
}
