/** The options of createSender(), checked once. */

import type { ConnectionOptions } from 'node:tls'
import type { DispatcherLike } from '../http/post.ts'
import { RESPONSE_TIME_MS, USER_AGENT } from '../message/limits.ts'
import {
  invalidOption,
  isToken,
  requireBoolean,
  requireClock,
  requireSecret,
  requireWhole,
  show,
} from '../options/checks.ts'
import { readCertificates, requireDispatcher } from '../options/transport.ts'
import { type Clock, systemClock } from '../time/clock.ts'
import { createSigner, type Signer } from './signer.ts'
import { readWebhooks, type Target, type Webhook } from './webhooks.ts'

/** Options of `createSender`. */
export interface SenderOptions {
  /** One to five URLs ("Outbound event delivery", Destination settings). Every message is posted to each. */
  readonly webhooks: readonly Webhook[]
  /**
   * Signs every request, as `X-Signature` ("Outbound event delivery", Authentication). Leave it out to send unsigned. The type
   * admits undefined so that `process.env.X` compiles; a secret that is given as undefined or empty is a TypeError.
   */
  readonly sharedSecret?: string | undefined
  /** The product token of the header `User-Agent`. Default `Hookline`, which sends `Hookline/1.0`. */
  readonly userAgent?: string
  /** The timeout of an attempt, connecting included, in milliseconds: at most 5000. Default 5000. */
  readonly timeoutMs?: number
  /** Certificates of a private authority (PEM), trusted instead of the public ones. */
  readonly ca?: NonNullable<ConnectionOptions['ca']>
  /** Whether to connect to private, loopback and other special addresses. Default true; pass false for URLs of strangers. */
  readonly allowPrivateAddresses?: boolean
  /**
   * A Dispatcher of undici that sends the requests, for example a `ProxyAgent`. It opens its own connections and verifies
   * certificates itself, as far as the environment allows it; `close` leaves it open. Default: up to 128 connections to each origin.
   */
  readonly dispatcher?: DispatcherLike
  /** The source of time. Default: the system clock. */
  readonly clock?: Clock
}

export interface SenderSettings {
  readonly targets: readonly Target[]
  readonly signer: Signer | undefined
  readonly userAgent: string
  readonly timeoutMs: number
  readonly connections: number
  readonly ca: readonly string[] | undefined
  readonly allowPrivateAddresses: boolean
  readonly dispatcher: DispatcherLike | undefined
  readonly clock: Clock
}

/** The most connections to one origin. Further attempts wait, and their timeout begins afterwards. */
const CONNECTIONS = 128

export const SENDER_OPTIONS = [
  'webhooks',
  'sharedSecret',
  'userAgent',
  'timeoutMs',
  'ca',
  'allowPrivateAddresses',
  'dispatcher',
  'clock',
] as const satisfies (keyof SenderOptions)[]

export function readSenderOptions(options: SenderOptions): SenderSettings {
  const { userAgent, timeoutMs = RESPONSE_TIME_MS, allowPrivateAddresses = true } = options
  const { ca, dispatcher, clock = systemClock } = options
  if (userAgent !== undefined && !isToken(userAgent)) {
    const advice = "Pass a name without a version, for example 'Hookline'."
    throw invalidOption('userAgent', 'must be a product token', show(userAgent), advice)
  }
  requireWhole('timeoutMs', timeoutMs, 1, RESPONSE_TIME_MS)
  requireBoolean('allowPrivateAddresses', allowPrivateAddresses)
  requireDispatcher(dispatcher, { ca: ca !== undefined, 'allowPrivateAddresses: false': !allowPrivateAddresses })
  requireClock(clock)
  return {
    targets: readWebhooks(options.webhooks),
    signer: readSigner(options),
    userAgent: userAgent === undefined ? USER_AGENT : `${userAgent}/1.0`,
    timeoutMs,
    connections: CONNECTIONS,
    ca: readCertificates(ca),
    allowPrivateAddresses,
    dispatcher,
    clock,
  }
}

/** An option that is present and undefined is an unset variable, not the wish to send unsigned. */
function readSigner(options: SenderOptions): Signer | undefined {
  if (!('sharedSecret' in options)) return undefined
  const { sharedSecret } = options
  requireSecret('sharedSecret', sharedSecret, 'the secret, or leave the option out to send unsigned')
  return createSigner(sharedSecret)
}
