/** A delivery: the information that a handler gets in addition to the message. */

import type { BodySource } from '../host/body.ts'
import type { EndpointHeaders } from '../host/endpoint.ts'
import type { HooklineError } from '../protocol/error.ts'
import type { ReceivedMessage } from '../protocol/message.ts'

/** The method of a request that carries a message. */
export type DeliveryMethod = 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** How a message arrived. Some fields are computed when they are read: pass the object itself on, because a spread copy loses them. */
export interface Delivery {
  /**
   * A UUID that identifies the delivery and every retry of it, including in an inbox and as a dead letter. It is derived from your `key`,
   * if `inbox` or `dedupe` has one. Otherwise it is derived from the signature of the bytes with the last of your secrets, and from the
   * name of the source, if there is one: a retry has the same bytes, so it has the same id. The id of an unsigned delivery is derived from
   * its bytes; that of an element of a batch, from the id of the batch and the index of the element. Use the id, not `messageId`, to
   * recognise duplicates: a `messageId` can be guessed.
   */
  readonly id: string
  /**
   * The exact bytes of the body; for an element of a batch, the element written as JSON again. `JSON.stringify(delivery)` shows them as
   * text, and leaves out the headers.
   */
  readonly bytes: Uint8Array
  /** Where the body was found: `stream` unless a parser ran first. */
  readonly bodySource: BodySource
  /** When the request arrived. */
  readonly receivedAt: Date
  /** The method of the request; `POST` for a call of `receive`. No signature covers it. */
  readonly method: DeliveryMethod
  /** The headers of the request, with names in lower case. */
  readonly headers: EndpointHeaders
  /** The proof that was verified: the signature of the request, or the header that the option `header` names. False with `allowUnsigned`. */
  readonly verified: 'signature' | 'header' | false
  /** The source whose secret made the signature, when the receiver has several; undefined otherwise. */
  readonly source: string | undefined
  /** The index, in your list of secrets or of header values, of the one that the request matched; undefined when nothing was verified. */
  readonly secretIndex: number | undefined
  /**
   * Fires at the deadline, when the sender is told to retry, so that unfinished work can stop. For a message from an inbox, it fires after
   * `timeoutMs`, or when the grace period of `close` ends; the message is then handled again.
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

/** The part of a `pg` client that has types here. To pass the client to a library, cast it to `PoolClient` from `pg`. */
export interface TransactionClient {
  query<Row = Record<string, unknown>>(
    text: string,
    values?: readonly unknown[],
  ): Promise<{ readonly rows: Row[]; readonly rowCount: number | null }>
}

/** A replay, as a handler sees it. */
export interface DeliveryReplay {
  /** The id of the replay. */
  readonly id: string
  /** When the original message was handled. */
  readonly handledAt: Date
  /** The names of the handlers that the replay calls; undefined for all. */
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
