/** What createSender() can be told, checked once and loudly. */

import type { ConnectionOptions } from 'node:tls'
import { type Clock, systemClock } from '../protocol/clock.ts'
import { RESPONSE_TIME_MS } from '../protocol/limits.ts'
import type { DispatcherLike } from '../protocol/post.ts'
import { createKeys, type Key } from '../protocol/signature.ts'
import { readWebhooks, type Target, type Webhook } from './webhooks.ts'

/** What `createSender` takes. */
export interface SenderOptions {
  /** One to five URLs ("Outbound event delivery", Destination settings). Every message is posted to each. */
  readonly webhooks: readonly Webhook[]
  /** Signs every request when given, as `X-Signature` ("Outbound event delivery", Authentication). Leave it out to send unsigned. */
  readonly sharedSecret?: string
  /** Product token of the header `User-Agent`. Default `Hookline`, which makes it `Hookline/1.0`. */
  readonly userAgent?: string
  /** How long an endpoint may take to answer, connecting included, in milliseconds. Default and most: 5000. */
  readonly timeoutMs?: number
  /** Certificates of a private authority (PEM), trusted in place of the well-known ones. */
  readonly ca?: NonNullable<ConnectionOptions['ca']>
  /** Whether private, loopback and other special addresses may be reached. Default true; false for URLs of strangers. */
  readonly allowPrivateAddresses?: boolean
  /** Sends the requests: any Dispatcher of undici, for instance a proxy's. It is not closed by `close`. Default: pools of its own. */
  readonly dispatcher?: DispatcherLike
  /** Where time comes from. Default: the machine's clock. */
  readonly clock?: Clock
}

/** The options of a sender, complete and ready to use. */
export interface SenderSettings {
  readonly targets: readonly Target[]
  readonly key: Key | undefined
  readonly userAgent: string
  readonly timeoutMs: number
  readonly ca: ConnectionOptions['ca']
  readonly allowPrivateAddresses: boolean
  readonly dispatcher: DispatcherLike | undefined
  readonly clock: Clock
}

/** The names of the options. */
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

/**
 * Checks and completes the options.
 *
 * @throws TypeError that names the option.
 */
export function readSenderOptions(options: SenderOptions): SenderSettings {
  const { userAgent = 'Hookline', timeoutMs = RESPONSE_TIME_MS, allowPrivateAddresses = true } = options
  const { ca, dispatcher, clock = systemClock } = options
  if (typeof userAgent !== 'string' || !/^[\w!#$%&'*+.^`|~-]+$/.test(userAgent)) {
    throw new TypeError("userAgent: must be a product token without a version, for instance 'Hookline'.")
  }
  if (!Number.isInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > RESPONSE_TIME_MS) {
    throw new TypeError(`timeoutMs: must be a whole number from 1 to ${RESPONSE_TIME_MS}.`)
  }
  if (typeof allowPrivateAddresses !== 'boolean') throw new TypeError('allowPrivateAddresses: must be true or false.')
  if (dispatcher !== undefined && typeof dispatcher?.dispatch !== 'function') {
    throw new TypeError('dispatcher: must be a Dispatcher of undici, with its function dispatch.')
  }
  if (dispatcher !== undefined && (ca !== undefined || !allowPrivateAddresses)) {
    throw new TypeError('dispatcher: makes its own connections, so ca and allowPrivateAddresses are for it to know.')
  }
  for (const name of ['now', 'monotonic', 'setTimeout', 'clearTimeout'] as const) {
    if (typeof clock?.[name] !== 'function') throw new TypeError(`clock.${name}: must be a function.`)
  }
  return {
    targets: readWebhooks(options.webhooks),
    key: readKey(options),
    userAgent: `${userAgent}/1.0`,
    timeoutMs,
    ca,
    allowPrivateAddresses,
    dispatcher,
    clock,
  }
}

/** @throws TypeError for an option that does not exist. */
export function refuseUnknown(caller: string, options: object, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(`${caller}: give it options, at least { webhooks: [{ url }] }.`)
  }
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw new TypeError(`${name}: no such option. There are ${known.join(', ')}.`)
  }
}

/** A secret that is there and undefined is an unset variable, not the wish to send unsigned. */
function readKey(options: SenderOptions): Key | undefined {
  if (!('sharedSecret' in options)) return undefined
  const { sharedSecret } = options
  if (typeof sharedSecret !== 'string' || sharedSecret === '') {
    throw new TypeError('sharedSecret: must be a string that is not empty. Leave it out to send unsigned.')
  }
  return createKeys(sharedSecret)[0]
}
