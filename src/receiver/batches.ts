/** Takes a body that is an array of messages: one signature and one answer for all, a delivery for each. */

import type { ReceivedElement } from '../handling/delivery.ts'
import type { FailedRequest } from '../handling/diagnostics.ts'
import { isUnusable, toError } from '../handling/failure.ts'
import type { Handlers } from '../handling/handlers.ts'
import { describe, describeRequest } from '../handling/lines.ts'
import type { OpenDelivery } from '../handling/open-delivery.ts'
import { publishFailed, publishHandled, publishReceived, publishRejected } from '../handling/publish.ts'
import { accepted, problem } from '../http/answer.ts'
import type { Inbox } from '../inbox/inbox.ts'
import { isArray } from '../message/elements.ts'
import type { HooklineError } from '../message/error.ts'
import type { Message } from '../message/message.ts'
import type { Received } from './api.ts'
import { type Element, isSigned, readMessage, split } from './elements.ts'
import type { ReceiverSettings } from './options.ts'
import { reject } from './rejected.ts'

/** What handles one message: the rest of the receive algorithm, once it is valid. */
export type Perform = (message: Message, wire: Message, delivery: OpenDelivery, request: FailedRequest) => unknown

/** Prepares a request for its signature; undefined for a body that is no array. Nothing of it is authentic yet. */
export type OpenBatch = (batch: OpenDelivery, request: FailedRequest) => Batch | undefined

/** A request with several messages. */
export interface Batch {
  /**
   * Handles or stores each element, once the signature is checked. A request that fails as a whole rejects; what became of its
   * elements is said by `elements` of its delivery.
   *
   * @throws HooklineError (as a rejection) `body_not_json`, `batch_empty`, `batch_too_large`, `inbox_unavailable`.
   */
  take(): Promise<Received>
}

/** Prepares the handling of batches. */
export function createOpenBatch(
  { batches, batchLimit, validate, onRejected, report, clock }: ReceiverSettings,
  handlers: Handlers,
  inbox: Inbox | undefined,
  perform: Perform,
): OpenBatch {
  let hasWarned = false

  return (batch, request) => {
    if (!isArray(batch.bytes)) return undefined
    if (batches === 'first_signed') batch.isSignedBy = (key, signature) => isSigned(batch, key, signature)
    return { take: () => take(batch, request) }
  }

  async function take(batch: OpenDelivery, request: FailedRequest): Promise<Received> {
    const elements = split(batch, batchLimit)
    for (const { delivery } of elements) delivery.setObserved(batch.observed?.observers)
    batch.complete = (received) => ({
      ...received,
      elements: elements.map((element) => element.result ?? cutShort(element, received.error as HooklineError)),
    })
    if (batch.isUncovered && elements.length > 1) warnUnlessTaken()
    if (inbox !== undefined) await storeAll(inbox, elements, request)
    else await handleAll(batch, elements, request)
    return summarize(elements)
  }

  /** In their order, one after the other: copies in one batch find what the first of them left in the dedupe store. */
  async function handleAll(batch: OpenDelivery, elements: readonly Element[], request: FailedRequest): Promise<void> {
    for (const element of elements) {
      if (batch.expired !== undefined) return
      batch.current = element.delivery
      await handle(element, request)
    }
    batch.current = undefined
  }

  async function handle(element: Element, request: FailedRequest): Promise<void> {
    const { delivery, value } = element
    delivery.enter('handlers')
    try {
      const wire = readMessage(value, delivery)
      const message = await validate(wire)
      await perform(message, wire, delivery, request)
      finish(element, { ok: true, message, delivery }, request)
    } catch (thrown) {
      const error = toError(thrown)
      const isKept = isUnusable(error) && delivery.verified
      const final = isKept ? await reject(onRejected, error, delivery).catch(toError) : error
      finish(element, { ok: false, error: final, delivery }, request)
    }
  }

  /** In one push. An element whose key cannot be made fails alone. */
  async function storeAll(inbox: Inbox, elements: readonly Element[], request: FailedRequest): Promise<void> {
    const prepared: ReturnType<Inbox['prepare']>[] = []
    const results = elements.map(({ delivery, value }): ReceivedElement => {
      try {
        const message = readMessage(value, delivery)
        publishReceived(message, delivery)
        prepared.push(inbox.prepare(delivery, message))
        return { ok: true, message, delivery }
      } catch (thrown) {
        const error = toError(thrown)
        if (isUnusable(error) && delivery.verified) prepared.push(inbox.prepare(delivery, undefined))
        return { ok: false, error, delivery }
      }
    })
    await inbox.store(prepared)
    for (const [index, element] of elements.entries()) finish(element, results[index] as ReceivedElement, request)
  }

  /** Records what became of an element, as the end of a request with one message does. */
  function finish(element: Element, result: ReceivedElement, request: FailedRequest): void {
    const { delivery } = element
    if (delivery.expired !== undefined) {
      const isLate = !result.ok && result.error.code === 'handler_failed' && result.error !== delivery.expired
      if (isLate) report(result.error, request, describe(result.error, delivery))
      return
    }
    element.result = result
    if (result.ok) {
      publishHandled(delivery, 1, clock)
      return
    }
    const { error } = result
    const isStored = inbox !== undefined && isUnusable(error) && delivery.verified
    report(error, request, describeRequest(error, delivery, isStored, onRejected))
    if (delivery.dispatched === undefined) publishRejected(error, request)
    else publishFailed(delivery, 1, clock, { error, next: 'sender' })
  }

  /** Ends an element that the failure of its request interrupts. The request reports its error, once for all. */
  function cutShort(element: Element, failure: HooklineError): ReceivedElement {
    const { delivery } = element
    const { dispatched } = delivery
    delivery.expire(failure)
    if (dispatched !== undefined && delivery.isHandled) {
      publishHandled(delivery, 1, clock)
      return { ok: true, message: dispatched, delivery }
    }
    if (dispatched !== undefined) publishFailed(delivery, 1, clock, { error: failure, next: 'sender' })
    return { ok: false, error: failure, delivery }
  }

  /** A process that stores for another one has no handlers. */
  function warnUnlessTaken(): void {
    if (hasWarned || handlers.size === 0 || handlers.takeUnverified) return
    hasWarned = true
    process.emitWarning(UNTAKEN, { code: 'HOOKLINE_UNVERIFIED' })
  }
}

const UNTAKEN =
  'A batch has elements that its signature does not cover, and no handler takes such. Only its first element was handled. Pass { unverified: true } to `on`, or turn batching off at the sender.'

/** The result of the request. What makes the sender come again comes first; an invalid element does not. */
function summarize(elements: readonly Element[]): Received {
  const results = elements.flatMap(({ result }) => result ?? [])
  const errors = results.flatMap((result) => (result.ok ? [] : [result.error]))
  const failure = errors.find((error) => !isUnusable(error))
  if (failure !== undefined) return { ...problem(failure), ok: false, error: failure }
  const [error] = errors
  if (error !== undefined) return { ...accepted, ok: false, error }
  const { message, delivery } = results[0] as Extract<ReceivedElement, { ok: true }>
  return { ...accepted, ok: true, message, delivery }
}
