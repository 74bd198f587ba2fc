/** What createSender() can be told, checked once and loudly. */

import { X509Certificate } from 'node:crypto'
import type { ConnectionOptions } from 'node:tls'
import { type Clock, systemClock } from '../protocol/clock.ts'
import { RESPONSE_TIME_MS } from '../protocol/limits.ts'
import { isToken, refuseUnknown, requireBoolean, requireClock, requireWhole } from '../protocol/options.ts'
import type { DispatcherLike } from '../protocol/post.ts'
import { createKeys, type Key } from '../protocol/signature.ts'
import { readWebhooks, type Target, type Webhook } from './webhooks.ts'

/** What `createSender` takes. */
export interface SenderOptions {
  /** One to five URLs ("Outbound event delivery", Destination settings). Every message is posted to each. */
  readonly webhooks: readonly Webhook[]
  /**
   * Signs every request when given, as `X-Signature` ("Outbound event delivery", Authentication). Leave it out to send
   * unsigned. The type admits undefined so that `process.env.X` compiles; a secret that is given and missing or empty is a
   * TypeError.
   */
  readonly sharedSecret?: string | undefined
  /** Product token of the header `User-Agent`. Default `Hookline`, which makes it `Hookline/1.0`. */
  readonly userAgent?: string
  /** How long an endpoint may take to answer, connecting included, in milliseconds. Default and most: 5000. */
  readonly timeoutMs?: number
  /** Certificates of a private authority (PEM), trusted in place of the well-known ones. */
  readonly ca?: NonNullable<ConnectionOptions['ca']>
  /** Whether private, loopback and other special addresses may be reached. Default true; false for URLs of strangers. */
  readonly allowPrivateAddresses?: boolean
  /**
   * Sends the requests: any Dispatcher of undici, for instance a proxy's. It makes its own connections, checks certificates
   * its own way, and is not closed by `close`. Default: pools, of up to 128 connections for each origin.
   */
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
  /** Most connections to one origin. */
  readonly connections: number
  readonly ca: ConnectionOptions['ca']
  readonly allowPrivateAddresses: boolean
  readonly dispatcher: DispatcherLike | undefined
  readonly clock: Clock
}

/** Most connections to one origin: what is sent beyond that waits its turn, and its time begins then. */
const CONNECTIONS = 128

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
  if (!isToken(userAgent)) {
    throw new TypeError("userAgent: must be a product token without a version, for instance 'Hookline'.")
  }
  requireWhole('timeoutMs', timeoutMs, 1, RESPONSE_TIME_MS)
  requireBoolean('allowPrivateAddresses', allowPrivateAddresses)
  if (ca !== undefined) requireCertificates(ca)
  if (dispatcher !== undefined && typeof dispatcher?.dispatch !== 'function') {
    throw new TypeError('dispatcher: must be a Dispatcher of undici, with its function dispatch.')
  }
  if (dispatcher !== undefined && (ca !== undefined || !allowPrivateAddresses)) {
    throw new TypeError('dispatcher: makes its own connections, so ca and allowPrivateAddresses are for it to know.')
  }
  requireClock(clock)
  return {
    targets: readWebhooks(options.webhooks),
    key: readKey(options),
    userAgent: `${userAgent}/1.0`,
    timeoutMs,
    connections: CONNECTIONS,
    ca,
    allowPrivateAddresses,
    dispatcher,
    clock,
  }
}

/** @throws TypeError for what are no options, and for one that does not exist. */
export function requireOptions(caller: string, options: object, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(`${caller}: give it options, at least { webhooks: [{ url }] }.`)
  }
  refuseUnknown(options, known)
}

/** What Node cannot read as a certificate it may silently leave out, and then refuse every endpoint. */
function requireCertificates(ca: SenderOptions['ca']): void {
  const list: readonly unknown[] = Array.isArray(ca) ? ca : [ca]
  try {
    if (list.length === 0) throw new Error('none')
    for (const certificate of list) new X509Certificate(certificate as string)
  } catch {
    throw new TypeError('ca: must be one certificate or a list of them, each as PEM.')
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
