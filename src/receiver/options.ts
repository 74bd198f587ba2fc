/** What a receiver can be told, checked once and loudly. */

import type { Dedupe } from '../dedupe/dedupe.ts'
import { type Clock, systemClock } from '../protocol/clock.ts'
import type { EndpointHeaders } from '../protocol/endpoint.ts'
import type { HooklineError } from '../protocol/error.ts'
import { BODY_LIMIT, DEADLINE_MS } from '../protocol/limits.ts'
import { refuseUnknown, requireBoolean, requireClock, requireFunction, requireWhole } from '../protocol/options.ts'
import { printOurFaults } from '../protocol/report.ts'
import type { Queue } from '../queues/queue.ts'
import { type InboxOptions, type InboxSettings, readInboxOptions } from './inbox-options.ts'
import { type ReceiverDedupeOptions, readDedupe } from './once.ts'
import { createShape, type EventSchemas, type Shape, type TraitSchemas } from './schema.ts'
import { createMatchSecret, type MatchSecret, type SecretProvider, type Secrets } from './secrets.ts'

/** An authentic message that could not be used. */
export interface RejectedMessage {
  /** The exact bytes of the body; their signature was checked. */
  readonly bytes: Uint8Array
  /** The headers of the request, names in lower case. */
  readonly headers: EndpointHeaders
}

/** The request that an error is about. Holds no body: it may not be authentic. */
export interface FailedRequest {
  /** The headers of the request, names in lower case. */
  readonly headers: EndpointHeaders
  /** The address of the connection, where the host knows it. */
  readonly remoteAddress: string | undefined
}

/** What `createReceiver` takes. Give `secret`, or `allowUnsigned: true`. */
export interface ReceiverOptions<
  // biome-ignore lint/complexity/noBannedTypes: no schemas is the empty object
  Events extends EventSchemas = {},
  // biome-ignore lint/complexity/noBannedTypes: no schemas is the empty object
  Traits extends TraitSchemas = {},
> {
  /**
   * The shared secret of the destination; several while one replaces another; or a function that gets it, asked on the
   * first request and then kept for up to 5 minutes. The type admits undefined so that `process.env.X` compiles;
   * a missing or empty secret is a TypeError.
   */
  readonly secret?: Secrets | SecretProvider | undefined
  /** Accept messages without looking at a signature, from anybody. Default false; not together with `secret`. */
  readonly allowUnsigned?: boolean
  /** Schemas of track properties by event name: any that speak Standard Schema. */
  readonly events?: Events
  /** Schemas of the traits of `identify` and `group` messages; an audience sync carries one trait only. */
  readonly traits?: Traits
  /** Most bytes of a body. Default 512 KiB. */
  readonly limit?: number
  /** When the sender is told to come back, in milliseconds after the request arrived. Default 4500, of the sender's 5000. */
  readonly deadlineMs?: number
  /**
   * Stores each message durably, answers, and hands it to the handlers then, with retries: a queue of its own, or that and
   * how to work on it. Call `start` to work on it. An authentic message that cannot be used is stored too, and answered
   * 200: it goes to the dead.
   */
  readonly inbox?: Queue | InboxOptions
  /**
   * Without an inbox: hands a message to the handlers once, however often it comes. A copy of one that was handled is
   * answered 200; of one that is being handled, 503 `duplicate_in_progress`.
   */
  readonly dedupe?: Dedupe | ReceiverDedupeOptions
  /**
   * Gets an authentic message that could not be used, with its bytes, to store it: the sender will not send it again.
   * Awaited inside the deadline; when it throws, the answer is 500 and the sender comes back.
   * Not beside an inbox, which keeps such messages itself.
   */
  readonly onRejected?: (error: HooklineError, message: RejectedMessage) => unknown
  /**
   * Sees every error, once for each request, and again for a handler that fails after the deadline. With an inbox also
   * each attempt that fails; `remoteAddress` is not known then. Not awaited.
   * Default: `console.error` for the 5xx ones but `shutting_down`.
   */
  readonly onError?: (error: HooklineError, request: FailedRequest) => unknown
  /** Where time comes from. Default: the machine's clock. */
  readonly clock?: Clock
}

/** The options of a receiver, complete and ready to use. */
export interface ReceiverSettings {
  readonly matchSecret: MatchSecret | undefined
  readonly shape: Shape
  readonly limit: number
  readonly deadlineMs: number
  readonly inbox: InboxSettings | undefined
  readonly dedupe: ReceiverDedupeOptions | undefined
  readonly onRejected: ReceiverOptions['onRejected']
  readonly onError: NonNullable<ReceiverOptions['onError']>
  readonly clock: Clock
}

const KNOWN = [
  'secret',
  'allowUnsigned',
  'events',
  'traits',
  'limit',
  'deadlineMs',
  'inbox',
  'dedupe',
  'onRejected',
  'onError',
  'clock',
] as const satisfies (keyof ReceiverOptions)[]

/**
 * Checks and completes the options.
 *
 * @throws TypeError that names the option.
 */
export function readOptions(options: ReceiverOptions): ReceiverSettings {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError('createReceiver: give it options, at least { secret }.')
  }
  refuseUnknown(options, KNOWN)
  const { clock = systemClock, onRejected, onError = printOurFaults } = options
  const { limit = BODY_LIMIT, deadlineMs = DEADLINE_MS, inbox, dedupe } = options
  if (onRejected !== undefined) requireFunction('onRejected', onRejected)
  if (inbox !== undefined && onRejected !== undefined) {
    throw new TypeError('onRejected: not beside an inbox, which keeps what cannot be used: see receiver.dead().')
  }
  if (inbox !== undefined && dedupe !== undefined) {
    throw new TypeError('dedupe: not beside an inbox, which tells duplicates itself.')
  }
  requireFunction('onError', onError)
  requireClock(clock)
  return {
    matchSecret: readSecret(options, clock),
    shape: createShape(options.events, options.traits),
    limit: requireWhole('limit', limit, 1),
    deadlineMs: requireWhole('deadlineMs', deadlineMs, 1),
    inbox: inbox === undefined ? undefined : readInboxOptions(inbox),
    dedupe: dedupe === undefined ? undefined : readDedupe(dedupe),
    onRejected,
    onError,
    clock,
  }
}

function readSecret({ secret, allowUnsigned = false }: ReceiverOptions, clock: Clock): MatchSecret | undefined {
  requireBoolean('allowUnsigned', allowUnsigned)
  if (!allowUnsigned) return createMatchSecret(secret, clock)
  if (secret !== undefined) throw new TypeError('allowUnsigned: cannot be true beside a secret. Give one of the two.')
  return undefined
}
