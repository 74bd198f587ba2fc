/** The collector's methods, its sources and their results. Types only. */

import type { Endpoint, EndpointAnswer, EndpointRequest } from '../host/endpoint.ts'
import type { Destination } from '../send/destination-types.ts'
import type { CollectorObserver } from './collector-events.ts'

/** A destination of a source: the result of `createDestination`, or your own object with a method `submit`. */
export type CollectorDestination = Pick<Destination, 'submit'> & Partial<Pick<Destination, 'enabled'>>

/** Where the calls of a source are recorded: in browsers, in apps on devices, or on your servers. */
export type SourceKind = 'web' | 'mobile' | 'server'

/** A site, an app or a server whose calls the collector accepts. */
export interface Source {
  /** The name of the source, which `delete` accepts and events report. */
  readonly name: string
  /**
   * The key that the clients of the source send, as the user name of Basic authentication or as `writeKey` in the body.
   * The type admits undefined so that `process.env.X` compiles, but `createCollector` and `update` throw a TypeError for
   * a missing or empty key.
   */
  readonly writeKey: string | undefined
  /**
   * Tells whether connections come from users. With `web` or `mobile`, they do: calls without a `context.ip` get the IP address of the
   * connection. With `server`, they do not, and no address is added. Default: as with `web` for a request that has an `Origin` header, as
   * requests from browsers do; otherwise as with `server`.
   */
  readonly kind?: SourceKind
  /** The destinations that get the calls of the source. */
  readonly destinations: readonly CollectorDestination[]
}

/** The settings that `update` changes. */
export interface CollectorChanges {
  /** The new sources, in the form that `createCollector` accepts. They replace all earlier sources. */
  readonly sources: readonly Source[]
}

/** Options of `delete`. */
export interface DeleteOptions {
  /** The names of the affected sources. Default: all sources. */
  readonly sources?: readonly string[]
}

/** The result of a deletion for one source. */
export interface QueuedDeletion {
  readonly source: string
  /** The number of the source's destinations that queued the notification. Disabled destinations do not queue it. */
  readonly queued: number
}

/** Collects calls. Mount it with an adapter's `serve`. */
export interface Collector extends Endpoint {
  /** The paths that the collector answers, such as `/v1/batch`. */
  readonly routes: readonly string[]
  /** Answers a request; returns undefined for a path that is not in `routes`. Adapters call this method. It never rejects. */
  handle(request: EndpointRequest): Promise<EndpointAnswer> | undefined
  /**
   * Replaces the sources while the collector runs: their write keys, kinds and destinations. Requests and deletions under way end with the
   * sources with which they began; later ones use the new sources. If the method throws, nothing is changed.
   *
   * @throws TypeError that names an invalid option, as at creation, or an option that cannot change: `ipHeader`, `deadlineMs`, `onError`,
   *   `logger`, `clock`.
   * @example
   * collector.update({ sources: [{ name: 'shop', writeKey: 'a new key', destinations: [destination] }] })
   */
  update(changes: CollectorChanges): void
  /**
   * Adds an observer, whose methods are called for each request that this collector answers. A collector can have
   * several observers. Returns a function that removes this observer.
   *
   * @throws TypeError that names the method, if it is not a function or its name is unknown.
   */
  observe(observer: CollectorObserver): () => void
  /**
   * Requests the deletion of a user: queues one `delete` notification for each affected source, at each of its destinations
   * that is enabled ("Outbound event delivery", Events). The timestamps of all notifications for a user differ.
   *
   * @throws HooklineError (as a rejection) when a destination did not queue the notification, for example `queue_full`. Other destinations
   *   may have queued it; call `delete` again, because a second deletion does no harm.
   * @throws TypeError (as a rejection) for an empty `userId` and for an unknown source.
   */
  delete(userId: string, options?: DeleteOptions): Promise<readonly QueuedDeletion[]>
}
