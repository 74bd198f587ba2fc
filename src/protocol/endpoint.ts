/** The seam between an HTTP host and what answers it: adapters stand on one side, endpoints on the other. */

import type { EndpointBody } from './body.ts'

/** Header names in lower case, as node:http gives them; a repeated header is joined or a list. */
export type EndpointHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

/** A request as an endpoint sees it, whatever the framework. */
export interface EndpointRequest {
  /** In upper case. */
  readonly method: string
  /** Relative to where the endpoint is mounted, without the query. */
  readonly path: string
  readonly headers: EndpointHeaders
  /** The address of the connection, where the host knows it. */
  readonly remoteAddress: string | undefined
  /**
   * Reads the body, at most `limit` bytes of it.
   *
   * @throws HooklineError (or a rejection) `body_too_large`, `body_aborted` or `body_consumed`.
   */
  readBody(limit: number): EndpointBody | Promise<EndpointBody>
}

/** What to answer. */
export interface EndpointAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Something that answers HTTP requests; every adapter's `serve` mounts one. */
export interface Endpoint {
  /** The paths it answers, when it has several. One without `routes` answers wherever it is mounted. */
  readonly routes?: readonly string[]
  /** Answers, or returns undefined for a path that is not its own. The promise never rejects. */
  handle(request: EndpointRequest): Promise<EndpointAnswer> | undefined
}
