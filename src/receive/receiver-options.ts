/** The options of a receiver. They are checked once, and filled in with their defaults. */

import { POST_ONLY } from '../host/answer.ts'
import type { EndpointHeaders } from '../host/endpoint.ts'
import {
  aClock,
  anything,
  checkOptions,
  invalidOption,
  kindOf,
  type OptionChecks,
  requireBoolean,
  requireFunction,
  requireOneOf,
  whole,
} from '../kit/checks.ts'
import { type Clock, systemClock } from '../kit/clock.ts'
import type { Logger } from '../kit/log.ts'
import { createReport } from '../kit/report.ts'
import type { HooklineError } from '../protocol/error.ts'
import { BODY_LIMIT, DEADLINE_MS, ELEMENTS_LIMIT } from '../protocol/limits.ts'
import type { Queue } from '../store/queue-types.ts'
import type { Dedupe } from './dedupe.ts'
import { type ReceiverDedupeOptions, readDedupe } from './deduplication.ts'
import type { DeliveryMethod } from './delivery.ts'
import type { FailedRequest } from './events.ts'
import { type InboxOptions, readInboxOptions } from './inbox-options.ts'
import { type CustomOption, createValidate, type EventSchemas, type TraitSchemas } from './schema.ts'
import { type HeaderKey, readSecret, type SecretProvider, type Secrets, type SourceSecrets } from './secrets.ts'
import type { DeadLetterMessage } from './stored-message.ts'
import { Tap } from './tap.ts'
import { createUnplanned, type OnUnplanned } from './unplanned.ts'

/** The options of `createReceiver`. Pass `secret`, `header`, or `allowUnsigned: true`. */
export interface ReceiverOptions<
  // biome-ignore lint/complexity/noBannedTypes: the empty object means that there are no schemas
  Events extends EventSchemas = {},
  // biome-ignore lint/complexity/noBannedTypes: the empty object means that there are no schemas
  Traits extends TraitSchemas = {},
  Custom extends CustomOption = undefined,
  Strict extends boolean = boolean,
> {
  /**
   * The shared secret of the destination; or a list of secrets while one replaces another; or a function that returns the secret: it is
   * called on the first request, and its result is cached for up to 5 minutes; or, for many sources, an object with a function that names
   * the source of a request and one that returns the secret of a source. Undefined is allowed so that `process.env.X` compiles, but a
   * missing or empty secret throws a TypeError.
   */
  readonly secret?: Secrets | SecretProvider | SourceSecrets | undefined
  /**
   * A header with a secret value that the sender adds to each request, for senders that cannot sign. The header does not protect against a
   * body that is changed in transit, or against a request that is sent again. Cannot be combined with `secret`.
   */
  readonly header?: HeaderKey
  /** Accepts messages from anyone, without checking a signature. Cannot be combined with `secret`. Default false. */
  readonly allowUnsigned?: boolean
  /** Schemas of track properties, by event name. Any schema that implements Standard Schema works. */
  readonly events?: Events
  /**
   * Allows handlers for events in `events` only: `on('track', event, …)` for any other event does not compile, and throws. Needs `events`.
   * Messages of other events are still received. Default false.
   */
  readonly strictEvents?: Strict
  /**
   * Schemas of the traits of `identify` and `group` messages. A message of an audience sync carries only one trait, so do not require the
   * others.
   */
  readonly traits?: Traits
  /**
   * Also accepts JSON that is not one of the seven message types, from senders whose users choose the body. Handlers of `'custom'` get it
   * as `body`. Pass `true`, or a schema for the JSON. JSON that names one of the seven types is never a custom message, even when it is
   * invalid. Default false: such JSON is refused with `message_type_unknown`.
   */
  readonly custom?: Custom
  /**
   * The request methods to accept: `POST`, `PUT`, `PATCH`, `DELETE`. A signature does not cover the method: anyone who has seen a signed
   * request can send it again with another method. Default `['POST']`.
   */
  readonly methods?: readonly DeliveryMethod[]
  /** The maximum size of a body, in bytes. Default 512 KiB. */
  readonly limit?: number
  /**
   * Also accepts batches: bodies that are JSON arrays of messages. The signature must cover the whole body. Default false: an array is
   * refused with `body_not_json`.
   */
  readonly batches?: boolean
  /** The maximum number of elements in a batch. Default 1000. A batch must also fit into `limit`. */
  readonly batchLimit?: number
  /** How long after its arrival an unfinished request is answered 503, in milliseconds. Default 4500, because the sender waits 5000. */
  readonly deadlineMs?: number
  /**
   * Stores each message durably, answers, and handles it afterwards, with retries. Pass a queue that only this inbox uses, or an object
   * with that queue and more options. Call `start` to handle messages. An authentic message that is invalid is also stored and answered
   * 200: it becomes a dead letter.
   */
  readonly inbox?: Queue | InboxOptions
  /**
   * Handles a message only once, however often it arrives, in a receiver without an inbox. A copy of a message that was handled is
   * answered with 200, a copy of one that is still being handled with 503 `duplicate_in_progress`.
   */
  readonly dedupe?: Dedupe | ReceiverDedupeOptions
  /**
   * Receives each authentic message that is invalid or does not match its schema, so that you can store it: the sender will not send it
   * again. Awaited within the deadline; when it throws, the answer is 500 and the sender retries. Cannot be combined with an inbox, which
   * stores such messages itself. Also receives `source_unknown`, for a request from a source without a secret. That call gets no body,
   * because the body is not authentic. It is not awaited, and does not change the answer.
   */
  readonly onRejected?: OnRejected
  /**
   * Receives every error: once for each request, and again for a handler that fails after the deadline. With an inbox, it also receives the
   * error of each failed attempt, without `remoteAddress`. Not awaited. Default: prints a line for each error; see `logger`.
   */
  readonly onError?: (error: HooklineError, request: FailedRequest) => unknown
  /**
   * Receives each message that becomes a dead letter, so that you can raise an alarm. Not awaited. Called once for each message, or again
   * if the process dies before the queue has recorded the dead letter.
   */
  readonly onDeadLetter?: (letter: DeadLetterMessage) => unknown
  /**
   * Receives each authentic track message whose event has no schema in `events`, when it arrives. Not awaited. `count` is the number of
   * messages of the same event since the receiver was created. Event names beyond the first 1000, and those with more than 200 characters,
   * share one count.
   */
  readonly onUnplanned?: OnUnplanned
  /**
   * Receives the log lines about errors. Pass pino, or any object with the same methods. Default: the console, which gets at most a few
   * lines per minute for each code; with `onError`, nothing is logged unless you pass `console` here.
   */
  readonly logger?: Logger
  /** Where time comes from. Default: the machine's clock. */
  readonly clock?: Clock
}

