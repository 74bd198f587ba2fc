/** Why calls were not delivered. */

/**
 * - `batch_refused`: the answer to a batch was final, a 401 for instance.
 * - `out_of_retries`: each attempt failed in a way that is worth another one.
 * - `call_refused`: the collection service took the batch, and listed this call as refused.
 * - `maybe_refused`: the collection service took the batch, and its answer does not say (to the end) which calls it refused.
 *   Those that are told with this were delivered, or refused; the message counts the refused ones where that is known.
 * - `queue_full`: the call was dropped, because there was no room.
 */
export type DeliveryErrorReason = 'batch_refused' | 'out_of_retries' | 'call_refused' | 'maybe_refused' | 'queue_full'

/** What is known about a failure. */
export interface DeliveryErrorDetails {
  /** The status of the last answer, when there was one. */
  readonly status?: number
  /** How often the batch was sent. */
  readonly attempts?: number
  /** The code that the collection service gave for a refused call. */
  readonly code?: string
  /** The field of a refused call that is at fault, as a dotted path. */
  readonly path?: string
}

/**
 * What `onError` is told. Its message holds nothing of a call, of an answer's text or of the write key, so it is safe to
 * log.
 */
export class DeliveryError extends Error {
  override readonly name = 'DeliveryError'
  /** What happened. */
  readonly reason: DeliveryErrorReason
  /** The status of the last answer, when there was one. */
  readonly status: number | undefined
  /** How often the batch was sent; 0 when it never was. */
  readonly attempts: number
  /** The code that the collection service gave for a refused call. */
  readonly code: string | undefined
  /** The field of a refused call that is at fault, as a dotted path. */
  readonly path: string | undefined

  constructor(reason: DeliveryErrorReason, message: string, details: DeliveryErrorDetails = {}) {
    super(message)
    this.reason = reason
    this.status = details.status
    this.attempts = details.attempts ?? 0
    this.code = details.code
    this.path = details.path
  }
}
