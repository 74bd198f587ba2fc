/** The options of a receiver. They are checked once, and get their defaults. */

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
  // biome-ignore lint/complexity/noBannedTypes: no schemas is the empty object
  Events extends EventSchemas = {},
  // biome-ignore lint/complexity/noBannedTypes: no schemas is the empty object
  Traits extends TraitSchemas = {},
  Custom extends CustomOption = undefined,
  Strict extends boolean = boolean,
> {
  /**
   * The shared secret of the destination; several while one replaces another; a function that returns it, called on the
   * first request and then cached for up to 5 minutes; or such a function for each source of many, beside one that names the
   * source of a request. The type admits undefined so that `process.env.X` compiles; a missing or empty secret is a
   * TypeError.
   */
  readonly secret?: Secrets | SecretProvider | SourceSecrets | undefined
  /**
   * A header that the sender adds to each request, for senders that cannot sign. It does not protect from a body that was changed on the way,
   * nor from a request that is sent again. Not together with `secret`.
   */
  readonly header?: HeaderKey
  /** Accepts messages from anyone, without checking a signature. Default false; not together with `secret`. */
  readonly allowUnsigned?: boolean
  /** Schemas of track properties by event name: any that implement Standard Schema. */
  readonly events?: Events
  /**
   * Allows handlers for events in `events` only: `on('track', event, …)` for another event does not compile, and throws. Needs `events`.
   * Messages of other events are received as without it. Default false.
   */
  readonly strictEvents?: Strict
  /** Schemas of the traits of `identify` and `group` messages; an audience sync carries one trait only. */
  readonly traits?: Traits
  /**
   * Accepts any other JSON, too, from senders whose users choose the body: handlers of `'custom'` get it as `body`. `true`, or a schema of it.
   * JSON that names one of the seven types is no custom message, also when it is invalid. Default false: refused, `message_type_unknown`.
   */
  readonly custom?: Custom
  /**
   * The methods of the requests that it accepts: `POST`, `PUT`, `PATCH`, `DELETE`. A signature does not cover the method: whoever has seen a
   * signed request can send it again with another method. Default `['POST']`.
   */
  readonly methods?: readonly DeliveryMethod[]
  /** The most bytes of a body. Default 512 KiB. */
  readonly limit?: number
  /**
   * Accepts batches, too: bodies that are JSON arrays of messages. The signature must cover the whole body. Default false: an array is refused,
   * `body_not_json`.
   */
  readonly batches?: boolean
  /** The most elements of a batch. Default 1000. A batch has to fit into `limit`, too. */
  readonly batchLimit?: number
  /** When an unfinished request is answered 503, in milliseconds after it arrived. Default 4500, of the sender's 5000. */
  readonly deadlineMs?: number
  /**
   * Stores each message durably, answers, and handles it afterwards, with retries: a queue of its own, or that queue and more
   * options. Call `start` to handle messages. An authentic message that is invalid is stored too, and answered 200: it
   * becomes a dead letter.
   */
  readonly inbox?: Queue | InboxOptions
  /**
   * Handles a message once, however often it arrives, without an inbox. A copy of a handled message is answered 200. A copy of a
   * message that is being handled is answered 503 `duplicate_in_progress`.
   */
  readonly dedupe?: Dedupe | ReceiverDedupeOptions
  /**
   * Receives an authentic message that is invalid or does not match its schema, to store it: the sender will not send it
   * again. Awaited within the deadline; when it throws, the answer is 500 and the sender retries. Not together with an
   * inbox, which stores such messages itself. Also receives `source_unknown`, for a request of a source without a secret. That call has no
   * body, because the body is not authentic. It is not awaited, and changes no answer.
   */
  readonly onRejected?: OnRejected
  /**
   * Receives every error: once for each request, and again for a handler that fails after the deadline. With an inbox also
   * each failed attempt, then without `remoteAddress`. Not awaited. Default: prints a line for each, see `logger`.
   */
  readonly onError?: (error: HooklineError, request: FailedRequest) => unknown
  /**
   * Receives each dead letter when it becomes one, for an alarm. Not awaited. Called once, or again when the process dies
   * before the queue has recorded it.
   */
  readonly onDeadLetter?: (letter: DeadLetterMessage) => unknown
  /**
   * Receives each authentic track message whose event has no schema in `events`, when it arrives. Not awaited. `count` is how many messages of
   * its event there have been since the receiver was created. Events after the first 1000, and those with more than 200 characters, share one
   * count.
   */
  readonly onUnplanned?: OnUnplanned
  /**
   * Receives the lines about errors: pino, or any object of its shape. Default: the console, at most a few lines of each code a
   * minute; with `onError` nothing, unless `console` is passed here.
   */
  readonly logger?: Logger
  /** Where time comes from. Default: the machine's clock. */
  readonly clock?: Clock
}

/** An authentic message that is invalid or does not match its schema; or a request of an unknown source. */
export interface RejectedMessage {
  /** The exact bytes of the body, whose signature was checked; of an element of a batch, its JSON, written anew. Empty for `source_unknown`. */
  readonly bytes: Uint8Array
  /** The headers of the request, names in lower case. */
  readonly headers: EndpointHeaders
  /** The path that the endpoint saw. */
  readonly path: string | undefined
  /** The source of the message, of a receiver with many. */
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
    const advice = 'Remove `onRejected`: the inbox makes such messages dead letters.'
    throw invalidOption('onRejected', 'cannot be combined with `inbox`', undefined, advice)
  }
  if (inbox !== undefined && dedupe !== undefined) {
    const advice = 'Remove `dedupe`: the inbox handles a message once by itself.'
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
    throw invalidOption(name, 'must be a list of methods', kindOf(methods), "Pass for example ['POST', 'PUT'].")
  }
  for (const [index, method] of methods.entries()) requireOneOf(`${name}[${index}]`, method, METHODS)
}
