/** Reads the options of a receiver: checks them, and fills in the defaults. */

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
   * The shared secret with which the sender signs each request. Pass a string, a list of secrets while one replaces another, or a function
   * that returns the secret. The function is called on the first request, and its result is cached for up to 5 minutes. For several
   * sources, pass an object: its `source` names the source of a request, and its `secrets` returns the secret of a source.
   *
   * The type allows undefined so that `process.env.X` compiles, but a missing or empty secret throws a TypeError.
   */
  readonly secret?: Secrets | SecretProvider | SourceSecrets | undefined
  /**
   * A header with a secret value that the sender adds to each request, for senders that cannot sign. Unlike a signature, the header does
   * not protect the body: whoever has seen the value can send any message. Cannot be combined with `secret` or `allowUnsigned`.
   */
  readonly header?: HeaderKey
  /** Accepts messages from anyone, without checking a signature. Cannot be combined with `secret` or `header`. Default false. */
  readonly allowUnsigned?: boolean
  /**
   * The schemas of track properties, by event name. Pass schemas of zod, valibot, arktype or another library that implements Standard
   * Schema.
   */
  readonly events?: Events
  /**
   * Allows handlers only for events that have a schema in `events`: `on('track', event, …)` with any other event does not compile, and
   * throws a TypeError. Messages of other events are still accepted. Needs `events`. Default false.
   */
  readonly strictEvents?: Strict
  /**
   * The schemas of the traits of `identify` and `group` messages. A message of an audience sync carries only one trait, so make the traits
   * optional.
   */
  readonly traits?: Traits
  /**
   * Accepts custom messages, too: JSON whose `type` is not one of the seven message types, for senders whose users
   * choose the body. Handlers for `'custom'` get the JSON as `message.body`. Pass `true`, or a schema for the JSON.
   * JSON with one of the seven types is never a custom message, even if it is invalid. Default false: other JSON is
   * refused.
   */
  readonly custom?: Custom
  /**
   * The request methods to accept: any of `POST`, `PUT`, `PATCH` and `DELETE`. A signature does not cover the method: anyone who has seen a
   * signed request can send it again with another method. Default `['POST']`.
   */
  readonly methods?: readonly DeliveryMethod[]
  /** The maximum size of a body, in bytes. Default 524 288 (512 KiB). */
  readonly limit?: number
  /**
   * Accepts batches, too: bodies that are JSON arrays of messages. The signature must cover the whole body. Default false: an array is
   * refused with `body_not_json` or, with the option `custom`, is one custom message.
   */
  readonly batches?: boolean
  /** The maximum number of elements in a batch. Default 1000. A batch must also fit into `limit`. */
  readonly batchLimit?: number
  /**
   * The maximum time until a request is answered, in milliseconds. A request that takes longer is answered 503. Default 4500, because the
   * sender waits 5000 ms.
   */
  readonly deadlineMs?: number
  /**
   * Stores each message in a queue, answers the request, and then handles the message, with retries. Pass a queue that only this inbox
   * uses, or an object with that queue and more options. Call `start` to handle messages. An authentic message that is invalid is also
   * stored and answered 200, and becomes a dead letter.
   */
  readonly inbox?: Queue | InboxOptions
  /**
   * Handles a message only once, even if it arrives again within the dedupe window of the store. A copy of a message that was handled is
   * answered 200. A copy of a message that is still being handled is answered 503 `duplicate_in_progress`. Cannot be combined with `inbox`,
   * which handles each message only once anyway.
   */
  readonly dedupe?: Dedupe | ReceiverDedupeOptions
  /**
   * Receives each authentic message that is invalid or does not match its schema, so that you can store it: the sender will not send it
   * again. The function is awaited within the deadline. If it throws, the request is answered 500, and the sender retries. Cannot be
   * combined with `inbox`, which stores such messages itself.
   *
   * The function also receives the error `source_unknown` of a request from a source without a secret. That call gets no body, because the
   * body is not authentic. It is not awaited, and does not change the answer.
   */
  readonly onRejected?: OnRejected
  /**
   * Receives the error of each request or batch element that is refused or fails, and of each handler that fails after
   * the deadline. With an inbox, the function also receives the error of each failed attempt; `request` then has no
   * path and no `remoteAddress`. The function is not awaited. Default: errors are logged; see `logger`.
   */
  readonly onError?: (error: HooklineError, request: FailedRequest) => unknown
  /**
   * Receives each message that becomes a dead letter, so that you can raise an alarm. The function is called once for each such message,
   * and again if the process dies before the queue has recorded the dead letter. It is not awaited.
   */
  readonly onDeadLetter?: (letter: DeadLetterMessage) => unknown
  /**
   * Receives each authentic track message whose event has no schema in `events`, when the message arrives. The function is not awaited.
   * `count` is the number of messages of the same event since the receiver was created. Event names after the first 1000, and names with
   * more than 200 characters, share one count.
   */
  readonly onUnplanned?: OnUnplanned
  /**
   * Receives the log lines about errors: per minute and error code, at most 5 different lines and a line that counts the others. Pass pino,
   * or any object with the methods `error`, `warn` and `info`. Default: the console or, with `onError`, no log.
   */
  readonly logger?: Logger
  /** The source of the time. Default: the clock of the machine. */
  readonly clock?: Clock
}

/** An authentic message that is invalid or does not match its schema, or a request from a source without a secret. */
export interface RejectedMessage {
  /**
   * The exact bytes of the body, which are authentic. For an element of a batch, these are the bytes of the element, serialised again as
   * JSON. Empty for `source_unknown`.
   */
  readonly bytes: Uint8Array
  /** The headers of the request, with names in lower case. */
  readonly headers: EndpointHeaders
  /** The path of the request, relative to where the endpoint is mounted; undefined if `receive` was called without a path. */
  readonly path: string | undefined
  /** The source of the message, if the receiver has several sources; undefined otherwise, and for `source_unknown`. */
  readonly source: string | undefined
}

/** The function that is passed as `onRejected`. It may return a promise. */
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
    const advice = 'Pass an object with the option `secret`.'
    throw invalidOption('createReceiver: options', 'must be an object', kindOf(options), advice)
  }
  checkOptions('createReceiver', options, CHECKS)
  const { clock = systemClock, onRejected, onDeadLetter, onUnplanned, events, inbox, dedupe } = options
  if (inbox !== undefined && onRejected !== undefined) {
    const advice = 'Remove `onRejected`, because the inbox keeps invalid messages as dead letters.'
    throw invalidOption('onRejected', 'cannot be combined with `inbox`', undefined, advice)
  }
  if (inbox !== undefined && dedupe !== undefined) {
    const advice = 'Remove `dedupe`, because the inbox already handles each message only once.'
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
      'must be a non-empty list of request methods',
      kindOf(methods),
      "Pass, for example, ['POST', 'PUT'].",
    )
  }
  for (const [index, method] of methods.entries()) requireOneOf(`${name}[${index}]`, method, METHODS)
}
