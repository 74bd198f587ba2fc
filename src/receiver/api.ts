/** What createReceiver() gives: types only. */

import type { Endpoint, EndpointAnswer, EndpointHeaders, EndpointRequest } from '../protocol/endpoint.ts'
import type { HooklineError } from '../protocol/error.ts'
import type { GroupMessage, IdentifyMessage, Message, MessageType, TrackMessage } from '../protocol/message.ts'
import type { DeadPage } from '../queues/queue.ts'
import type { Delivery } from './delivery.ts'
import type { AudienceHandlers, Handler } from './handlers.ts'
import type { HeadersLike } from './headers.ts'
import type { Health } from './health.ts'
import type { DeadReason, KeptError } from './history.ts'
import type { EventSchemas, SchemaOutput, TraitSchemas } from './schema.ts'

/**
 * What became of a request: also the answer to give, so it can be returned to a host as it is. With an inbox, `ok` is
 * that the message is stored; one that cannot be used is stored and answered 200, and yet it is an error.
 */
export type Received =
  | (EndpointAnswer & { readonly ok: true; readonly message: Message; readonly delivery: Delivery })
  | (EndpointAnswer & { readonly ok: false; readonly error: HooklineError })

/** A message as the inbox keeps it. */
export interface StoredMessage {
  /** Its id in the queue. */
  readonly id: string
  /** The exact bytes of the body; of what cannot be read, all there is. */
  readonly bytes: Uint8Array
  /** The headers of the request, names in lower case, without those whose names say that they hold a secret. */
  readonly headers: EndpointHeaders
  /** When the request arrived; undefined when that cannot be read. */
  readonly receivedAt: Date | undefined
}

/** A message that was given up. */
export interface DeadMessage extends StoredMessage {
  /** Before any schema; undefined when it is none. */
  readonly message: Message | undefined
  readonly reason: DeadReason
  /** The latest error. */
  readonly error: KeptError
  /** How often it was tried. */
  readonly attempts: number
  readonly diedAt: Date
}

/** How to close a receiver. */
export interface ReceiverCloseOptions {
  /** How long handlers of messages from the inbox, and of claimed ones, may still take, in milliseconds. Default 10 000. */
  readonly graceMs?: number
}

/** The message of a type, in the shape its schema gives it. */
export type MessageOf<Type extends MessageType, Traits extends TraitSchemas> = Type extends 'identify'
  ? IdentifyMessage<SchemaOutput<Traits['identify']>>
  : Type extends 'group'
    ? GroupMessage<SchemaOutput<Traits['group']>>
    : Extract<Message, { type: Type }>

/** The track message of an event, in the shape its schema gives it. */
export type TrackOf<Event extends string, Events extends EventSchemas> = TrackMessage<
  Event,
  Event extends keyof Events ? SchemaOutput<Events[Event]> : SchemaOutput<undefined>
>

/** Receives messages: mount it with an adapter's `serve`, or call `receive` yourself. */
// biome-ignore lint/complexity/noBannedTypes: no schemas is the empty object
export interface Receiver<Events extends EventSchemas = {}, Traits extends TraitSchemas = {}> extends Endpoint {
  /**
   * Calls `handler` for every message of a type, or of any of a list of types. Handlers of one message run at the same
   * time and all of them run; when one fails the sender is told to come back, and all run again.
   *
   * @throws TypeError for a type that is none of the seven.
   */
  on<const Type extends MessageType>(
    type: Type | readonly Type[],
    handler: Handler<MessageOf<Type, Traits>>,
  ): Receiver<Events, Traits>
  /** Calls `handler` for every message, whatever its type. */
  on(type: '*', handler: Handler<MessageOf<MessageType, Traits>>): Receiver<Events, Traits>
  /** Calls `handler` for the track messages of one event; its properties are what the schema of the event puts out. */
  on<const Event extends (keyof Events & string) | (string & {})>(
    type: 'track',
    event: Event,
    handler: Handler<TrackOf<Event, Events>>,
  ): Receiver<Events, Traits>

  /** Takes back what `on` with the same arguments did. */
  off(type: MessageType | readonly MessageType[] | '*', handler: Handler<never>): Receiver<Events, Traits>
  /** Takes back what `on` with the same arguments did. */
  off(type: 'track', event: string, handler: Handler<never>): Receiver<Events, Traits>

  /**
   * Calls `entered` and `exited` when a user enters or leaves an audience: an `identify` whose snake_case trait is true
   * or false ("Outbound event delivery", Audience and computed-trait delivery), or a track named `Audience Entered` or
   * `Audience Exited` with that `audience_key`. The first sync of an audience calls `entered` for everybody in it.
   *
   * @param name Name of the audience (`High Value Users`) or its trait (`high_value_users`).
   */
  onAudience(
    name: string,
    handlers: AudienceHandlers<MessageOf<'identify', Traits> | TrackMessage>,
  ): Receiver<Events, Traits>

  /**
   * Verifies, parses and dispatches one message, without any framework. Never rejects for what was sent.
   *
   * @param bytes The exact bytes of the body.
   * @param headers The headers of the request; `x-signature` in any case is what matters.
   * @throws TypeError (as a rejection) when `bytes` are not bytes or `headers` no headers.
   */
  receive(bytes: Uint8Array, headers: HeadersLike): Promise<Received>

  /** Answers a request of any host; this is what adapters call. */
  handle(request: EndpointRequest): Promise<Received>

  /**
   * Begins to work on the inbox. Register the handlers before it.
   *
   * @throws TypeError without an inbox, when it works already, and after {@link close}.
   */
  start(): void

  /**
   * The messages of the inbox that were given up, the longest dead first. Rejects with what the queue rejects with, and
   * with a TypeError without an inbox, as {@link redrive} and {@link drop} do.
   */
  dead(page?: DeadPage): Promise<readonly DeadMessage[]>
  /** Handles dead messages anew, as if they had just come. Returns how many. */
  redrive(ids: readonly string[] | 'all'): Promise<number>
  /** Forgets dead messages. Returns how many. */
  drop(ids: readonly string[] | 'all'): Promise<number>

  /** How the receiver and its inbox are. Never rejects, and takes a second at most. */
  health(): Promise<Health>

  /**
   * From now on every request is answered 503 with `Retry-After`. Waits for the answers to all before it, and for the
   * handlers of the inbox, or of claimed messages, as long as the grace lasts; then their `signal` fires, and what they
   * were handed is handed out again. Closes the inbox or the store of `dedupe`. Awaited in a handler it would wait for
   * itself, until the deadline or the end of the grace. Closing again waits for the same end.
   *
   * @returns The messages that would be lost with the process: none unless the inbox is in memory.
   */
  close(options?: ReceiverCloseOptions): Promise<readonly StoredMessage[]>
}
