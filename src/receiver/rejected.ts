/** What becomes of an authentic message that cannot be used, without an inbox: `onRejected` gets it. */

import type { OpenDelivery } from '../handling/open-delivery.ts'
import type { EndpointHeaders } from '../http/endpoint.ts'
import { HooklineError } from '../message/error.ts'

/** An authentic message that is invalid or does not match its schema. */
export interface RejectedMessage {
  /** The exact bytes of the body, or of the element of a batch; their signature was checked. */
  readonly bytes: Uint8Array
  /** The headers of the request, names in lower case. */
  readonly headers: EndpointHeaders
  /** The source of the message, of a receiver with many. */
  readonly source: string | undefined
}

/** Receives such a message. */
export type OnRejected = (error: HooklineError, message: RejectedMessage) => unknown

/**
 * Gives the message to the function, if there is one. Returns the error of the delivery: `handler_failed` when the
 * function fails, so that the sender sends the message again.
 */
export async function reject(
  onRejected: OnRejected | undefined,
  error: HooklineError,
  { bytes, headers, source }: OpenDelivery,
): Promise<HooklineError> {
  try {
    await onRejected?.(error, { bytes, headers, source })
    return error
  } catch (cause) {
    const text = '`onRejected` must not fail. Got an error from it. See `cause`; the sender sends the message again.'
    return new HooklineError('handler_failed', text, { cause })
  }
}
