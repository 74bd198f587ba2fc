/** The options of createSender(), checked once. */

import type { ConnectionOptions } from 'node:tls'
import {
  aClock,
  anything,
  invalidOption,
  isToken,
  type OptionChecks,
  requireBoolean,
  requireSecret,
  show,
  whole,
} from '../kit/checks.ts'
import { type Clock, systemClock } from '../kit/clock.ts'
import type { DispatcherLike } from '../kit/post.ts'
import { readCertificates, requireDispatcher } from '../kit/transport-options.ts'
import { RESPONSE_TIME_MS, USER_AGENT } from '../protocol/limits.ts'
import { createKeys, type Key } from '../protocol/signature.ts'
import { readWebhooks, type Target, type Webhook } from './webhooks.ts'

/** Options of `createSender`. */
export interface SenderOptions {
  /** One to five URLs ("Outbound event delivery", Destination settings). Every message is posted to each URL. */
  readonly webhooks: readonly Webhook[]
  /**
   * The secret that signs every request, in the header `X-Signature` ("Outbound event delivery", Authentication). Omit it to send
   * unsigned requests. The type admits undefined so that `process.env.X` compiles; a secret that is undefined or empty throws a
   * TypeError.
   */
  readonly sharedSecret?: string | undefined
  /** The product token of the header `User-Agent`. Default `Hookline`, which sends `Hookline/1.0`. */
  readonly userAgent?: string
  /** The timeout of an attempt, including connecting, in milliseconds: at most 5000. Default 5000. */
  readonly timeoutMs?: number
  /**
   * How long each address of a host may take to accept a connection before the next address is tried, in milliseconds:
   * 10 to 5000, within `timeoutMs`. The last address gets the remaining time. Default: a fifth of `timeoutMs`, so 1000
   * for the default timeout. With this value, a slow link that needs more than 250 ms, the default of Node.js, still
   * connects. Time also remains after four addresses that do not respond, such as those of a broken IPv6 network.
   */
  readonly addressTimeoutMs?: number
  /** Certificates of a private authority (PEM), trusted instead of the public authorities. */
  readonly ca?: NonNullable<ConnectionOptions['ca']>
  /** Whether to connect to private, loopback and other special addresses. Default true; pass false for URLs that strangers choose. */
  readonly allowPrivateAddresses?: boolean
  /**
   * An undici Dispatcher that sends the requests, for example a `ProxyAgent`. It opens its own connections and verifies certificates
   * itself, unless `NODE_TLS_REJECT_UNAUTHORIZED` turns verification off. `close` leaves the dispatcher open. Default: up to 128
   * connections to each origin.
   */
  readonly dispatcher?: DispatcherLike
  /** The source of time. Default: the system clock. */
  readonly clock?: Clock
}

export interface SenderSettings {
  readonly targets: readonly Target[]
  readonly key: Key | undefined
  readonly userAgent: string
  readonly timeoutMs: number
  readonly addressTimeoutMs: number | undefined
  readonly connections: number
  readonly ca: readonly string[] | undefined
  readonly allowPrivateAddresses: boolean
  readonly dispatcher: DispatcherLike | undefined
  readonly clock: Clock
}

/** The maximum number of connections to one origin. Further attempts wait, and their timeouts begin only when they start. */
const CONNECTIONS = 128

export const SENDER_CHECKS: OptionChecks<SenderOptions> = {
  webhooks: anything,
  sharedSecret: anything,
  userAgent: requireProduct,
  timeoutMs: whole(1, RESPONSE_TIME_MS),
  addressTimeoutMs: whole(10, RESPONSE_TIME_MS), // Node.js raises lower values to 10.
  ca: anything,
  allowPrivateAddresses: requireBoolean,
  dispatcher: anything,
  clock: aClock,
}

function requireProduct(name: string, value: unknown): void {
  if (isToken(value)) return
  const advice = "Pass a name without a version, for example 'Hookline'."
  throw invalidOption(name, 'must be a product token', show(value), advice)
}

/** @param options Options that {@link SENDER_CHECKS} has checked. */
export function readSenderOptions(options: SenderOptions): SenderSettings {
  const { userAgent, timeoutMs = RESPONSE_TIME_MS, allowPrivateAddresses = true } = options
  const { ca, dispatcher, addressTimeoutMs, clock = systemClock } = options
  requireDispatcher(dispatcher, {
    ca: ca !== undefined,
    addressTimeoutMs: addressTimeoutMs !== undefined,
    'allowPrivateAddresses: false': !allowPrivateAddresses,
  })
  return {
    targets: readWebhooks(options.webhooks),
    // An undefined secret is an error, because it usually comes from an environment variable that is not set.
    key: 'sharedSecret' in options ? readKey(options.sharedSecret, 'omit the option') : undefined,
    userAgent: userAgent === undefined ? USER_AGENT : `${userAgent}/1.0`,
    timeoutMs,
    addressTimeoutMs,
    connections: CONNECTIONS,
    ca: readCertificates(ca),
    allowPrivateAddresses,
    dispatcher,
    clock,
  }
}

/** @param unsigned The advice in the error text for unsigned requests, such as `omit the option`. */
export function readKey(sharedSecret: unknown, unsigned: string): Key | undefined {
  requireSecret('sharedSecret', sharedSecret, `the secret, or ${unsigned} to send unsigned requests`)
  return createKeys(sharedSecret)[0]
}
