/** The types of an inspector. */

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { Clock, EndpointHeaders, Logger, Receiver } from 'hookline'
import type { Collector } from 'hookline/collector'
import type { Destination, Sender } from 'hookline/sender'
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
}

/** Options of `createInspector`. Pass at least one of the parts. */
export interface InspectorOptions {
  /** The receiver or receivers to watch. */
  readonly receiver?: OneOrNamed<Receiver>
  /** The destinations to watch. */
  readonly destinations?: OneOrNamed<Destination>
  /** The collector or collectors to watch. */
  readonly collector?: OneOrNamed<Collector>
  /** What the page can send a message again with: to the URLs of these senders and no others. Default: nothing. */
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
  /** How much of the messages is kept. */
  readonly keep?: KeepOptions
  /** The clock of the parts, which the page goes by. Default: that of the machine. */
  readonly clock?: Clock
  /** Receives the lines about errors. Default: the console. */
  readonly logger?: Logger
}

/** Where the page is served by itself. */
export interface ListenOptions {
  /** The port; 0 is any free one. */
  readonly port: number
  /** The address to listen on. Default `127.0.0.1`, which other machines do not reach. */
  readonly host?: string
}

/** Shows messages, queues and dead letters on a page. */
export interface Inspector {
  /**
   * Serves the page on a port of its own, until `close`. Returns the URL to open, with the token, where one lets a browser in.
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
   * Returns the URL to open where `handler` is mounted, with the token that lets a browser in. It is a secret: print it on a
   * terminal only.
   *
   * @param mount Where that is: `http://127.0.0.1:3000/hookline`.
   * @throws TypeError with `authorize`, which decides instead of a token.
   */
  url(mount: string): string
  /**
   * Deletes what it keeps of users: messages whose `userId`, `anonymousId` or previous id is one of these. Returns how many. It parses
   * 250 KB at most of refused requests and of batches; what is left over, and may be about one of the users, is deleted, too.
   */
  forget(ids: string | readonly string[]): number
  /** Stops watching and listening, and ends the open pages. What it kept is gone. */
  close(): Promise<void>
}
