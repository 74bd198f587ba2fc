/** The collector's methods, its sources and their results. Types only. */

import type { Endpoint, EndpointAnswer, EndpointRequest } from '../host/endpoint.ts'
import type { Destination } from '../send/destination-types.ts'
import type { CollectorObserver } from './collector-events.ts'

/** A destination of a source: one of `createDestination`, or your own object that accepts messages. */
export type CollectorDestination = Pick<Destination, 'submit'> & Partial<Pick<Destination, 'enabled'>>

/** Whether calls are recorded by browsers, by apps on devices, or by your servers. */
export type SourceKind = 'web' | 'mobile' | 'server'

/** Where calls come from: a site, an app, a server. */
export interface Source {
  /** Name of the source, for `delete`. */
  readonly name: string
  /**
   * Identifies its clients, who send it as the user name of Basic authentication or as `writeKey` in the body. The type
   * admits undefined so that `process.env.X` compiles; a missing or empty key is a TypeError.
   */
  readonly writeKey: string | undefined
  /**
   * Whose address a connection has: for `web` and `mobile` that of the user, which is written to `context.ip` of a call
   * without one; for `server` that of the server, which is not. Default: the user's when the request has an `Origin` header,
   * as those of browsers have.
   */
  readonly kind?: SourceKind
  /** The destinations that get its calls. */
  readonly destinations: readonly CollectorDestination[]
}

/** The argument of `update`. */
export interface CollectorChanges {
  /** All sources from now on, as in `createCollector`. */
  readonly sources: readonly Source[]
}

/** Options of `delete`. */
export interface DeleteOptions {
  /** Names of the affected sources. Default: all. */
  readonly sources?: readonly string[]
}

/** The result of a deletion for one source. */
export interface QueuedDeletion {
  readonly source: string
  /** Number of its destinations that queued the notification. Destinations that are off do not. */
  readonly queued: number
}

/** Collects calls. Mount it with an adapter's `serve`. */
export interface Collector extends Endpoint {
  /** The paths that it answers: `/v1/batch` and others. */
  readonly routes: readonly string[]
  /** Answers a request. Adapters call it. Never rejects. */
  handle(request: EndpointRequest): Promise<EndpointAnswer> | undefined
  /**
   * Replaces the sources while the collector runs: their write keys, kinds and destinations. Requests and deletions that have
   * begun end with the sources that they began with; later ones have the new sources. Changes everything or, when it throws,
   * nothing.
   *
   * @throws TypeError that names the option, as at creation, and for one that cannot change: `ipHeader`, `deadlineMs`, `onError`,
   *   `clock`.
   * @example
   * collector.update({ sources: [{ name: 'shop', writeKey: 'a new key', destinations: [destination] }] })
   */
  update(changes: CollectorChanges): void
  /**
   * Calls the methods of `observer` with each request that this one collector answers. There may be several observers. Returns
   * what removes this one.
   *
   * @throws TypeError that names the method, for one that is no function and for an unknown name.
   */
  observe(observer: CollectorObserver): () => void
  /**
   * Requests the deletion of a user: queues one `delete` notification for each affected source, at each of its destinations
   * that is on ("Outbound event delivery", Events). The timestamps of all notifications for a user differ.
   *
   * @throws HooklineError (as a rejection) `queue_full` and others, when a destination did not queue it. Others may have:
   *   call it again, a second deletion does no harm.
   * @throws TypeError (as a rejection) for an empty `userId` and for an unknown source.
   */
  delete(userId: string, options?: DeleteOptions): Promise<readonly QueuedDeletion[]>
}
