/** The events of a collector. */

import type { EndpointHeaders } from '../host/endpoint.ts'
import type { HooklineError } from '../protocol/error.ts'

/** A request, without its body. */
export interface CollectorRequest {
  /** Relative to where the collector is mounted. */
  readonly path: string
  /** The headers of the request, names in lower case; without `authorization`, which has the write key. */
  readonly headers: EndpointHeaders
  /** The address of the connection, if the host knows it. */
  readonly remoteAddress: string | undefined
}

/** A request was answered. Preflight requests of browsers are left out. */
export interface CollectedEvent {
  readonly request: CollectorRequest
  /** The body, inflated, with the write key where the client puts it there; empty when none was read. */
  readonly bytes: Uint8Array
  /** The name of the source; undefined when the write key is unknown. */
  readonly source: string | undefined
  readonly status: number
  /** Why the request failed as a whole. */
  readonly error: HooklineError | undefined
  /** How many calls were accepted, and how many refused. */
  readonly accepted: number
  readonly refused: number
  /** The ids of the messages that were made of the accepted calls, in their order. */
  readonly messageIds: readonly string[]
  /** When the request arrived, in milliseconds since the epoch, by the clock of the collector. */
  readonly at: number
  /** From the arrival to the answer, in milliseconds. */
  readonly durationMs: number
}

/** Observes one collector. Its method is called at once, before the answer goes out: keep it short. What it throws becomes a process warning. */
export interface CollectorObserver {
  answered?(event: CollectedEvent): void
}
