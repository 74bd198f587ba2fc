/** Reads the options of a client: checks them once and completes them. */

import type { ConnectionOptions } from 'node:tls'
import {
  aClock,
  anything,
  checkOptions,
  invalidOption,
  type OptionChecks,
  requireFunction,
  requireOneOf,
  requireSecret,
  requireUrl,
  show,
  warnIfMisread,
  whole,
} from '../kit/checks.ts'
import { type Clock, systemClock } from '../kit/clock.ts'
import { createLog, type Log, type Logger } from '../kit/log.ts'
import type { DispatcherLike } from '../kit/post.ts'
import { readCertificates, requireDispatcher } from '../kit/transport-options.ts'
import { CALL_LIMIT, FLUSH_AFTER_MS, FLUSH_AT } from '../protocol/limits.ts'
import type { BatchError } from './batch-result.ts'
import type { RecordedCall } from './client-types.ts'

const WHEN_FULL: readonly WhenFull[] = ['throw', 'drop_oldest']

/** How a client records a call while its buffer is full. */
export type WhenFull = 'throw' | 'drop_oldest'

/** Options of `createClient` ("Go client library", Client settings). */
export interface ClientOptions {
  /** The full URL that batches are posted to, exactly as given: `https://analytics.example.com/v1/batch`. */
  readonly endpoint: string
  /** Calls per batch; 1 posts each call alone. Default 20. */
  readonly flushAt?: number
  /** Another name of `flushAt`. */
  readonly size?: number
  /** Time from one flush to the next, in milliseconds. Default 5000. */
  readonly flushAfterMs?: number
  /** Most calls that are recorded and not delivered yet, those being posted included. Default 10 000. */
  readonly maxQueued?: number
  /** Most bytes of those calls, as JSON in UTF-8, at least the 32 KB of one call. Default 32 MiB. */
  readonly maxQueuedBytes?: number
  /**
   * Decides what a method does while the buffer is full. `throw`: it throws a HooklineError `queue_full`. `drop_oldest`: it drops the
   * oldest waiting calls, or the new one when all are being posted; `onError` gets them. Default `throw`.
   */
  readonly whenFull?: WhenFull
  /** Most retries of a batch. Default 10, which take two to five minutes. */
  readonly maxRetries?: number
  /** Most batches that are posted at once, those waiting for a retry included. Default 4. */
  readonly maxInFlight?: number
  /** Timeout of one request, connecting included, in milliseconds. Default 10 000. */
  readonly timeoutMs?: number
  /**
   * Is called with the calls that could not be delivered, and the reason. `flush` and `close` wait for the promise that it
   * returns, so it must not wait for them. When it fails, the process emits a warning. Default: prints how many calls, and the
   * reason, see `logger`.
   */
  readonly onError?: (error: BatchError, calls: readonly RecordedCall[]) => unknown
  /**
   * Receives the lines about calls that could not be delivered: pino, or any object of its shape. Default: the console, at most
   * a few lines of each reason a minute; with `onError` nothing, unless `console` is passed here.
   */
  readonly logger?: Logger
  /** Certificates of a private authority (PEM), trusted instead of the public ones. */
  readonly ca?: NonNullable<ConnectionOptions['ca']>
  /**
   * Posts the requests: any Dispatcher of undici, for example a ProxyAgent. It verifies certificates itself, as far as the
   * environment allows it; `close` leaves it open. Default: a pool of its own.
   */
  readonly dispatcher?: DispatcherLike
  /** The source of time. Default: the system's clock. */
  readonly clock?: Clock
  /** Spreads the retries: returns a number from 0 to below 1. Default: Math.random. */
  readonly random?: () => number
}

export interface ClientSettings
  extends Required<Omit<ClientOptions, 'endpoint' | 'size' | 'onError' | 'logger' | 'dispatcher' | 'ca'>> {
  readonly authorization: string
  readonly origin: string
  readonly path: string
  readonly onError: ClientOptions['onError']
  readonly log: Log
  readonly ca: readonly string[] | undefined
  readonly dispatcher: DispatcherLike | undefined
}

const CHECKS: OptionChecks<ClientOptions> = {
  endpoint: anything,
  flushAt: whole(1),
  size: whole(1),
  flushAfterMs: whole(1),
  maxQueued: whole(1),
  maxQueuedBytes: whole(CALL_LIMIT),
  whenFull: (name, value) => requireOneOf(name, value, WHEN_FULL),
  maxRetries: whole(0),
  maxInFlight: whole(1),
  timeoutMs: whole(1),
  onError: requireFunction,
  logger: anything,
  ca: anything,
  dispatcher: anything,
  clock: aClock,
  random: requireFunction,
}

export function readOptions(writeKey: string | undefined, options: ClientOptions): ClientSettings {
  const authorization = readAuthorization(writeKey)
  checkOptions('createClient', options, CHECKS)
  const { clock = systemClock, random = Math.random, onError, logger, dispatcher, ca, maxQueued = 10_000 } = options
  requireDispatcher(dispatcher, { ca: ca !== undefined })
  return {
    authorization,
    ...readEndpoint(options.endpoint),
    flushAt: readFlushAt(options, maxQueued),
    flushAfterMs: options.flushAfterMs ?? FLUSH_AFTER_MS,
    maxQueued,
    maxQueuedBytes: options.maxQueuedBytes ?? 32 * 1024 * 1024,
    whenFull: options.whenFull ?? 'throw',
    maxRetries: options.maxRetries ?? 10,
    maxInFlight: options.maxInFlight ?? 4,
    timeoutMs: options.timeoutMs ?? 10_000,
    onError,
    log: createLog(logger, onError, clock),
    ca: readCertificates(ca),
    dispatcher,
    clock,
    random,
  }
}

/** Makes the header of Basic authentication: the write key is the user name, which has no colon (RFC 7617); the password is empty. */
function readAuthorization(writeKey: unknown): string {
  requireSecret('writeKey', writeKey, 'the write key of the source')
  warnIfMisread('writeKey', writeKey)
  if (writeKey.includes(':')) {
    throw invalidOption('writeKey', 'must not contain a colon', undefined, 'Pass only the write key of the source.')
  }
  return `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}`
}

const ENDPOINT = 'https://analytics.example.com/v1/batch'

function readEndpoint(endpoint: unknown): Pick<ClientSettings, 'origin' | 'path'> {
  if (endpoint === undefined) {
    const advice = `Pass the full URL that batches are posted to, for example '${ENDPOINT}'.`
    throw invalidOption('endpoint', 'is required', 'undefined', advice)
  }
  const url = requireUrl('endpoint', endpoint, 'Remove them: the write key identifies the source.', ENDPOINT)
  return { origin: url.origin, path: url.pathname + url.search }
}

function readFlushAt({ flushAt, size }: ClientOptions, maxQueued: number): number {
  if (flushAt !== undefined && size !== undefined && flushAt !== size) {
    throw invalidOption('size', 'must equal `flushAt`, which has the same meaning', show(size), 'Pass one of the two.')
  }
  const value = flushAt ?? size ?? Math.min(FLUSH_AT, maxQueued)
  if (value <= maxQueued) return value
  const rule = `must be at most \`maxQueued\`, which is ${maxQueued}`
  throw invalidOption(flushAt === undefined ? 'size' : 'flushAt', rule, show(value), 'Lower it, or raise `maxQueued`.')
}
