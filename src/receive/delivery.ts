/** A delivery: the information that a handler gets in addition to the message. */

import type { BodySource } from '../host/body.ts'
import type { EndpointHeaders } from '../host/endpoint.ts'
import type { HooklineError } from '../protocol/error.ts'
import type { ReceivedMessage } from '../protocol/message.ts'

/** The method of a request that carries a message. */
export type DeliveryMethod = 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** How a message arrived. Some fields are computed when they are read: pass the object on, a copy by spread loses them. */
export interface Delivery {
  /**
   * Identifies the delivery and every retry of it, in an inbox and as a dead letter, too: a UUID. It is made of your `key`, if
   * `inbox` or `dedupe` has one. Otherwise it is made of the signature that the last of your secrets makes of the bytes, and of the name of
   * the source, if there is one: a retry has the same bytes, so it has the same id. An unsigned delivery has an id made of its bytes; an
   * element of a batch, of the id of the batch and its place. Use the id, not `messageId`, to recognise duplicates: a `messageId` can be
   * guessed.
   */
  readonly id: string
  /** The exact bytes of the body; of an element of a batch, its JSON, written anew. `JSON.stringify(delivery)` has them as text, and leaves the headers out. */
  readonly bytes: Uint8Array
  /** Where the body was found: `stream` unless a parser ran first. */
  readonly bodySource: BodySource
  /** When the request arrived. */
  readonly receivedAt: Date
  /** The method of the request; `POST` for a call of `receive`. No signature covers it. */
  readonly method: DeliveryMethod
  /** The headers of the request, names in lower case. */
  readonly headers: EndpointHeaders
  /** The proof that was checked: the signature of the request, or its `header`. False under `allowUnsigned`. */
  readonly verified: 'signature' | 'header' | false
  /** The source whose secret made the signature, of a receiver with many; undefined for a receiver with one. */
  readonly source: string | undefined
  /** Which of your secrets made the signature of the request, or which value its header has, counted from 0; undefined when unsigned. */
  readonly secretIndex: number | undefined
  /**
   * Fires at the deadline, when the sender is answered that it should retry: unfinished work can stop. From an inbox: after
   * `timeoutMs`, or when the grace of `close` is over; the message is handled again.
   */
  readonly signal: AbortSignal
  /** The replay whose copy this is; undefined for a message as it arrived. */
  readonly replay: DeliveryReplay | undefined
  /**
   * With `inbox.transactional`: a client of `pg` in a transaction, which Hookline commits after the handlers, with the completion of the
   * message. A handler must not end it. It refuses queries after the end of the handlers. Undefined otherwise, and in a batch, which has it itself.
   */
  readonly db: TransactionClient | undefined
}

/** A client of `pg` in a transaction, as far as it is typed here. For a library, cast it to the `PoolClient` of `pg`. */
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
  /** When the message was handled before. */
  readonly handledAt: Date
  /** The names of the handlers that it is for; undefined for all. */
  readonly handlers: readonly string[] | undefined
}

/** The result of an element of a batch. */
export type ReceivedElement<M extends ReceivedMessage = ReceivedMessage> =
  | { readonly ok: true; readonly message: M; readonly delivery: Delivery }
  | { readonly ok: false; readonly error: HooklineError; readonly delivery: Delivery }

/** The named handlers of a message in an inbox: those that are done, and those that failed in the last attempt. The empty name stands for all without one. */
export interface HandlerNames {
  readonly done: readonly string[]
  readonly failed: readonly string[]
}
