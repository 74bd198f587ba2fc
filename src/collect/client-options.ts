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

/** The policy for a new call while the buffer of a client is full. */
export type WhenFull = 'throw' | 'drop_oldest'

/** Options of `createClient` ("Go client library", Client settings). */
export interface ClientOptions {
  /** The full URL that batches are posted to, such as `https://analytics.example.com/v1/batch`. The client adds no path. */
  readonly endpoint: string
  /**
   * The maximum number of calls in a batch. The client flushes when this many calls are waiting. Default 20, or
   * `maxQueued` if that is lower.
   */
  readonly flushAt?: number
  /** Another name for `flushAt`. */
  readonly size?: number
  /** The time from one flush to the next, in milliseconds. Default 5000. */
  readonly flushAfterMs?: number
  /** The maximum number of calls that are recorded but not yet delivered, including those being posted. Default 10 000. */
  readonly maxQueued?: number
  /**
   * The maximum size of the calls that are recorded but not yet delivered, in bytes of JSON in UTF-8. At least 32 768 (32 KiB), the maximum
   * size of one call. Default 33 554 432 (32 MiB).
   */
  readonly maxQueuedBytes?: number
  /**
   * Decides what a method does while the buffer is full. `throw`: it throws a HooklineError `queue_full`. `drop_oldest`: it drops the
   * oldest waiting calls, or the new call when all others are being posted, and passes the dropped calls to `onError`. Default `throw`.
   */
  readonly whenFull?: WhenFull
  /** The maximum number of retries of a batch. Default 10. The waits before ten retries take about two and a half minutes on average. */
  readonly maxRetries?: number
  /** The maximum number of batches to post at once, including those that wait for a retry. Default 4. */
  readonly maxInFlight?: number
  /** The timeout of one request, including connecting, in milliseconds. Default 10 000. */
  readonly timeoutMs?: number
  /**
   * Receives the calls that could not be delivered, and the reason. `flush` and `close` wait for the promise that the function returns, so
   * the function must not wait for `flush` or `close`. If the function throws or rejects, the process emits a warning. Default: prints the
   * number of calls and the reason (see `logger`).
   */
  readonly onError?: (error: BatchError, calls: readonly RecordedCall[]) => unknown
  /**
   * The logger for lines about calls that could not be delivered: pino, or any object with the same methods. Default: the console, with at
   * most six lines a minute for each reason; with `onError`, nothing is printed unless `console` is passed here.
   */
  readonly logger?: Logger
  /** Certificates of a private authority (PEM), trusted instead of the public authorities. */
  readonly ca?: NonNullable<ConnectionOptions['ca']>
  /**
   * An undici Dispatcher that posts the requests, for example a `ProxyAgent`. It verifies certificates itself, unless
   * `NODE_TLS_REJECT_UNAUTHORIZED` turns verification off. `close` leaves the dispatcher open. Default: the client's own connection pool.
   */
  readonly dispatcher?: DispatcherLike
  /** The source of time. Default: the system clock. */
  readonly clock?: Clock
  /** The source of randomness, which spreads the retries: returns a number of at least 0 and less than 1. Default: Math.random. */
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

/**
 * Creates the value of the header `Authorization` for Basic authentication. The user name is the write key, which must not contain a colon
 * (RFC 7617); the password is empty.
 */
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
