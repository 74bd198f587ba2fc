/** Bodies that are arrays of messages, which a signature covers as a whole. */

import { HooklineError } from '../protocol/error.ts'
import { idOfKey } from '../protocol/id.ts'
import type { ReceivedMessage } from '../protocol/message.ts'
import { checkReceived, parseJson } from '../protocol/parse.ts'
import { toError } from './failure.ts'
import { type DeliveryParts, ReceivedDelivery } from './received-delivery.ts'

/** A message whose request was verified. */
export interface Incoming {
  readonly parts: DeliveryParts
  /** @throws HooklineError when it is invalid. */
  readonly parse: () => ReceivedMessage
}

/** Splits a body into messages: one for each element of a batch. A body that is none, or is refused as a whole, is one message. */
export function splitBatch(parts: DeliveryParts, limit: number, takesCustom: boolean): readonly Incoming[] {
  try {
    const value = parseJson(parts.bytes)
    if (!Array.isArray(value)) return [{ parts, parse: () => checkReceived(value, takesCustom) }]
    requireSize(value, limit)
    const { id } = new ReceivedDelivery(parts)
    return value.map((element, index) => toIncoming(element, { ...parts, id: idOfKey(JSON.stringify([id, index])) }))
  } catch (error) {
    return [{ parts, parse: () => refuse(error) }]
  }

  function toIncoming(element: unknown, ofElement: DeliveryParts): Incoming {
    try {
      const bytes = Buffer.from(JSON.stringify(element))
      return { parts: { ...ofElement, bytes }, parse: () => checkReceived(element, takesCustom) }
    } catch {
      const text =
        'An element of a batch must be written anew. Got one that nests deeper than the stack. Send it alone.'
      const parts = { ...ofElement, bytes: new Uint8Array() } // Those of the whole batch are not its own.
      return { parts, parse: () => refuse(new HooklineError('body_not_json', text)) }
    }
  }
}

function refuse(error: unknown): never {
  throw toError(error)
}

function requireSize({ length }: readonly unknown[], limit: number): void {
  if (length === 0) {
    const text = 'A batch must hold a message. Got an empty array. Send one message or more.'
    throw new HooklineError('batch_empty', text)
  }
  if (length > limit) {
    const text = `A batch must hold at most ${limit} messages. Got ${length}. Send smaller batches, or raise \`batchLimit\`.`
    throw new HooklineError('batch_too_large', text)
  }
}
