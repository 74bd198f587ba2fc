/** A delivery: the information that a handler gets in addition to the message. */

import type { BodySource } from '../host/body.ts'
import type { EndpointHeaders } from '../host/endpoint.ts'
import type { HooklineError } from '../protocol/error.ts'
import type { ReceivedMessage } from '../protocol/message.ts'

/** The method of a request that carries a message. */
export type DeliveryMethod = 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/**
 * The delivery of a message, as a handler gets it. Some fields are computed when they are read: pass on the object itself, because a spread
 * copy lacks these fields.
 */
export interface Delivery {
  /**
   * A UUID that is the same for every retry of the delivery, in the inbox, and as a dead letter. Use this id, not `messageId`, to recognise
   * duplicates, because a `messageId` can be guessed.
   *
   * The id is derived from the result of `key`, if `inbox` or `dedupe` has that option. Otherwise, it is derived from the signature of the
   * bytes with the last of your secrets, from the name of the source, if there is one, and from the method, if it is not POST. The id of an
   * unsigned delivery is derived from its bytes. The id of a batch element is derived from the id of the batch and the index of the
   * element.
   */
  readonly id: string
  /**
   * The exact bytes of the body. For an element of a batch, these are the bytes of the element, serialised again as JSON.
   * `JSON.stringify(delivery)` writes the bytes as text, and omits the headers.
   */
  readonly bytes: Uint8Array
  /** Where the adapter found the body: usually `stream`, unless a body parser ran before the adapter. */
  readonly bodySource: BodySource
  /** When the request arrived. */
  readonly receivedAt: Date
  /** The method of the request; `POST` for a call to `receive`. The signature does not cover the method. */
  readonly method: DeliveryMethod
  /** The headers of the request, with names in lower case. */
  readonly headers: EndpointHeaders
  /**
   * The part of the request that was verified: the signature, or the header of the option `header`. False if neither was
   * verified, as with `allowUnsigned`.
   */
  readonly verified: 'signature' | 'header' | false
  /** The name of the source whose secret the request matched, if the receiver has several sources; undefined otherwise. */
  readonly source: string | undefined
  /** The index of the secret or header value that the request matched, in the list that you passed; undefined if nothing was verified. */
  readonly secretIndex: number | undefined
  /**
   * Aborts when the handlers must stop. Without an inbox, the signal aborts at the deadline of the request, when the sender
   * gets the answer 503. With an inbox, the signal aborts when `inbox.timeoutMs` has passed, when `work` ends, or when the
   * grace period of `close` ends. Another attempt then follows, unless the message becomes a dead letter.
   */
  readonly signal: AbortSignal
  /** The replay that made this copy; undefined for a message that came from a sender. */
  readonly replay: DeliveryReplay | undefined
  /**
   * With `inbox.transactional`, a `pg` client in a transaction. Hookline commits the transaction after the handlers, together with the
   * completion of the message. A handler must not end the transaction. The client refuses queries once the handlers have finished.
   * Undefined without `inbox.transactional`, and for a batch handler, whose batch has a `db` of its own.
   */
  readonly db: TransactionClient | undefined
}

/** A `pg` client, of which only `query` is declared. To pass the client to a library, cast it to `PoolClient` of `pg`. */
export interface TransactionClient {
  query<Row = Record<string, unknown>>(
    text: string,
    values?: readonly unknown[],
  ): Promise<{ readonly rows: Row[]; readonly rowCount: number | null }>
}

/** The replay that made a copy of a message. */
export interface DeliveryReplay {
  /** The id of the replay. */
  readonly id: string
  /** When the original message was handled. */
  readonly handledAt: Date
  /** The names of the handlers that the replay calls; undefined if it calls all handlers that match. */
  readonly handlers: readonly string[] | undefined
}

/** The result of an element of a batch. */
export type ReceivedElement<M extends ReceivedMessage = ReceivedMessage> =
  | { readonly ok: true; readonly message: M; readonly delivery: Delivery }
  | { readonly ok: false; readonly error: HooklineError; readonly delivery: Delivery }

/**
 * The named handlers of a message in an inbox: those that are done, and those that failed in the last attempt. The empty name stands for
 * all handlers without a name.
 */
export interface HandlerNames {
  readonly done: readonly string[]
  readonly failed: readonly string[]
}
