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

/** Web `Headers`, or an object with names in any case, such as the headers of node:http or those of a serverless function's event. */
export type HeadersLike = EndpointHeaders | Iterable<readonly [string, string]>

/**
 * The result of a request, which is also its answer: return it to the host as it is. With an inbox, `ok` means that the message is stored;
 * an invalid message is stored and answered 200, but is still an error.
 *
 * For a batch, `ok` means that every element is ok. `message` and `delivery` are those of the first element; `error` is the error that
 * makes the sender retry, or else the first one. A batch in which the only errors are invalid elements is answered 200.
 */
export type Received<M extends ReceivedMessage = ReceivedMessage> = EndpointAnswer & {
  /** One result for each element, in order; undefined for a message that arrived alone, and for a batch that was refused as a whole. */
  readonly elements?: readonly ReceivedElement<M>[]
} & (
    | { readonly ok: true; readonly message: M; readonly delivery: Delivery }
    | { readonly ok: false; readonly error: HooklineError }
  )

/** The parts of a request besides its body and headers. */
export interface ReceiveOptions {
  /** The path of the request. `secret.source` may use it to determine the source. Default `/`. */
  readonly path?: string | undefined
  /** The query of the request, without `?`. Default: none. */
  readonly query?: string | undefined
}

/** Which messages to forget, and for how long. */
export interface ForgetOptions {
  /** Forgets messages of this source only, when the receiver has several: two sources may use the same ids. Default: all sources. */
  readonly source?: string | undefined
  /**
   * How long to drop messages of these users that arrive, are redriven or are replayed, in milliseconds. A dropped message is answered 200,
   * and completed without a handler. The setting outlives the process, and other processes apply it within 2 seconds. 0 ends an earlier
   * setting. Needs a queue with marks, such as the queues of Hookline. Default: messages that arrive are handled.
   */
  readonly suppressForMs?: number | undefined
}

/** How to close a receiver. */
export interface ReceiverCloseOptions {
  /** How long requests and handlers in progress may still take, in milliseconds; requests always get at least 300. Default 10 000. */
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

/** The message types that the handlers of a receiver can be for. */
export type TypeOf<Custom> = MessageType | CustomOf<Custom>['type']

/** The track message of an event, with the output of its schema; for several events, a union that narrows on `event`. */
export type TrackOf<Event extends string, Events extends EventSchemas> = Event extends string
  ? TrackMessage<Event, Event extends keyof Events ? SchemaOutput<Events[Event]> : SchemaOutput<undefined>>
  : never

/**
 * The type of the message that a handler of a receiver gets. Use it for handlers in other files.
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
  /** Whether this process is paused: see {@link Receiver.pause}. A pause does not change the status: requests are still stored. */
  readonly paused: boolean
  /** How many messages matched no handler in this process since the receiver was created. */
  readonly ignored: number
  /** How many authentic track messages had an event without a schema since the receiver was created; 0 without `events`. */
  readonly unplanned: number
  /** How many messages this process has dropped because of `suppressForMs` since the receiver was created. */
  readonly suppressed: number
}

/**
 * Receives messages: mount it with an adapter's `serve`, or call `receive` yourself. Without type arguments, the type stands for any
 * receiver, whatever its schemas; handlers that are registered on it get fields with unknown values.
 */
