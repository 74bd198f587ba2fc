/** Reads the options of startPlatform(). */

import type { DestinationOptions } from '../../destination/options.ts'
import {
  invalidOption,
  kindOf,
  requireOptions,
  requireSecret,
  requireText,
  requireUrl,
  requireWhole,
} from '../../options/checks.ts'
import type { Webhook } from '../../sender/webhooks.ts'
import type { PlatformOptions } from './api.ts'

/** The options, complete. What the destination and the collector check themselves is still unchecked. */
export interface PlatformSettings
  extends Required<Pick<PlatformOptions, 'writeKey' | 'port' | 'timeoutMs' | 'collector'>> {
  readonly destination: DestinationOptions
}

const OPTIONS = [
  'to',
  'secret',
  'writeKey',
  'port',
  'timeoutMs',
  'destination',
  'collector',
] as const satisfies (keyof PlatformOptions)[]

/** The options that the platform gives itself, and what to pass instead. */
const OWN: Readonly<Record<string, string>> = {
  webhooks: 'Pass the URLs as `to`.',
  sharedSecret: 'Pass it as `secret`.',
  queue: 'The platform has a queue in memory.',
  sources: 'The platform has one source.',
  clock: 'The platform has its own clock: move it by `advance`.',
}

/**
 * Checks the options that the platform itself reads.
 *
 * @throws TypeError that names the option.
 */
export function readOptions(options: PlatformOptions): PlatformSettings {
  requireOptions('startPlatform', options, OPTIONS)
  const { to, writeKey = 'test-write-key', port = 0, timeoutMs = 4_000, destination = {}, collector = {} } = options
  requireText('writeKey', writeKey, 'test-write-key')
  requireWhole('port', port, 0, 65_535)
  requireWhole('timeoutMs', timeoutMs, 1)
  refuseOwn('destination', destination)
  refuseOwn('collector', collector)
  if ('secret' in options) requireSecret('secret', options.secret, 'the shared secret of the endpoint')
  const secret = 'secret' in options ? { sharedSecret: options.secret } : {}
  const webhooks = readTo(to)
  return {
    writeKey,
    port,
    timeoutMs,
    collector,
    destination: { random: () => 0.5, ...destination, ...secret, webhooks },
  }
}

function readTo(to: unknown): Webhook[] {
  const list = Array.isArray(to) ? to : [to]
  return list.map((one, index) => {
    const name = Array.isArray(to) ? `to[${index}]` : 'to'
    if (typeof one !== 'string' && !(one instanceof URL)) {
      if (typeof one === 'object' && one !== null) return one
      throw invalidOption(name, 'must be a URL', kindOf(one), "Pass one, for example 'http://localhost:3000/webhooks'.")
    }
    requireUrl(name, String(one), 'Pass { url, headers } with an Authorization header.')
    return { url: String(one) }
  })
}

function refuseOwn(name: string, options: unknown): void {
  if (typeof options !== 'object' || options === null) {
    throw invalidOption(name, 'must be an object', kindOf(options), 'Pass options, or leave it out.')
  }
  const own = Object.keys(options).find((key) => Object.hasOwn(OWN, key))
  if (own !== undefined) throw invalidOption(`${name}.${own}`, 'cannot be set', 'a value', OWN[own] as string)
}
