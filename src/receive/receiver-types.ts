/** The public type of a receiver: its methods, their options and their results. */

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

/**
 * The headers of a request: web `Headers` or another iterable of names and values, or an object, such as the `headers` of a node:http
 * request. The names may be in any case.
 */
export type HeadersLike = EndpointHeaders | Iterable<readonly [string, string]>

/**
 * The result of a request. It is also the answer: return it to the host unchanged. With an inbox, `ok: true` means that the message is
 * valid and stored. An authentic message that is invalid is also stored and answered 200, but its result has `ok: false`.
 *
 * With a batch, `ok: true` means that every element succeeded; `message` and `delivery` are then those of the first element. Otherwise,
 * `error` is the first error that makes the sender retry or, without such an error, the first error. A batch whose only errors are invalid
 * elements is answered 200.
 */
export type Received<M extends ReceivedMessage = ReceivedMessage> = EndpointAnswer & {
  /** One result for each element, in order; undefined for a message that arrived alone, and for a batch that was refused as a whole. */
  readonly elements?: readonly ReceivedElement<M>[]
} & (
    | { readonly ok: true; readonly message: M; readonly delivery: Delivery }
    | { readonly ok: false; readonly error: HooklineError }
  )

/** The parts of a request that `receive` accepts in addition to its body and its headers. */
export interface ReceiveOptions {
  /** The path of the request. `secret.source` may use it to determine the source. Default `/`. */
  readonly path?: string | undefined
  /** The query of the request, without the leading `?`. Default: an empty query. */
  readonly query?: string | undefined
}

/** The options of `forget`. */
export interface ForgetOptions {
  /** Limits `forget` to messages of this source, because two sources may use the same id for different users. Default: all sources. */
  readonly source?: string | undefined
  /**
   * How long to drop messages of these users that arrive later, are redriven or are replayed, in milliseconds. The
   * sender of such a message is answered 200, but no handler gets the message. The queue stores this setting, and all
   * of its processes apply it within 2 seconds. 0 ends an earlier setting. Needs a queue that has `marks`, as all
   * queues of Hookline do. Default: later messages are handled.
   */
  readonly suppressForMs?: number | undefined
}

/** The options of `close`. */
export interface ReceiverCloseOptions {
  /** How long requests and handlers in progress may continue, in milliseconds. Requests always get at least 300 ms. Default 10 000. */
  readonly graceMs?: number
}

/** The type of a message with the given `type`, after its schema was applied. For `'*'`, it is a union of all message types. */
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

/** The message types for which a receiver accepts handlers. They include `custom` if the receiver has that option. */
export type TypeOf<Custom> = MessageType | CustomOf<Custom>['type']

/**
 * The type of a track message of the given event, after its schema was applied. For several events, it is a union that narrows on `event`.
 */
export type TrackOf<Event extends string, Events extends EventSchemas> = Event extends string
  ? TrackMessage<Event, Event extends keyof Events ? SchemaOutput<Events[Event]> : SchemaOutput<undefined>>
  : never

/**
 * The type of the message that a handler of a receiver gets. Use it to declare handlers in other files.
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
  /**
   * Whether the handling of messages is paused, in this process by {@link Receiver.pause}, or in all processes by `inspectQueue().pause()`.
   * A pause does not change `status`, because messages are still stored.
   */
  readonly paused: boolean
  /** How many messages this process has ignored since the receiver was created, because no handler matched them. */
  readonly ignored: number
  /** How many authentic track messages whose event has no schema have arrived since the receiver was created; 0 without `events`. */
  readonly unplanned: number
  /** How many messages this process has dropped because of `suppressForMs` since the receiver was created. */
  readonly suppressed: number
}

/**
 * Receives messages. Mount it with an adapter's `serve`, or call `receive` yourself. Without type arguments, the type accepts a receiver
 * with any schemas, and the properties and traits that handlers get have no known types.
 */
export interface Receiver<
  // biome-ignore lint/suspicious/noExplicitAny: only `any` stands for all schemas
  Events extends EventSchemas = any,
  // biome-ignore lint/suspicious/noExplicitAny: only `any` stands for all schemas
  Traits extends TraitSchemas = any,
  // biome-ignore lint/suspicious/noExplicitAny: only `any` stands for all options
  Custom extends CustomOption = any,
