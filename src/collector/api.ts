/** What createCollector() takes and gives: types only. */

import type { Endpoint, EndpointAnswer, EndpointRequest } from '../protocol/endpoint.ts'
import type { Destination } from '../sender/api.ts'

/** What a collector uses of a destination: any of `createDestination`, or something of yours that takes messages. */
export type CollectorDestination = Pick<Destination, 'submit'>

/** Where calls come from: a site, an app, a server. */
export interface Source {
  /** Names it in `delete`. */
  readonly name: string
  /**
   * What its clients show, as the user name of Basic authentication or as `writeKey` in the body. The type admits
   * undefined so that `process.env.X` compiles; a missing or empty key is a TypeError.
   */
  readonly writeKey: string | undefined
  /** Who gets its calls. */
  readonly destinations: readonly CollectorDestination[]
}

/** Which sources a deletion is about. */
export interface DeleteOptions {
  /** Names of the affected sources. Default: all. */
  readonly sources?: readonly string[]
}

/** What a deletion put into the queues of one source. */
export interface QueuedDeletion {
  readonly source: string
  /** How many of its destinations took the notification; those that are off take none. */
  readonly queued: number
}

/** Collects calls: mount it with an adapter's `serve`. */
export interface Collector extends Endpoint {
  /** The paths it answers: `/v1/batch` and others. */
  readonly routes: readonly string[]
  /** Answers a request of any host; this is what adapters call. Never rejects. */
  handle(request: EndpointRequest): Promise<EndpointAnswer> | undefined
  /**
   * Tells the destinations to forget a user: one `delete` notification for each affected source, to each of its
   * destinations that is on ("Outbound event delivery", Events).
   *
   * @throws HooklineError (as a rejection) `queue_full` and others, when a destination could not take it. Others may have:
   *   delete again, a user can be forgotten twice.
   * @throws TypeError (as a rejection) for an empty `userId` and for a name that is no source's.
   */
  delete(userId: string, options?: DeleteOptions): Promise<readonly QueuedDeletion[]>
}
