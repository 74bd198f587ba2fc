/** The types of an inspector. */

import type { Collector } from '../collector/api.ts'
import type { Destination } from '../destination/api.ts'
import type { Endpoint, EndpointAnswer, EndpointHeaders, EndpointRequest } from '../http/endpoint.ts'
import type { Logger } from '../options/log.ts'
import type { Receiver } from '../receiver/api.ts'
import type { Sender } from '../sender/api.ts'
import type { ManualClock } from '../testing/manual-clock.ts'
import type { Clock } from '../time/clock.ts'
import type { Access } from './wire.ts'

/** One part, or several by the names that the page shows. */
export type OneOrNamed<Part> = Part | Readonly<Record<string, Part>>

/** A request for the page or its data, to decide about. */
export interface AccessRequest {
  readonly method: string
  /** Relative to where the inspector is mounted. */
  readonly path: string
  /** Names in lower case. */
  readonly headers: EndpointHeaders
  /** The address of the connection, where the host knows it. */
  readonly remoteAddress: string | undefined
}

/** Says what whoever sent a request may do: false for nothing. */
export type Authorize = (request: AccessRequest) => Access | false | Promise<Access | false>

/** How much is kept of the messages. The oldest are dropped past any of these. */
export interface KeepOptions {
  /** The most messages. Default 2000. */
  readonly messages?: number
  /** The most bytes of their bodies and headers. Default 64 MB. */
  readonly bytes?: number
  /** The most refused requests: they never push messages out. Default 200. */
  readonly refused?: number
  /** The most bytes of refused requests. Default 4 MB. */
  readonly refusedBytes?: number
  /** A file of SQLite that keeps them beyond the process, too. Default: memory alone. */
  readonly path?: string | undefined
}

/** Options of `createInspector`. Pass at least one of the parts. */
export interface InspectorOptions {
  /** The receiver or receivers to watch. */
  readonly receiver?: OneOrNamed<Receiver>
  /** The destinations to watch. */
  readonly destinations?: OneOrNamed<Destination>
  /** The collector or collectors to watch. */
  readonly collector?: OneOrNamed<Collector>
  /** What messages can be sent with from the page: to the URLs of these senders and no others. Default: nothing. */
  readonly senders?: OneOrNamed<Sender>
  /**
   * Decides who may look (`read`) and who may also redrive, drop and send (`write`). Asked for each request, and each minute for
   * a page that stays open. Default: whoever has the token of {@link Inspector.url}, on this machine, and `write`.
   */
  readonly authorize?: Authorize | undefined
  /**
   * The token of {@link Inspector.url}: 32 letters, digits, `-` and `_` or more. Default: a random one, new in each process. One
   * of your own, `process.env.INSPECTOR_TOKEN` for instance, lets an open page go on when the app was started again.
   */
  readonly token?: string | undefined
  readonly keep?: KeepOptions
  /**
   * Lets the page set faults of receivers that are mounted {@link Inspector.withFaults}, and move the clock. Default false.
   *
   * @throws TypeError when NODE_ENV is `production`.
   */
  readonly development?: boolean
  /** The `manualClock()` that the parts were made with, for the page to move; with `development` only. Else the clock of the parts. */
  readonly clock?: Clock | ManualClock
  /** Receives the lines about errors. Default: the console. */
  readonly logger?: Logger
}

/** Shows messages, queues and dead letters on a page. Mount it with an adapter's `serve`. */
export interface Inspector extends Endpoint {
  /** The paths that it answers, below where it is mounted. */
  readonly routes: readonly string[]
  /** Answers a request. Adapters call it. Never rejects. */
  handle(request: EndpointRequest): Promise<EndpointAnswer> | undefined
  /**
   * Returns the URL to open, with the token that lets a browser in. It is a secret: print it on a terminal only.
   *
   * @param mount Where the inspector is mounted: `http://127.0.0.1:3000/hookline`.
   * @throws TypeError with `authorize`, which decides instead of a token.
   */
  url(mount: string): string
  /**
   * Wraps a receiver that it watches. Mount the result in its place: the page can then have the next requests answered with a
   * status of its choice, or later. The receiver does not see a request that is answered so. Without `development`: the receiver itself.
   *
   * @throws TypeError for a receiver that it does not watch.
   * @example
   * app.post('/webhooks', serve(inspector.withFaults(receiver)))
   */
  withFaults(receiver: Receiver): Endpoint
  /**
   * Deletes what it keeps of users: messages whose `userId`, `anonymousId` or previous id is one of these. Returns how many. It parses
   * 250 KB at most of refused requests and of batches; what is left over, and may be about one of the users, is deleted, too.
   */
  forget(ids: string | readonly string[]): number
  /** Stops watching and ends the open streams. What it kept in memory is gone. */
  close(): Promise<void>
}
