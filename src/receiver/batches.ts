/** Bodies that are arrays of messages: a delivery for each element. */

import { toError } from '../handling/failure.ts'
import { OpenDelivery } from '../handling/open-delivery.ts'
import { HooklineError } from '../message/error.ts'
import { idOfKey } from '../message/id.ts'
import { parseJson } from '../message/json.ts'

/** Makes a delivery for each element of a batch. A body that is no batch, or one that is refused as a whole, stays one delivery. */
export function splitBatch(delivery: OpenDelivery, limit: number): readonly OpenDelivery[] {
  try {
    const value = parseJson(delivery.bytes)
    if (Array.isArray(value)) {
      requireSize(value, limit)
      return value.map((element, index) => toDelivery(element, index, delivery))
    }
    delivery.setParsed(value)
  } catch (error) {
    delivery.setInvalid(toError(error))
  }
  return [delivery]
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

function toDelivery(element: unknown, index: number, batch: OpenDelivery): OpenDelivery {
  const { headers, receivedAt, method, bodySource, source, signature, secretIndex, hasHeader, observed } = batch
  const delivery = new OpenDelivery(headers, receivedAt.getTime(), method)
  delivery.id = idOfKey(JSON.stringify([batch.id, index]))
  delivery.source = source
  if (signature !== undefined) delivery.setSignature(signature, secretIndex as number)
  delivery.hasHeader = hasHeader
  delivery.setObserved(observed?.observers)
  delivery.setParsed(element)
  try {
    delivery.setBody({ bytes: Buffer.from(JSON.stringify(element)), source: bodySource })
  } catch {
    const text =
      'An element of a batch must nest less than some thousand levels deep. Got one that nests deeper. Send it alone.'
    delivery.setInvalid(new HooklineError('body_not_json', text))
  }
  return delivery
}
