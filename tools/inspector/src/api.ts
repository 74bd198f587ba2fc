/** The types of an inspector. */

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { Clock, EndpointHeaders, Logger, Receiver } from 'hookline'
import type { Collector } from 'hookline/collector'
import type { Destination, Sender } from 'hookline/sender'
import type { Access } from './wire.ts'

/** One part, or several by the names that the page shows. */
export type OneOrNamed<Part> = Part | Readonly<Record<string, Part>>

/** A request for the page or its data, for which `authorize` decides. */
export interface AccessRequest {
  readonly method: string
  /** Relative to where the inspector is mounted. */
  readonly path: string
  /** Names in lower case. */
  readonly headers: EndpointHeaders
  /** The address of the connection, where the host knows it. */
  readonly remoteAddress: string | undefined
}

/** Decides what the sender of a request may do. False refuses it. */
export type Authorize = (request: AccessRequest) => Access | false | Promise<Access | false>

/** Limits on the messages that are kept. Past any of them, the oldest are dropped. */
export interface KeepOptions {
  /** The most messages. Default 2000. */
  readonly messages?: number
  /** The most bytes of their bodies and headers. Default 64 MB. */
  readonly bytes?: number
  /** The most refused requests, which never displace messages. Default 200. */
  readonly refused?: number
  /** The most bytes of refused requests. Default 4 MB. */
  readonly refusedBytes?: number
}

/** Options of `createInspector`. Pass at least one of the parts. */
export interface InspectorOptions {
  /** The receiver or receivers to watch. */
  readonly receiver?: OneOrNamed<Receiver>
  /** The destinations to watch. */
  readonly destinations?: OneOrNamed<Destination>
  /** The collector or collectors to watch. */
  readonly collector?: OneOrNamed<Collector>
  /** The senders that the page can send a message again with, only to their URLs. Default: none. */
  readonly senders?: OneOrNamed<Sender>
  /**
   * Decides who may look (`read`) and who may also redrive, drop and send (`write`). It is called for each request, and every minute for
   * a page that stays open. Default: the holder of the token in {@link Inspector.url}, on this machine, may `write`.
   */
  readonly authorize?: Authorize | undefined
  /**
   * The token of {@link Inspector.url}: 32 letters, digits, `-` and `_` or more. Default: a random one, new in each process. With
   * your own, such as `process.env.INSPECTOR_TOKEN`, an open page continues after a restart of the app.
   */
  readonly token?: string | undefined
  /** How much of the messages is kept. */
  readonly keep?: KeepOptions
  /** The clock of the parts, which the page follows. Default: the system clock. */
  readonly clock?: Clock
  /** Receives the lines about errors. Default: the console. */
  readonly logger?: Logger
}

/** Where `listen` serves the page. */
export interface ListenOptions {
  /** The port; 0 is any free one. */
  readonly port: number
  /** The address to listen on. Default `127.0.0.1`, which other machines do not reach. */
  readonly host?: string
}

/** Shows messages, queues and dead letters on a page. */
export interface Inspector {
  /**
   * Serves the page on its own port, until `close`. Returns the URL to open, with the token if there is one.
   *
   * @throws TypeError (as a rejection) that names the option.
   * @throws Error (as a rejection) with the code of Node, such as `EADDRINUSE`.
   */
  listen(options: ListenOptions): Promise<string>
  /**
   * Serves the page from a server of the app: mount it with `app.use` of Express or connect, or pass it to `createServer`. A
   * request for another path goes on to `next`; without one it is answered 404.
   */
  readonly handler: (
    request: IncomingMessage | Http2ServerRequest,
    response: ServerResponse | Http2ServerResponse,
    next?: (error?: unknown) => void,
  ) => void
  /**
   * Returns the URL to open where `handler` is mounted, with the token that lets a browser in. The token is a secret: print it on a
   * terminal only.
   *
   * @param mount The URL of the mount: `http://127.0.0.1:3000/hookline`.
   * @throws TypeError with `authorize`, which replaces the token.
   */
  url(mount: string): string
  /**
   * Deletes the messages of users: those whose `userId`, `anonymousId` or previous id is one of these ids. Returns how many. It parses
   * at most 250 KB of refused requests and of batches, and deletes the rest of them if they may concern one of the users.
   */
  forget(ids: string | readonly string[]): number
  /** Stops watching and listening, closes the open pages, and drops the messages that it kept. */
  close(): Promise<void>
}
