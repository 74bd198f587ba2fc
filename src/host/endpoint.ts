/** The contract between an adapter, which passes on the requests of an HTTP host, and an endpoint, which answers them. */

import type { EndpointBody } from './body.ts'

/** Headers, keyed by name in lower case, as node:http provides them. The values of a repeated header are joined, or are in a list. */
export type EndpointHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

/** A request as an endpoint gets it, in the same form from every framework. */
export interface EndpointRequest {
  /** The method of the request, in upper case. */
  readonly method: string
  /** The path of the request, relative to where the endpoint is mounted, without the query. */
  readonly path: string
  /** The query as it was sent, without its `?`. Empty when the request has none. */
  readonly query: string
  readonly headers: EndpointHeaders
  /**
   * A list of header names, each followed by its value, as they were sent; undefined if the host does not provide the
   * list. Unlike `headers`, the list has every value of repeated headers such as `authorization`.
   */
  readonly rawHeaders?: readonly string[] | undefined
  /** The remote IP address of the connection; undefined if the framework or the server does not provide it. */
  readonly remoteAddress: string | undefined
  /** How long the host still waits for the answer, in milliseconds; undefined if the host does not limit the time. */
  readonly remainingMs?: number | undefined
  /**
   * Reads the whole body. If the endpoint answers before the body was read, the adapter stops reading, keeps none of the body, and rejects
   * the promise.
   *
   * @param limit The maximum size of the body, in bytes.
   * @throws HooklineError (or a rejection) `body_too_large`, `body_aborted` or `body_consumed`.
   */
  readBody(limit: number): EndpointBody | Promise<EndpointBody>
}

/** An answer to a request. */
export interface EndpointAnswer {
  readonly status: number
  /** The headers of the answer, keyed by name in lower case. Adapters add `content-length`. */
  readonly headers: Readonly<Record<string, string>>
  /** The body of the answer; empty with the status 204. */
  readonly body: string
}

/** An object that answers HTTP requests, such as a receiver. The function `serve` of each adapter mounts an endpoint. */
export interface Endpoint {
  /** The paths of the endpoint, if it has several. An endpoint without `routes` answers every path at which it is mounted. */
  readonly routes?: readonly string[]
  /**
   * Describes work that continues after an answer, in words for an error; undefined if there is no such work. The adapter of a host that
   * stops the process between requests refuses an endpoint with such work.
   */
  readonly background?: string | undefined
  /** Answers a request. Returns undefined for a path that is not one of `routes`. A returned promise never rejects. */
  handle(request: EndpointRequest): Promise<EndpointAnswer> | undefined
}
