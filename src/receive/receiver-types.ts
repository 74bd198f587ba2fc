/** The types of a receiver. */

import type { Endpoint, EndpointAnswer, EndpointHeaders, EndpointRequest } from '../host/endpoint.ts'
import type { HooklineError } from '../protocol/error.ts'
import type {
  GroupMessage,
  IdentifyMessage,
  Message,
  MessageType,
  ReceivedMessage,
  TrackMessage,
} from '../protocol/message.ts'
import type { Health } from '../store/health.ts'
import type { LetterCount } from '../store/letters.ts'
import type { DeadLetterFilter, DeadLetterPage, Forgotten } from '../store/queue-types.ts'
import type { Delivery, ReceivedElement } from './delivery.ts'
import type { ReceiverObserver } from './events.ts'
import type { AudienceHandlers } from './handlers.ts'
import type { HandledMessage, HistoryFilter, Replay, ReplayOptions } from './history.ts'
import type { DeadLetterReason } from './inbox-state.ts'
import type { BatchHandler, BatchOptions } from './message-batches.ts'
import type { CustomOf, CustomOption, EventName, EventSchemas, SchemaOutput, TraitSchemas } from './schema.ts'
import type { Handler, HandlerOptions } from './selection.ts'
import type { DeadLetterMessage, InboxLetterFilter, StoredMessage } from './stored-message.ts'
import type { ReceiverWorkOptions, WorkResult } from './work.ts'

/** Web `Headers`, or an object with names in any case, as from node:http or a function's event. */
export type HeadersLike = EndpointHeaders | Iterable<readonly [string, string]>

/**
 * The result of a request, which is also its answer: return it to the host as it is. With an inbox, `ok` means that the
 * message is stored; an invalid message is stored and answered 200, and is still an error.
 *
 * The result of a batch: `ok` means that each element is ok. `message` and `delivery` are those of the first element, `error` is the one
 * that makes the sender retry, or the first one. An invalid element alone is answered 200.
 */
export type Received<M extends ReceivedMessage = ReceivedMessage> = EndpointAnswer & {
  /** One for each element, in their order; undefined for a message that arrived alone, and for a batch that was refused as a whole. */
  readonly elements?: readonly ReceivedElement<M>[]
} & (
    | { readonly ok: true; readonly message: M; readonly delivery: Delivery }
    | { readonly ok: false; readonly error: HooklineError }
  )

/** The parts of a request beside its body and headers. */
export interface ReceiveOptions {
  /** Its path, from which `secret.source` may name the source. Default `/`. */
  readonly path?: string | undefined
  /** Its query, without `?`. Default: none. */
  readonly query?: string | undefined
}

/** Whose messages to forget. */
export interface ForgetOptions {
  /** Forgets messages of this source alone, when a receiver has several: two sources may use the same ids. Default: all sources. */
  readonly source?: string | undefined
  /**
   * Drops messages of these users for so long, in milliseconds: those that arrive, are redriven or are replayed. They are answered 200, and
   * complete without a handler. It outlives the process, and other processes know it within 2 seconds. 0 ends it. Needs a queue with
   * marks, such as those of Hookline. Default: messages that arrive are handled.
   */
  readonly suppressForMs?: number | undefined
}

/** How to close a receiver. */
export interface ReceiverCloseOptions {
  /** How long requests and handlers under way may still take, in milliseconds; requests at least 300. Default 10 000. */
  readonly graceMs?: number
}

/** The message of a type, with the output of its schema. */
export type MessageOfType<
  Type extends ReceivedMessage['type'] | '*',
  Traits extends TraitSchemas,
  Custom = undefined,
> = Type extends '*'
  ? MessageOfType<TypeOf<Custom>, Traits, Custom>
  : Type extends 'identify'
    ? IdentifyMessage<SchemaOutput<Traits['identify']>>
    : Type extends 'group'
      ? GroupMessage<SchemaOutput<Traits['group']>>
      : Type extends 'custom'
        ? CustomOf<Custom>
        : Extract<Message, { type: Type }>

/** The types that a receiver has handlers for. */
export type TypeOf<Custom> = MessageType | CustomOf<Custom>['type']

/** The track message of an event, with the output of its schema; of several events a union, which narrows on `event`. */
export type TrackOf<Event extends string, Events extends EventSchemas> = Event extends string
  ? TrackMessage<Event, Event extends keyof Events ? SchemaOutput<Events[Event]> : SchemaOutput<undefined>>
  : never

/**
 * The message that a handler of a receiver gets, for handlers in other files.
 *
 * @example
 * type OrderCompleted = MessageOf<typeof receiver, 'track', 'Order Completed'>
 */
export type MessageOf<AReceiver extends Receiver, Type extends ReceivedMessage['type'], Event extends string = never> =
  AReceiver extends Receiver<infer Events, infer Traits, infer Custom>
    ? [Event] extends [never]
      ? MessageOfType<Type, Traits, Custom>
      : Type extends 'track'
        ? TrackOf<Event, Events>
        : never
    : never

