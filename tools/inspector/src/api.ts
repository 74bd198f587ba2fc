/** The public types of the inspector. */

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { Clock, EndpointHeaders, Logger, Receiver } from 'hookline'
import type { Collector } from 'hookline/collector'
import type { Destination, Sender } from 'hookline/sender'
import type { Access } from './wire.ts'

/** One part, such as a receiver, or an object of parts, keyed by the names that the page shows. */
export type OneOrNamed<Part> = Part | Readonly<Record<string, Part>>

/** A request for the page or its data, which `authorize` allows or refuses. */
export interface AccessRequest {
  readonly method: string
  /** The path, relative to where the inspector is mounted. */
  readonly path: string
  /** The headers, with names in lower case. */
  readonly headers: EndpointHeaders
  /** The remote address of the connection; undefined if the address is unknown. */
  readonly remoteAddress: string | undefined
}

/** Decides what the sender of a request may do. Return false to refuse the request. */
export type Authorize = (request: AccessRequest) => Access | false | Promise<Access | false>

/** Limits on the messages that are kept. When any limit is exceeded, the oldest messages are dropped. */
export interface KeepOptions {
  /** The maximum number of messages to keep. Default 2000. */
  readonly messages?: number
  /** The maximum total size of the bodies and headers of kept messages, in bytes. Default 64 MB. */
  readonly bytes?: number
  /** The maximum number of refused requests to keep. Refused requests never displace messages. Default 200. */
  readonly refused?: number
  /** The maximum total size of kept refused requests, in bytes. Default 4 MB. */
  readonly refusedBytes?: number
}

/** Options of `createInspector`. Pass at least one part: `receiver`, `destinations` or `collector`. */
export interface InspectorOptions {
  /** The receiver or receivers to watch. */
  readonly receiver?: OneOrNamed<Receiver>
  /** The destination or destinations to watch. */
  readonly destinations?: OneOrNamed<Destination>
  /** The collector or collectors to watch. */
  readonly collector?: OneOrNamed<Collector>
  /** The sender or senders that the page can use to send a message again. A sender sends only to its own URLs. Default: none. */
  readonly senders?: OneOrNamed<Sender>
  /**
   * Decides who may look at the page (`read`), and who may also redrive, drop, replay and send messages (`write`). The function is called
   * for each request, and every minute for a page that stays open. Default: anyone on this machine who has the token of
   * {@link Inspector.url} has `write` access.
   */
  readonly authorize?: Authorize | undefined
  /**
   * The token of {@link Inspector.url}: 32 to 256 letters, digits, `-` or `_`. Default: a random token, new in each process. With a
   * token of your own, such as `process.env.INSPECTOR_TOKEN`, an open page keeps working after the app restarts.
   */
  readonly token?: string | undefined
  /** Limits on the number and total size of the messages to keep. */
  readonly keep?: KeepOptions
  /** The clock that the parts use. Times on the page are from this clock. Default: the system clock. */
  readonly clock?: Clock
  /** Receives log lines about errors. Default: the console. */
  readonly logger?: Logger
}

/** Options of `listen`: where to serve the page. */
export interface ListenOptions {
  /** The port. Pass 0 for any free port. */
  readonly port: number
  /** The address to listen on. Default `127.0.0.1`, which other machines cannot reach. */
  readonly host?: string
}

/** Shows messages, queues and dead letters on a page. */
export interface Inspector {
  /**
   * Serves the page on a separate port until `close` is called. Returns the URL to open, with the token if there is one.
   *
   * @throws TypeError (as a rejection) that names the invalid option.
   * @throws Error (as a rejection) with a Node.js error code, such as `EADDRINUSE`, if the server cannot listen.
   */
  listen(options: ListenOptions): Promise<string>
  /**
   * Serves the page from the app's own server: mount the handler with `app.use` in Express or Connect, or pass it to `createServer`. A
   * request for a path outside the page goes to `next`, or gets a 404 if there is no `next`.
   */
  readonly handler: (
    request: IncomingMessage | Http2ServerRequest,
    response: ServerResponse | Http2ServerResponse,
    next?: (error?: unknown) => void,
  ) => void
  /**
   * Returns the URL that opens the page where `handler` is mounted. The URL contains the token, which is a secret: print the URL only
   * to a terminal.
   *
   * @param mount The URL where `handler` is mounted, such as `http://127.0.0.1:3000/hookline`.
   * @throws TypeError if the inspector has `authorize`, which replaces the token.
   */
  url(mount: string): string
  /**
   * Deletes the kept messages of users: the messages whose `userId`, `anonymousId` or previous id is one of these ids. Returns the
   * number of deleted messages. At most 250 KB of refused requests and batches are parsed. Beyond this limit, every request or batch that
   * may concern these users is deleted.
   */
  forget(ids: string | readonly string[]): number
  /** Stops watching and listening, closes the open pages, and drops the kept messages. */
  close(): Promise<void>
}