> extends Endpoint {
  /** Calls `handler` for the track messages of one event. If the event has a schema, `message.properties` is the output of that schema. */
  on<const Event extends EventName<Events>>(
    type: 'track',
    event: Event,
    handler: Handler<TrackOf<Event, Events>>,
    options?: HandlerOptions,
  ): Receiver<Events, Traits, Custom>
  /**
   * Calls `handler` for every message of one type, of several types, or, with `'*'`, of all types. All handlers of a message run at the
   * same time. If one of them fails, the message is retried, and all of them run again, except named handlers of an inbox that have
   * succeeded. A message that no handler matches is ignored: it is answered 200 and, in an inbox, completed.
   *
   * @throws TypeError for a wrong argument, and for `'custom'` without the option `custom`. After {@link start}, also for a type, event or
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
   * @throws TypeError without an inbox, after {@link start}, and for a wrong option. With `inbox.transactional`, also if another handler
   *   matches some of the same messages.
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

  /** Removes the handler that `on` or `onBatch` registered for these types. */
  off(
    type: TypeOf<Custom> | readonly TypeOf<Custom>[] | '*',
    handler: Handler<never> | BatchHandler<never>,
  ): Receiver<Events, Traits, Custom>
  /** Removes the handler that `on` or `onBatch` registered for this event. */
  off(type: 'track', event: string, handler: Handler<never> | BatchHandler<never>): Receiver<Events, Traits, Custom>

  /**
   * Calls `entered` when a user enters an audience, and `exited` when a user leaves it. Two kinds of messages report this: an `identify` in
   * which the trait of the audience is true or false, and a track named `Audience Entered` or `Audience Exited` whose `audience_key` is
   * that trait. The trait is the name of the audience in snake_case ("Outbound event delivery", Audience and computed-trait delivery). The
   * first sync of an audience calls `entered` for each of its users.
   *
   * @param name The name of the audience (`High Value Users`) or its trait (`high_value_users`).
   */
  onAudience(
    name: string,
    handlers: AudienceHandlers<MessageOfType<'identify', Traits> | TrackMessage>,
    options?: HandlerOptions,
  ): Receiver<Events, Traits, Custom>

  /**
   * Verifies, parses and dispatches one message or a batch, without any framework. Never rejects because of what the sender sent.
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
   * @throws TypeError without an inbox or a handler, when called twice, and after {@link work} or {@link close}.
   */
  start(): void

  /**
   * Handles messages of the inbox for a limited time, in a process that does not keep running, such as a scheduled function. At the end,
   * `delivery.signal` aborts for the handlers that are still running, and their messages are released for another attempt. This release
   * takes at most a second. Call `work` again only after the previous call has ended.
   *
   * If the receiver is closed during the call, the handlers get the grace period of `close`.
   *
   * @throws TypeError (as a rejection) for missing or wrong options, without an inbox or a handler, after {@link start} or {@link close},
   *   and while another call is in progress. HooklineError `queue_unavailable` if the queue fails, or `shutting_down` if the receiver was
   *   closed and the messages that are left can no longer be counted.
   * @example
   * const { left } = await receiver.work({ forMs: 50_000, until: 'empty' })
   */
  work(options: ReceiverWorkOptions): Promise<WorkResult>

  /**
   * Stops handling messages of the inbox in this process until {@link resume} is called. Messages are still stored, and other processes
   * still handle them. Resolves when no handler is running any more, or when `resume` is called. Do not await `pause` in a handler: it
   * would wait for that handler. After a pause before {@link start}, no message is handled until `resume` is called.
   *
   * @throws TypeError (as a rejection) without an inbox.
   */
  pause(): Promise<void>
  /** Handles messages again after {@link pause}. @throws TypeError without an inbox. */
  resume(): void

  /**
   * Lists a page of the dead letters of the inbox, by default the 100 oldest. Like {@link redrive}, {@link drop} and {@link forget},
   * rejects with the error of the queue if the queue fails, and with a TypeError without an inbox.
   */
  deadLetters(page?: DeadLetterPage & InboxLetterFilter): Promise<readonly DeadLetterMessage[]>
  /**
   * Makes dead letters wait to be handled again: those with the given ids, all, or those that match a filter. Their attempts are counted
   * from 0 again, but named handlers that have succeeded do not run again. Returns the number of dead letters that it redrove.
   */
  redrive(which: readonly string[] | 'all' | InboxLetterFilter): Promise<number>
  /** Counts the dead letters that a call without `dryRun` would redrive, without changing anything. */
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
   * included. The first iteration rejects with a TypeError without `inbox.history`, and for a wrong filter.
   *
   * @example
   * for await (const { message, handledAt } of receiver.history({ userId: 'user-1' })) console.log(handledAt, message)
   */
  history(filter?: HistoryFilter): AsyncIterable<HandledMessage>
  /**
   * Handles messages of the history again: pushes copies of them to the queue. Copies all messages, or those that match the options.
   * Resolves when all copies are in the queue. New messages go first: the replay waits while any message has been due for 250 ms or longer.
   * A copy has an id of its own, and is not added to the history. `delivery.replay` tells a handler that a message is a copy.
   *
   * @throws TypeError (as a rejection) without `inbox.history`, and for a wrong option. HooklineError `queue_full` when the queue is full.
   * @example
   * await receiver.replay({ id: 'fix-42', since: new Date('2026-11-20'), handlers: ['crm'], dryRun: true })
   */
  replay(options?: ReplayOptions): Promise<Replay>
  /**
   * Deletes what the inbox stores about users: the waiting messages, the history and the dead letters whose `userId`, `anonymousId` or, for
   * an alias, previous id is one of `ids`. Keeps `delete` messages, because they carry the request to delete. Reads every stored message.
   *
   * A message that is being handled at that moment is left to its handlers, and counted as `active`. If they fail, the message waits again;
   * if they succeed, the message may be added to the history. Call `forget` again until `active` is 0.
   */
  forget(ids: string | readonly string[], options?: ForgetOptions): Promise<Forgotten>

  /**
   * Calls the methods of `observer` with the events of this receiver. The diagnostics channels, in contrast, carry the events of all
   * receivers of the process, without the bodies of refused requests. A receiver can have several observers. Returns a function that
   * removes this observer.
   *
   * @throws TypeError for a method that is unknown or is not a function.
   */
  observe(observer: ReceiverObserver): () => void

  /** Reads the health of the receiver and its inbox. Never rejects, and takes at most a second. */
  health(): Promise<ReceiverHealth>

  /**
   * Closes the receiver: every later request is answered 503 with `Retry-After`. During the grace period, `close` waits until all earlier
   * requests are answered, and then until the running handlers have ended. After the grace period, `delivery.signal` aborts for handlers of
   * the inbox that are still running, and their messages are released for another attempt. Then `close` closes the inbox, or the store of
   * `dedupe`. If the engine of the inbox does not respond, this takes up to a second longer, and requests that wait for the engine are
   * answered 503.
   *
   * Do not await `close` in a handler: it would wait for that handler. A second call waits for the first one.
   *
   * @returns The messages that would be lost when the process ends: none unless the inbox is in memory.
   */
  close(options?: ReceiverCloseOptions): Promise<readonly StoredMessage[]>
}
