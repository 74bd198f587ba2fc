/** The events of a collector. */

import type { EndpointHeaders } from '../host/endpoint.ts'
import type { HooklineError } from '../protocol/error.ts'

/** A request, without its body. */
export interface CollectorRequest {
  /** The path, relative to where the collector is mounted. */
  readonly path: string
  /** The headers of the request, with names in lower case and without `authorization`, which contains the write key. */
  readonly headers: EndpointHeaders
  /** The remote IP address of the connection; undefined if the framework or the server does not provide it. */
  readonly remoteAddress: string | undefined
}

/** The event of a request that was answered. Preflight requests from browsers are not reported. */
export interface CollectedEvent {
  readonly request: CollectorRequest
  /** The decompressed body, including the write key if the client puts it there; empty when no body was read. */
  readonly bytes: Uint8Array
  /** The name of the source; undefined when the write key is unknown. */
  readonly source: string | undefined
  readonly status: number
  /** Why the request failed as a whole; undefined if it did not. */
  readonly error: HooklineError | undefined
  /** The number of accepted calls; `refused` is the number of the others. */
  readonly accepted: number
  readonly refused: number
  /** The ids of the messages that were made from the accepted calls, in the order of the calls. */
  readonly messageIds: readonly string[]
  /** When the request arrived, in milliseconds since the epoch, on the collector's clock. */
  readonly at: number
  /** The time from the arrival of the request to its answer, in milliseconds. */
  readonly durationMs: number
}

/**
 * Observes one collector. The method is called synchronously, before the answer is sent, so keep it short. An error that the method throws
 * becomes a process warning.
 */
export interface CollectorObserver {
  answered?(event: CollectedEvent): void
}