/** An authentic message that is invalid or does not match its schema; or a request from an unknown source. */
export interface RejectedMessage {
  /**
   * The exact bytes of the body, whose signature was checked; for an element of a batch, the element written as JSON again. Empty for
   * `source_unknown`.
   */
  readonly bytes: Uint8Array
  /** The headers of the request, with names in lower case. */
  readonly headers: EndpointHeaders
  /** The path that the endpoint saw. */
  readonly path: string | undefined
  /** The source of the message, when the receiver has several sources. */
  readonly source: string | undefined
}

/** Receives a {@link RejectedMessage}. */
export type OnRejected = (error: HooklineError, message: RejectedMessage) => unknown

export type ReceiverSettings = ReturnType<typeof readOptions>

const CHECKS: OptionChecks<ReceiverOptions> = {
  secret: anything,
  header: anything,
  allowUnsigned: anything,
  events: anything,
  strictEvents: requireBoolean,
  traits: anything,
  custom: anything,
  methods: requireDeliveryMethods,
  limit: whole(1),
  batches: requireBoolean,
  batchLimit: whole(1),
  deadlineMs: whole(1),
  inbox: anything,
  dedupe: anything,
  onRejected: requireFunction,
  onError: anything,
  onDeadLetter: requireFunction,
  onUnplanned: requireFunction,
  logger: anything,
  clock: aClock,
}

const METHODS: readonly DeliveryMethod[] = ['POST', 'PUT', 'PATCH', 'DELETE']

export function readOptions(options: ReceiverOptions) {
  if (typeof options !== 'object' || options === null) {
    throw invalidOption('createReceiver: options', 'must be an object', kindOf(options), 'Pass at least { secret }.')
  }
  checkOptions('createReceiver', options, CHECKS)
  const { clock = systemClock, onRejected, onDeadLetter, onUnplanned, events, inbox, dedupe } = options
  if (inbox !== undefined && onRejected !== undefined) {
    const advice = 'Remove `onRejected`: the inbox keeps invalid messages as dead letters.'
    throw invalidOption('onRejected', 'cannot be combined with `inbox`', undefined, advice)
  }
  if (inbox !== undefined && dedupe !== undefined) {
    const advice = 'Remove `dedupe`: the inbox already handles each message only once.'
    throw invalidOption('dedupe', 'cannot be combined with `inbox`', undefined, advice)
  }
  if (onDeadLetter !== undefined && inbox === undefined) {
    throw invalidOption('onDeadLetter', 'needs an `inbox`', undefined, 'Pass a queue as `inbox`.')
  }
  for (const name of ['onUnplanned', 'strictEvents'] as const) {
    if (events !== undefined || !options[name]) continue
    throw invalidOption(name, 'needs `events`', undefined, 'Pass schemas by event name as `events`.')
  }
  const { report, log } = createReport<FailedRequest>(options, clock)
  const tap = new Tap(report, onDeadLetter, clock)
  return {
    findKeys: readSecret(options, clock),
    headerName: options.header?.name.toLowerCase(),
    validate: createValidate(events, options.traits, options.custom),
    strictEvents: options.strictEvents ?? false,
    takesCustom: options.custom !== undefined && options.custom !== false,
    methods: options.methods ?? POST_ONLY,
    limit: options.limit ?? BODY_LIMIT,
    batches: options.batches ?? false,
    batchLimit: options.batchLimit ?? ELEMENTS_LIMIT,
    deadlineMs: options.deadlineMs ?? DEADLINE_MS,
    inbox: inbox === undefined ? undefined : readInboxOptions(inbox, clock),
    dedupe: dedupe === undefined ? undefined : readDedupe(dedupe),
    onRejected,
    unplanned: events && createUnplanned(events, onUnplanned, tap),
    tap,
    log,
    clock,
  }
}

function requireDeliveryMethods(name: string, methods: unknown): void {
  if (!Array.isArray(methods) || methods.length === 0) {
    throw invalidOption(
      name,
      'must be a non-empty list of methods',
      kindOf(methods),
      "Pass, for example, ['POST', 'PUT'].",
    )
  }
  for (const [index, method] of methods.entries()) requireOneOf(`${name}[${index}]`, method, METHODS)
}