export interface Receiver<
  // biome-ignore lint/suspicious/noExplicitAny: only `any` stands for all schemas
  Events extends EventSchemas = any,
  // biome-ignore lint/suspicious/noExplicitAny: only `any` stands for all schemas
  Traits extends TraitSchemas = any,
  // biome-ignore lint/suspicious/noExplicitAny: only `any` stands for all options
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
   * Calls `handler` for every message of one type, of several types, or, with `'*'`, of all types. All handlers of a message run at the
   * same time; when one fails, the message is retried and all of them run again. A message that no handler matches is ignored: it is
   * answered 200 and, in an inbox, completed.
   *
   * @throws TypeError for an unknown type, and for `'custom'` without the option `custom`. After {@link start}, also for a type, event or
   *   audience that had no handler at the start, because its messages may already be completed.
   */
  on<const Type extends `${TypeOf<Custom>}` | '*'>(
    type: Type | readonly Type[],
    handler: Handler<MessageOfType<Type, Traits, Custom>>,
    options?: HandlerOptions,
  ): Receiver<Events, Traits, Custom>

  /**
   * Calls `handler` with many track messages of one event at a time, so that, for example, one INSERT writes many rows. Needs an inbox.
   *
   * @throws TypeError without an inbox, after {@link start}, for a wrong option, and, with `inbox.transactional`, when another handler may
   *   get one of the same messages.
   * @example
   * receiver.onBatch('track', 'Order Completed', (messages) => insert(messages.map(({ properties }) => properties)))
   */
  onBatch<const Event extends EventName<Events>>(
    type: 'track',
    event: Event,
    handler: BatchHandler<TrackOf<Event, Events>>,
    options?: BatchOptions,
  ): Receiver<Events, Traits, Custom>
  /** Calls `handler` with many messages at a time: of one type, of several types, or, with `'*'`, of all types. */
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
   * Calls `entered` when a user enters an audience, and `exited` when a user leaves it. A message that reports this is an `identify` in
   * which the trait of the audience, in snake_case, is true or false ("Outbound event delivery", Audience and computed-trait delivery), or
   * a track named `Audience Entered` or `Audience Exited` with that trait as its `audience_key`. The first sync of an audience calls
   * `entered` for each of its users.
   *
   * @param name The name of the audience (`High Value Users`) or its trait (`high_value_users`).
   */
  onAudience(
    name: string,
    handlers: AudienceHandlers<MessageOfType<'identify', Traits> | TrackMessage>,
    options?: HandlerOptions,
  ): Receiver<Events, Traits, Custom>

  /**
   * Verifies, parses and dispatches one message, or a batch, without any framework. Does not reject, whatever the sender sent.
   *
   * @param bytes The exact bytes of the body.
   * @param headers The headers of the request, including `X-Signature`, with names in any case.
   * @throws TypeError (as a rejection) when `bytes` is not a `Uint8Array` or `headers` is not an object, and for an unknown option.
   */
  receive(
    bytes: Uint8Array,
    headers: HeadersLike,
    options?: ReceiveOptions,
  ): Promise<Received<Message | CustomOf<Custom>>>

  /** Answers a request from any host. Adapters call this method. */
  handle(request: EndpointRequest): Promise<Received<Message | CustomOf<Custom>>>

  /**
   * Starts handling the messages of the inbox. Register the handlers first.
   *
   * @throws TypeError without an inbox or a handler, when called twice, and after {@link close}.
   */
  start(): void

  /**
   * Handles messages of the inbox for a limited time, in a process that does not keep running: in a scheduled function or job, or after an
   * answer. At the end, `delivery.signal` fires for the handlers that are still running, and their messages are released for another
   * attempt. That takes a second at most. `work` can be called again once the previous call has ended.
   *
   * @throws TypeError (as a rejection) for missing or wrong options, without an inbox or a handler, when {@link start} was called, while
   *   another call is in progress, and after {@link close}. HooklineError `queue_unavailable` when the queue fails. When the receiver is
   *   closed during the call, handlers get the grace period of `close`, and the error is `shutting_down` if the messages can no longer be
   *   counted.
   * @example
   * const { left } = await receiver.work({ forMs: 50_000, until: 'empty' })
   */
  work(options: ReceiverWorkOptions): Promise<WorkResult>

  /**
   * Stops handling messages of the inbox in this process until {@link resume}; requests are still stored, and other processes continue.
   * Resolves when no handler is running any more, or when `resume` is called. Do not await it in a handler: it would wait for itself. If it
   * is called before {@link start}, nothing is handled until `resume`.
   *
   * @throws TypeError (as a rejection) without an inbox.
   */
  pause(): Promise<void>
  /** Handles messages again after {@link pause}. @throws TypeError without an inbox. */
  resume(): void

  /**
   * Lists the dead letters of the inbox, oldest first. Like {@link redrive}, {@link drop} and {@link forget}, it rejects with the error of
   * the queue, or with a TypeError without an inbox.
   */
  deadLetters(page?: DeadLetterPage & InboxLetterFilter): Promise<readonly DeadLetterMessage[]>
  /**
   * Handles dead letters again, as if they had just arrived: those with the given ids, all, or those that match a filter. Returns the
   * number of dead letters that it redrove.
   */
  redrive(which: readonly string[] | 'all' | InboxLetterFilter): Promise<number>
  /** Counts the dead letters that a redrive would handle again, without changing anything. */
  redrive(
    which: readonly string[] | 'all' | InboxLetterFilter,
    options: { readonly dryRun: true },
  ): Promise<LetterCount>
  /**
   * Deletes dead letters: those with the given ids, all, or those that match a filter. Returns the number of dead letters that it deleted.
   */
  drop(which: readonly string[] | 'all' | (DeadLetterFilter<DeadLetterReason> & InboxLetterFilter)): Promise<number>
  /**
   * Lists the messages that were handled, oldest first, and reads them in pages as you iterate. Messages that are handled meanwhile may be
   * included. The first step rejects with a TypeError without `inbox.history`, and for a wrong filter.
   *
   * @example
   * for await (const { message, handledAt } of receiver.history({ userId: 'user-1' })) console.log(handledAt, message)
   */
  history(filter?: HistoryFilter): AsyncIterable<HandledMessage>
  /**
   * Gives copies of handled messages to the handlers: of all messages, or of those that match the options. Resolves when all copies are in
   * the queue. New messages go first: while any of them is late, the replay waits. A copy has an id of its own, and is not added to the
   * history again. `delivery.replay` tells a handler that a message is a copy.
   *
   * @throws TypeError (as a rejection) without `inbox.history`, and for a wrong option. HooklineError `queue_full` when the queue is full.
   * @example
   * await receiver.replay({ id: 'fix-42', since: new Date('2026-11-20'), handlers: ['crm'], dryRun: true })
   */
  replay(options?: ReplayOptions): Promise<Replay>
  /**
   * Deletes what the inbox stores about users: the waiting messages, the history and the dead letters whose `userId`, `anonymousId` or, for
   * an alias, previous id is one of `ids`. Keeps `delete` messages, which carry the request to delete. Reads every stored message once.
   *
   * A message that is being handled at that moment is left to its handlers, and counted as `active`. When they fail, the message waits
   * again; when they succeed, it may be added to the history. Call `forget` again until `active` is 0.
   */
  forget(ids: string | readonly string[], options?: ForgetOptions): Promise<Forgotten>

  /**
   * Calls the methods of `observer` with the events of this receiver only; the diagnostics channels carry the events of all receivers of
   * the process, without the bodies of refused requests. There may be several observers. Returns a function that removes this one.
   *
   * @throws TypeError that names the method, when it is not a function or its name is unknown.
   */
  observe(observer: ReceiverObserver): () => void

  /** Reads the health of the receiver and its inbox. Never rejects, and takes a second at most. */
  health(): Promise<ReceiverHealth>

  /**
   * Closes the receiver: every later request is answered 503 with `Retry-After`. During the grace period, `close` waits until all earlier
   * requests are answered, then for the handlers of the inbox or of claimed messages. After that, their `signal` fires, and their messages
   * are released for another attempt. Then the inbox or the store of `dedupe` is closed; when its engine does not respond, that takes up to
   * a second more, and requests that wait for the engine are answered 503. Do not await `close` in a handler: it would wait for itself. A
   * second call waits for the first one.
   *
   * @returns The messages that would be lost with the process: none unless the inbox is in memory.
   */
  close(options?: ReceiverCloseOptions): Promise<readonly StoredMessage[]>
}
