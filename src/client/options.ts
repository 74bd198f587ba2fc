/** What createClient() can be told, checked once and loudly. */

import { type Clock, systemClock } from '../protocol/clock.ts'
import { CALL_LIMIT, FLUSH_AFTER_MS, FLUSH_AT } from '../protocol/limits.ts'
import {
  refuseUnknown,
  requireClock,
  requireFunction,
  requireText,
  requireUrl,
  requireWhole,
} from '../protocol/options.ts'
import type { DispatcherLike } from '../protocol/post.ts'
import type { RecordedCall } from './api.ts'
import type { DeliveryError } from './delivery-error.ts'

/** What becomes of a call when there is no room. */
export type WhenFull = 'throw' | 'drop-oldest' | 'drop-newest'

/** What `createClient` takes ("Go client library", Client settings). */
export interface ClientOptions {
  /** The full URL that batches are posted to, exactly as given: `https://analytics.example.com/v1/batch`. */
  readonly endpoint: string
  /** Messages per flush; 1 sends each on its own. Default 20. */
  readonly flushAt?: number
  /** Another name of `flushAt`. */
  readonly size?: number
  /** How long after the last flush the next one comes, in milliseconds. Default 5000. */
  readonly flushAfterMs?: number
  /** Most calls that are recorded and not delivered yet, those on their way included. Default 10 000. */
  readonly maxQueued?: number
  /** Most bytes of them, counted as JSON in UTF-8, at least the 32 KB of one call. Default 32 MiB. */
  readonly maxQueuedBytes?: number
  /**
   * What happens to a call when there is no room: `throw` has the method throw a HooklineError `queue_full`,
   * `drop-oldest` drops the calls that wait longest, `drop-newest` drops the new one; dropped calls are told to
   * `onError`. Default `throw`.
   */
  readonly whenFull?: WhenFull
  /** How often a batch is sent again, at most. Default 10, which takes two to five minutes; 0 never. */
  readonly maxRetries?: number
  /** Most batches on their way at once, those that wait for a retry included. Default 4. */
  readonly maxInFlight?: number
  /** How long one request may take, connecting included, in milliseconds. Default 10 000. */
  readonly timeoutMs?: number
  /**
   * Gets the calls that could not be delivered, and why. `flush` and `close` wait for what it returns, so it must not wait for
   * them. What it throws is printed. Default: a `console.warn`, at most one a second for calls that are dropped.
   */
  readonly onError?: (error: DeliveryError, calls: readonly RecordedCall[]) => unknown
  /** Sends the requests: any Dispatcher of undici, for instance a proxy's. `close` leaves it open. Default: a pool of its own. */
  readonly dispatcher?: DispatcherLike
  /** Where time comes from. Default: the machine's clock. */
  readonly clock?: Clock
  /** Spreads the retries: from 0 up to 1, as Math.random, which is the default. */
  readonly random?: () => number
}

/** The options of a client, complete and ready to use. */
export interface ClientSettings {
  readonly authorization: string
  readonly origin: string
  readonly path: string
  readonly flushAt: number
  readonly flushAfterMs: number
  readonly maxQueued: number
  readonly maxQueuedBytes: number
  readonly whenFull: WhenFull
  readonly maxRetries: number
  readonly maxInFlight: number
  readonly timeoutMs: number
  readonly onError: ClientOptions['onError']
  readonly dispatcher: DispatcherLike | undefined
  readonly clock: Clock
  readonly random: () => number
}

const KNOWN: readonly string[] = [
  'endpoint',
  'flushAt',
  'size',
  'flushAfterMs',
  'maxQueued',
  'maxQueuedBytes',
  'whenFull',
  'maxRetries',
  'maxInFlight',
  'timeoutMs',
  'onError',
  'dispatcher',
  'clock',
  'random',
] satisfies (keyof ClientOptions)[]

const WHEN_FULL: readonly unknown[] = ['throw', 'drop-oldest', 'drop-newest'] satisfies WhenFull[]

/**
 * Checks and completes the options.
 *
 * @throws TypeError that names the option.
 */
export function readOptions(writeKey: string | undefined, options: ClientOptions): ClientSettings {
  const authorization = readWriteKey(writeKey)
  if (typeof options !== 'object' || options === null) {
    throw new TypeError("createClient: give it options, at least { endpoint: 'https://…' }.")
  }
  refuseUnknown(options, KNOWN)
  const { clock = systemClock, random = Math.random, onError, whenFull = 'throw', dispatcher } = options
  const { flushAfterMs = FLUSH_AFTER_MS, timeoutMs = 10_000, maxRetries = 10, maxInFlight = 4 } = options
  const { maxQueued = 10_000, maxQueuedBytes = 32 * 1024 * 1024 } = options
  requireClock(clock)
  requireFunction('random', random)
  if (onError !== undefined) requireFunction('onError', onError)
  if (dispatcher !== undefined && typeof dispatcher?.dispatch !== 'function') {
    throw new TypeError('dispatcher: must be a Dispatcher of undici, with its function dispatch.')
  }
  if (!WHEN_FULL.includes(whenFull)) throw new TypeError(`whenFull: must be one of ${WHEN_FULL.join(', ')}.`)
  return {
    authorization,
    ...readEndpoint(options.endpoint),
    flushAt: readFlushAt(options, requireWhole('maxQueued', maxQueued, 1)),
    flushAfterMs: requireWhole('flushAfterMs', flushAfterMs, 1),
    maxQueued,
    maxQueuedBytes: requireWhole('maxQueuedBytes', maxQueuedBytes, CALL_LIMIT),
    whenFull,
    maxRetries: requireWhole('maxRetries', maxRetries, 0),
    maxInFlight: requireWhole('maxInFlight', maxInFlight, 1),
    timeoutMs: requireWhole('timeoutMs', timeoutMs, 1),
    onError,
    dispatcher,
    clock,
    random,
  }
}

/** Basic authentication: the write key as user name, and no password. A user name holds no colon (RFC 7617). */
function readWriteKey(writeKey: unknown): string {
  requireText('writeKey', writeKey)
  if (writeKey.includes(':')) throw new TypeError('writeKey: must hold no colon.')
  return `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}`
}

/** @throws TypeError that does not quote the URL: it may hold a token. */
function readEndpoint(endpoint: unknown): Pick<ClientSettings, 'origin' | 'path'> {
  if (endpoint === undefined) {
    throw new TypeError('endpoint: is missing. Give the full URL that batches are posted to, https://…/v1/batch.')
  }
  const url = requireUrl('endpoint', endpoint, 'The write key is what identifies the source.')
  return { origin: url.origin, path: url.pathname + url.search }
}

function readFlushAt({ flushAt, size }: ClientOptions, maxQueued: number): number {
  if (flushAt !== undefined && size !== undefined && flushAt !== size) {
    throw new TypeError('size: is another name of flushAt, and they differ. Give one of the two.')
  }
  const name = flushAt === undefined && size !== undefined ? 'size' : 'flushAt'
  const value = requireWhole(name, flushAt ?? size ?? Math.min(FLUSH_AT, maxQueued), 1)
  if (value > maxQueued) throw new TypeError(`${name}: must not be above maxQueued, which is ${maxQueued}.`)
  return value
}