/** The health of a receiver and its inbox. */
export interface ReceiverHealth extends Health {
  /** Whether this process was told to {@link Receiver.pause}. It changes no status: requests are stored meanwhile. */
  readonly paused: boolean
  /** How many messages no handler of this process matched, since the receiver was created. */
  readonly ignored: number
  /** How many authentic track messages had an event without a schema, since the receiver was created; 0 without `events`. */
  readonly unplanned: number
  /** How many messages of users who stay forgotten this process has dropped, since the receiver was created. */
  readonly suppressed: number
}

/**
 * Receives messages: mount it with an adapter's `serve`, or call `receive` yourself. Without type arguments it stands for any
 * receiver, whatever its schemas; handlers that are registered on it get fields of unknown values.
 */
export interface Receiver<
  // biome-ignore lint/suspicious/noExplicitAny: the one argument that stands for all schemas
  Events extends EventSchemas = any,
  // biome-ignore lint/suspicious/noExplicitAny: the same
  Traits extends TraitSchemas = any,
  // biome-ignore lint/suspicious/noExplicitAny: the same
  Custom extends CustomOption = any,
> extends Endpoint {
  /** Calls `handler` for the track messages of one event; their properties are the output of its schema. */
  on<const Event extends EventName<Events>>(
    type: 'track',
    event: Event,
    handler: Handler<TrackOf<Event, Events>>,
    options?: HandlerOptions,
  ): Receiver<Events, Traits, Custom>
  /**
   * Calls `handler` for every message of a type, of any of a list of types, or, for `'*'`, of all types. All handlers of a message
   * run, at the same time; when one fails, the message is retried and all run again. A message that no handler matches is not
   * wanted: it is answered 200, and completed in an inbox.
   *
   * @throws TypeError for anything but the seven types and, with the option, `custom`; and after {@link start} for a type, event or audience that never had
   *   a handler, because its messages may be completed already.
   */
  on<const Type extends `${TypeOf<Custom>}` | '*'>(
    type: Type | readonly Type[],
    handler: Handler<MessageOfType<Type, Traits, Custom>>,
    options?: HandlerOptions,
  ): Receiver<Events, Traits, Custom>

  /**
   * Calls `handler` with many track messages of one event at a time, so that for example one INSERT writes many rows. Needs an inbox.
   *
   * @throws TypeError without an inbox, after {@link start}, for a wrong option, and, with `inbox.transactional`, when
   *   another handler may get one of its messages.
   * @example
   * receiver.onBatch('track', 'Order Completed', (messages) => insert(messages.map(({ properties }) => properties)))
   */
  onBatch<const Event extends EventName<Events>>(
    type: 'track',
    event: Event,
    handler: BatchHandler<TrackOf<Event, Events>>,
    options?: BatchOptions,
  ): Receiver<Events, Traits, Custom>
  /** Calls `handler` with many messages of a type, of any of a list of types, or, for `'*'`, of all types, at a time. */
  onBatch<const Type extends `${TypeOf<Custom>}` | '*'>(
    type: Type | readonly Type[],
    handler: BatchHandler<MessageOfType<Type, Traits, Custom>>,
    options?: BatchOptions,
  ): Receiver<Events, Traits, Custom>

  /** Removes what `on` or `onBatch` registered with the same arguments. */
  off(
    type: TypeOf<Custom> | readonly TypeOf<Custom>[] | '*',
    handler: Handler<never> | BatchHandler<never>,
  ): Receiver<Events, Traits, Custom>
  /** Removes what `on` or `onBatch` registered with the same arguments. */
  off(type: 'track', event: string, handler: Handler<never> | BatchHandler<never>): Receiver<Events, Traits, Custom>

  /**
   * Calls `entered` and `exited` when a user enters or leaves an audience: an `identify` whose snake_case trait is true
   * or false ("Outbound event delivery", Audience and computed-trait delivery), or a track named `Audience Entered` or
   * `Audience Exited` with that `audience_key`. The first sync of an audience calls `entered` for each of its users.
   *
   * @param name The name of the audience (`High Value Users`) or its trait (`high_value_users`).
   */
  onAudience(
    name: string,
    handlers: AudienceHandlers<MessageOfType<'identify', Traits> | TrackMessage>,
    options?: HandlerOptions,
  ): Receiver<Events, Traits, Custom>

  /**
   * Verifies, parses and dispatches one message, or a batch, without any framework. Never rejects because of what was sent.
   *
   * @param bytes The exact bytes of the body.
   * @param headers The headers of the request; `X-Signature` is the one that counts, its name in any case.
   * @throws TypeError (as a rejection) when `bytes` are not bytes or `headers` no headers, and for an unknown option.
   */
  receive(
    bytes: Uint8Array,
    headers: HeadersLike,
    options?: ReceiveOptions,
  ): Promise<Received<Message | CustomOf<Custom>>>

  /** Answers a request of any host. Adapters call it. */
  handle(request: EndpointRequest): Promise<Received<Message | CustomOf<Custom>>>

  /**
   * Starts handling the messages of the inbox. Register the handlers first.
   *
   * @throws TypeError without an inbox or a handler, when called twice, and after {@link close}.
   */
  start(): void

  /**
   * Handles messages of the inbox for some time, in a process that does not stay: from a scheduled function or job, or after an answer. At the
   * end, `delivery.signal` of the handlers that still run fires, and their messages are released for another attempt. That takes a second at
   * most. It can be called again, one call at a time.
   *
   * @throws TypeError (as a rejection) for a wrong option or none, without an inbox or a handler, beside {@link start}, while another call is
   *   under way, and after {@link close}. HooklineError `queue_unavailable` when the queue fails. When the receiver is closed meanwhile, handlers get the
   *   grace of that, and it is `shutting_down` when the messages cannot be counted any more.
   * @example
   * const { left } = await receiver.work({ forMs: 50_000, until: 'empty' })
   */
  work(options: ReceiverWorkOptions): Promise<WorkResult>

  /**
   * Stops handling messages of the inbox in this process until {@link resume}; requests are stored meanwhile, and other processes go on.
   * Resolves when no handler runs any more, or when `resume` is called. Do not await it in a handler: it would wait for itself. Before
   * {@link start}, that handles nothing until `resume`.
   *
   * @throws TypeError (as a rejection) without an inbox.
   */
  pause(): Promise<void>
  /** Handles messages again after {@link pause}. @throws TypeError without an inbox. */
  resume(): void

  /**
   * Lists the dead letters of the inbox, the oldest first. Like {@link redrive}, {@link drop} and {@link forget} it rejects with
   * the error of the queue, and with a TypeError without an inbox.
   */
  deadLetters(page?: DeadLetterPage & InboxLetterFilter): Promise<readonly DeadLetterMessage[]>
  /** Handles dead letters again, as if they had just arrived: by their ids, all, or by a filter. Returns how many. */
  redrive(which: readonly string[] | 'all' | InboxLetterFilter): Promise<number>
  /** Counts the dead letters that a redrive would handle again, and changes nothing. */
  redrive(
    which: readonly string[] | 'all' | InboxLetterFilter,
    options: { readonly dryRun: true },
  ): Promise<LetterCount>
  /** Deletes dead letters: by their ids, all, or by a filter. Returns how many. */
  drop(which: readonly string[] | 'all' | (DeadLetterFilter<DeadLetterReason> & InboxLetterFilter)): Promise<number>
  /**
   * Lists the messages that were handled, the oldest first, some at a time as they are read. What is handled meanwhile may be among
   * them. The first step rejects with a TypeError without `inbox.history`, and for a wrong filter.
   *
   * @example
   * for await (const { message, handledAt } of receiver.history({ userId: 'user-1' })) console.log(handledAt, message)
   */
  history(filter?: HistoryFilter): AsyncIterable<HandledMessage>
  /**
   * Gives copies of messages that were handled to the handlers: all, or those that match. Resolves when they wait for a process that
   * handles them. New messages go first: while any are late, the replay waits. A copy has an id of its own, `delivery.replay` tells it from
   * a new message, and it is not in the history again.
   *
   * @throws TypeError (as a rejection) without `inbox.history`, and for a wrong option. HooklineError `queue_full`.
   * @example
   * await receiver.replay({ id: 'fix-42', since: new Date('2026-11-20'), handlers: ['crm'], dryRun: true })
   */
  replay(options?: ReplayOptions): Promise<Replay>
  /**
   * Deletes what the inbox stores of a user: messages that wait, the history and dead letters, whose `userId`, `anonymousId` or, of an alias,
   * previous id is one of these. Keeps `delete` messages, which carry the request. Reads every stored message once.
   *
   * A message that is being handled at that moment is left to its handlers, and counted as `active`: when they fail it waits
   * again, and when they succeed it may be in the history, so call `forget` again until `active` is 0.
   */
  forget(ids: string | readonly string[], options?: ForgetOptions): Promise<Forgotten>

  /**
   * Calls the methods of `observer` with what happens at this one receiver; the diagnostics channels are for all receivers of the
   * process, and hold no bodies of refused requests. There may be several observers. Returns what removes this one.
   *
   * @throws TypeError that names the method, for one that is no function and for an unknown name.
   */
  observe(observer: ReceiverObserver): () => void

  /** Reads the health of the receiver and its inbox. Never rejects, and takes a second at most. */
  health(): Promise<ReceiverHealth>

  /**
   * Closes the receiver: answers every later request 503 with `Retry-After`. As long as the grace lasts, waits until all earlier requests are
   * answered, then for the handlers of the inbox or of claimed messages; then their `signal` fires, and their messages are
   * released for another attempt. Closes the inbox or the store of `dedupe`; with an engine that does not answer, that takes up to
   * a second more, and requests that wait for it are answered 503. Do not await it in a handler: it would wait for itself.
   * Closing again waits for the same end.
   *
   * @returns The messages that would be lost with the process: none unless the inbox is in memory.
   */
  close(options?: ReceiverCloseOptions): Promise<readonly StoredMessage[]>
}
