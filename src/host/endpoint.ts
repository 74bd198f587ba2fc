/** The contract between an HTTP host and what answers its requests: an adapter on one side, an endpoint on the other. */

import type { EndpointBody } from './body.ts'

/** Header names in lower case, as node:http gives them; a repeated header is joined or a list. */
export type EndpointHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

/** A request as an endpoint sees it, the same for every framework. */
export interface EndpointRequest {
  /** In upper case. */
  readonly method: string
  /** Relative to where the endpoint is mounted, without the query. */
  readonly path: string
  /** The query as it was sent, without its `?`. Empty when the request has none. */
  readonly query: string
  readonly headers: EndpointHeaders
  /**
   * Names and values in turns, as they were sent, where the host knows them. `headers` has only the first of some repeated headers,
   * such as `authorization`.
   */
  readonly rawHeaders?: readonly string[] | undefined
  /** The address of the connection, where the host knows it. */
  readonly remoteAddress: string | undefined
  /** How long the host waits for the answer, in milliseconds, if it ends a request after a time. */
  readonly remainingMs?: number | undefined
  /**
   * Reads the body, at most `limit` bytes of it. Once the endpoint has answered, the adapter reads no more of it, keeps nothing
   * of it, and the promise rejects.
   *
   * @throws HooklineError (or a rejection) `body_too_large`, `body_aborted` or `body_consumed`.
   */
  readBody(limit: number): EndpointBody | Promise<EndpointBody>
}

/** An answer to a request. */
export interface EndpointAnswer {
  readonly status: number
  /** Names in lower case. Adapters add `content-length`. */
  readonly headers: Readonly<Record<string, string>>
  /** Empty with the status 204. */
  readonly body: string
}

/** Anything that answers HTTP requests. The `serve` of every adapter mounts one. */
export interface Endpoint {
  /** Its paths, when it has several. An endpoint without `routes` answers every path it is mounted at. */
  readonly routes?: readonly string[]
  /**
   * Names, for an error, the work that goes on after an answer; undefined when there is no such work. A host that stops the process
   * between requests refuses an endpoint with it.
   */
  readonly background?: string | undefined
  /** Answers a request. Returns undefined for a path that is not one of `routes`. The promise never rejects. */
  handle(request: EndpointRequest): Promise<EndpointAnswer> | undefined
}
