/** The contract between an HTTP host and what answers its requests: an adapter on one side, an endpoint on the other. */

import type { EndpointBody } from './body.ts'

/** Headers by name in lower case, as node:http provides them. The values of a repeated header are joined, or are in a list. */
export type EndpointHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

/** A request as an endpoint sees it, the same for every framework. */
export interface EndpointRequest {
  /** The method of the request, in upper case. */
  readonly method: string
  /** The path of the request, relative to where the endpoint is mounted, without the query. */
  readonly path: string
  /** The query as it was sent, without its `?`. Empty when the request has none. */
  readonly query: string
  readonly headers: EndpointHeaders
  /**
   * Header names and values in alternation, as they were sent, if the host knows them. `headers` has only the first value of some repeated
   * headers, such as `authorization`.
   */
  readonly rawHeaders?: readonly string[] | undefined
  /** The address of the connection, if the host knows it. */
  readonly remoteAddress: string | undefined
  /** How long the host waits for the answer, in milliseconds, if it limits the time of a request. */
  readonly remainingMs?: number | undefined
  /**
   * Reads the body, at most `limit` bytes of it. Once the endpoint has answered, the adapter stops reading, keeps none of the body, and the
   * promise rejects.
   *
   * @throws HooklineError (or a rejection) `body_too_large`, `body_aborted` or `body_consumed`.
   */
  readBody(limit: number): EndpointBody | Promise<EndpointBody>
}

/** An answer to a request. */
export interface EndpointAnswer {
  readonly status: number
  /** Headers by name in lower case. Adapters add `content-length`. */
  readonly headers: Readonly<Record<string, string>>
  /** The body of the answer; empty with the status 204. */
  readonly body: string
}

/** Anything that answers HTTP requests. The `serve` of every adapter mounts one. */
export interface Endpoint {
  /** The paths of the endpoint, when it has several. An endpoint without `routes` answers every path it is mounted at. */
  readonly routes?: readonly string[]
  /**
   * Names the work that continues after an answer, for use in an error; undefined when there is no such work. A host that stops the process
   * between requests refuses an endpoint with such work.
   */
  readonly background?: string | undefined
  /** Answers a request. Returns undefined for a path that is not one of `routes`. A returned promise never rejects. */
  handle(request: EndpointRequest): Promise<EndpointAnswer> | undefined
}
