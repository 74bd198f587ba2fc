/** The elements of a batch: what its signature covers, and a delivery for each. */

import type { ReceivedElement } from '../handling/delivery.ts'
import { OpenDelivery, sha256 } from '../handling/open-delivery.ts'
import { elementsOf, firstElement } from '../message/elements.ts'
import { HooklineError, kindOf } from '../message/error.ts'
import { isObject, parseJson } from '../message/json.ts'
import type { Message } from '../message/message.ts'
import { checkMessage } from '../message/parse.ts'
import type { Key } from '../message/signature.ts'

/** One message of a batch. */
export interface Element {
  readonly value: unknown
  readonly delivery: OpenDelivery
  result?: ReceivedElement
}

/** Always checks both, so that the time it takes does not depend on which of the two is signed. */
export function isSigned(batch: OpenDelivery, key: Key, signature: string): boolean {
  const first = firstElement(batch.bytes)
  const isWhole = key.matches(batch.bytes, signature)
  const isFirst = key.matches(first, signature) && first.length > 0
  if (isFirst && !isWhole) batch.isUncovered = true
  return isWhole || isFirst
}

/** A delivery for each element. */
export function split(batch: OpenDelivery, limit: number): Element[] {
  const { bytes, signature, secretIndex, source, isUncovered } = batch
  const values = parseJson(bytes) as readonly unknown[] // It begins with a bracket.
  if (values.length === 0) {
    const text = 'A batch must hold a message. Got an empty array. Send one message or more.'
    throw new HooklineError('batch_empty', text)
  }
  if (values.length > limit) {
    const text = `A batch must hold at most ${limit} messages. Got ${values.length}. Send smaller batches, or raise \`batchLimit\`.`
    throw new HooklineError('batch_too_large', text)
  }
  const slices = elementsOf(bytes)
  const of = signature ?? sha256(bytes)
  return values.map((value, index) => {
    const delivery = new OpenDelivery(batch.headers, batch.receivedAt.getTime())
    delivery.setBody({ bytes: slices[index] as Uint8Array, source: batch.bodySource })
    delivery.source = source
    if (signature !== undefined) delivery.setSignature(signature, secretIndex as number)
    // The first of a batch that signs it alone is the same delivery as when it arrives alone.
    if (isUncovered && index === 0) return { value, delivery }
    delivery.element = { of, index }
    delivery.isUncovered = isUncovered
    return { value, delivery }
  })
}

export function readMessage(value: unknown, delivery: OpenDelivery): Message {
  if (!isObject(value)) {
    const text = `An element of a batch must be one JSON object. Got ${kindOf(value)}. Send an array of messages.`
    throw new HooklineError('body_not_json', text)
  }
  const message = checkMessage(value)
  delivery.wire = message
  return message
}
