/** The types of an inspector. */

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { Clock, EndpointHeaders, Logger, Receiver } from 'hookline'
import type { Collector } from 'hookline/collector'
import type { Destination, Sender } from 'hookline/sender'
import type { Access } from './wire.ts'

/** One part, or an object of parts, keyed by the names that the page shows. */
export type OneOrNamed<Part> = Part | Readonly<Record<string, Part>>

/** A request for the page or its data, which `authorize` allows or refuses. */
export interface AccessRequest {
  readonly method: string
  /** The path, relative to where the inspector is mounted. */
  readonly path: string
  /** The headers. Their names are in lower case. */
  readonly headers: EndpointHeaders
  /** The remote address of the connection, if the host knows it. */
  readonly remoteAddress: string | undefined
}

/** Decides what the sender of a request may do. Return false to refuse the request. */
export type Authorize = (request: AccessRequest) => Access | false | Promise<Access | false>

/** Limits on the messages that are kept. When any limit is exceeded, the oldest messages are dropped. */
export interface KeepOptions {
  /** The maximum number of messages. Default 2000. */
  readonly messages?: number
  /** The maximum total size of their bodies and headers, in bytes. Default 64 MB. */
  readonly bytes?: number
  /** The maximum number of refused requests, which never displace messages. Default 200. */
  readonly refused?: number
  /** The maximum total size of refused requests, in bytes. Default 4 MB. */
  readonly refusedBytes?: number
}

/** Options of `createInspector`. Pass at least one part: `receiver`, `destinations` or `collector`. */
export interface InspectorOptions {
  /** The receiver or receivers to watch. */
  readonly receiver?: OneOrNamed<Receiver>
  /** The destinations to watch. */
  readonly destinations?: OneOrNamed<Destination>
  /** The collector or collectors to watch. */
  readonly collector?: OneOrNamed<Collector>
  /** The senders with which the page can send a message again, only to their own URLs. Default: none. */
  readonly senders?: OneOrNamed<Sender>
  /**
   * Decides who may look at the page (`read`), and who may also redrive, drop, replay and send (`write`). It is called for each request,
   * and every minute for a page that stays open. Default: anyone on this machine with the token of {@link Inspector.url} may `write`.
   */
  readonly authorize?: Authorize | undefined
  /**
   * The token of {@link Inspector.url}: 32 to 256 letters, digits, `-` or `_`. Default: a random token, new in each process. With a
   * token of your own, such as `process.env.INSPECTOR_TOKEN`, an open page keeps working after the app restarts.
   */
  readonly token?: string | undefined
  /** How many messages to keep, and how many bytes of them. */
  readonly keep?: KeepOptions
  /** The clock that the parts use. The page shows its time. Default: the system clock. */
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
   * Serves the page on its own port until `close` is called. Returns the URL to open, with the token if there is one.
   *
   * @throws TypeError (as a rejection) that names the option.
   * @throws Error (as a rejection) with a Node error code, such as `EADDRINUSE`.
   */
  listen(options: ListenOptions): Promise<string>
  /**
   * Serves the page from a server of the app: mount it with `app.use` in Express or Connect, or pass it to `createServer`. A
   * request for any other path goes to `next`, or is answered 404 if there is no `next`.
   */
  readonly handler: (
    request: IncomingMessage | Http2ServerRequest,
    response: ServerResponse | Http2ServerResponse,
    next?: (error?: unknown) => void,
  ) => void
  /**
   * Returns the URL at which to open the page where `handler` is mounted. It contains the token that lets a browser in. The token is
   * a secret: print the URL only to a terminal.
   *
   * @param mount The URL where `handler` is mounted, such as `http://127.0.0.1:3000/hookline`.
   * @throws TypeError if the inspector has `authorize`, which replaces the token.
   */
  url(mount: string): string
  /**
   * Deletes the messages of users: those whose `userId`, `anonymousId` or previous id is one of these ids. Returns the number of
   * deleted messages. It parses at most 250 KB of refused requests and batches, and deletes any others that may concern these users.
   */
  forget(ids: string | readonly string[]): number
  /** Stops watching and listening, closes the open pages, and drops the kept messages. */
  close(): Promise<void>
}
