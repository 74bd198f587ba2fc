/** Bodies that are arrays of messages: what their signature covers, and a delivery for each element. */

import { memoryDedupe } from '../dedupe/memory.ts'
import type { Dedupe } from '../dedupe/store.ts'
import { toError } from '../handling/failure.ts'
import type { Handlers } from '../handling/handlers.ts'
import { OpenDelivery, sha256 } from '../handling/open-delivery.ts'
import type { Inbox } from '../inbox/inbox.ts'
import { elementsOf, firstElement, isArray } from '../message/elements.ts'
import { HooklineError, kindOf } from '../message/error.ts'
import { isObject, parseJson } from '../message/json.ts'
import { checkReceived } from '../message/parse.ts'
import type { Key } from '../message/signature.ts'
import type { ReceiverSettings } from './options.ts'

export type Batches = ReturnType<typeof createBatches>

export function createBatches(
  { batches, batchLimit, takesCustom, clock }: ReceiverSettings,
  handlers: Handlers,
  inbox: Inbox | undefined,
) {
  let hasWarned = false

  function isWanted(element: OpenDelivery): boolean {
    return !element.isUncovered || (element.wire !== undefined && handlers.match(element.wire, element))
  }

  /** Without an inbox or a handler, the caller of `receive` gets them. */
  function warnUnlessTaken(): void {
    if (hasWarned || handlers.takeUnverified || (handlers.size === 0 && inbox === undefined)) return
    hasWarned = true
    process.emitWarning(UNTAKEN, { code: 'HOOKLINE_UNVERIFIED' })
  }

  return {
    /** Where elements that are not signed are claimed: anyone can send these, and would push out of `dedupe` what is signed. */
    unverified: memoryDedupe({ clock }) as Dedupe,
    /** Says of a body that is a batch what its signature may cover. Returns whether it is one. */
    open(batch: OpenDelivery): boolean {
      if (!isArray(batch.bytes)) return false
      if (batches === 'first_signed') batch.bytesSignedBy = (key, signature) => bytesSigned(batch, key, signature)
      return true
    },
    /**
     * Makes a delivery for each element. A batch that cannot be split is one message that is invalid: `body_not_json`, `batch_empty`
     * or `batch_too_large`.
     *
     * @param drop Ends an element that is not signed and that no handler asks for. It leaves nothing behind: no claim, no job,
     *   nothing that an observer keeps.
     */
    split(batch: OpenDelivery, drop: (element: OpenDelivery) => void): readonly OpenDelivery[] {
      const elements = trySplit(batch, batchLimit, takesCustom)
      if (batch.isUncovered && elements.length > 1) warnUnlessTaken()
      for (const element of elements) {
        if (element === batch) continue
        if (isWanted(element)) element.setObserved(batch.observed?.observers)
        else drop(element)
      }
      return elements
    },
  }
}

const UNTAKEN =
  'A batch has elements that its signature does not cover, and no handler of this process asks for such. All but its first element were dropped. Pass { unverified: true } to `on`, also in a process that only stores, or turn batching off at the sender.'

/** Always checks both, so that the time it takes does not depend on which of the two is signed. */
export function bytesSigned(batch: OpenDelivery, key: Key, signature: string): Uint8Array | undefined {
  const first = firstElement(batch.bytes)
  const isWhole = key.matches(batch.bytes, signature)
  // A batch within a batch is none that a sender makes: its first element may be a batch that was signed as a whole.
  const isFirst = key.matches(first, signature) && first.length > 0 && !isArray(first)
  if (isFirst && !isWhole) batch.isUncovered = true
  return isWhole ? batch.bytes : isFirst ? first : undefined
}

function trySplit(batch: OpenDelivery, limit: number, takesCustom: boolean): OpenDelivery[] {
  try {
    return split(batch, limit, takesCustom)
  } catch (error) {
    batch.setInvalid(toError(error))
    return [batch]
  }
}

function split(batch: OpenDelivery, limit: number, takesCustom: boolean): OpenDelivery[] {
  const { bytes, signature, secretIndex, hasHeader, source, isUncovered } = batch
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
    const delivery = new OpenDelivery(batch.headers, batch.receivedAt.getTime(), batch.method)
    delivery.setBody({ bytes: slices[index] as Uint8Array, source: batch.bodySource })
    delivery.source = source
    if (signature !== undefined) delivery.setSignature(signature, secretIndex as number)
    delivery.hasHeader = hasHeader
    // The first of a batch that signs it alone is the same delivery as when it arrives alone.
    if (!isUncovered || index > 0) {
      delivery.element = { of, index }
      delivery.isUncovered = isUncovered
    }
    read(value, delivery, takesCustom)
    return delivery
  })
}

function read(value: unknown, delivery: OpenDelivery, takesCustom: boolean): void {
  try {
    if (takesCustom || isObject(value)) delivery.wire = checkReceived(value, takesCustom)
    else {
      const text = `An element of a batch must be one JSON object. Got ${kindOf(value)}. Send an array of messages.`
      throw new HooklineError('body_not_json', text)
    }
  } catch (error) {
    delivery.setInvalid(toError(error))
  }
}
