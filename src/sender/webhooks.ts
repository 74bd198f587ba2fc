/** Where a sender posts to: one to five URLs with static headers, checked once. */

import { createHash } from 'node:crypto'
import { WEBHOOKS_LIMIT } from '../protocol/limits.ts'
import { isToken, refuseUnknown, requireUrl } from '../protocol/options.ts'

/** One URL of a destination. */
export interface Webhook {
  /** The full URL, `http://` or `https://`. A message is posted to exactly this. */
  readonly url: string
  /** Static headers, added to every request to this URL. */
  readonly headers?: Readonly<Record<string, string>>
}

/** A URL, taken apart. */
export interface Target {
  /** Names the URL where the URL itself must not stand: it may hold a token. */
  readonly id: string
  readonly url: string
  /** The URL for a person to read, its query left out. */
  readonly shown: string
  readonly origin: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

/**
 * Checks the webhooks of a destination ("Outbound event delivery", Destination settings).
 *
 * @throws TypeError that names the option.
 */
export function readWebhooks(webhooks: unknown): readonly Target[] {
  if (!Array.isArray(webhooks) || webhooks.length === 0 || webhooks.length > WEBHOOKS_LIMIT) {
    throw new TypeError(`webhooks: must be a list of one to ${WEBHOOKS_LIMIT}, each { url, headers }.`)
  }
  const targets = webhooks.map((webhook, index) => readWebhook(webhook, `webhooks[${index}]`))
  for (const [index, { url }] of targets.entries()) {
    if (targets.findIndex((other) => other.url === url) !== index) {
      throw new TypeError(`webhooks[${index}].url: is there twice.`)
    }
  }
  return targets
}

function readWebhook(webhook: unknown, name: string): Target {
  if (typeof webhook !== 'object' || webhook === null) throw new TypeError(`${name}: must be { url, headers }.`)
  refuseUnknown(webhook, ['url', 'headers'], `${name}.`)
  const { url, headers = {} } = webhook as Partial<Webhook>
  const { href, origin, pathname, search } = requireUrl(`${name}.url`, url, 'Give them as the header Authorization.')
  return {
    id: createHash('sha256').update(href).digest('hex').slice(0, 16),
    url: href,
    shown: `${origin}${pathname}${search === '' ? '' : '?…'}`,
    origin,
    path: pathname + search,
    headers: readHeaders(headers, `${name}.headers`),
  }
}

/** What describes the message, its signature or the connection, and is therefore the sender's own to set. */
const RESERVED: ReadonlySet<string> = new Set([
  'content-type',
  'content-length',
  'content-encoding',
  'user-agent',
  'x-signature',
  'host',
  'connection',
  'transfer-encoding',
  'upgrade',
  'te',
  'trailer',
  'expect',
  'keep-alive',
  'proxy-connection',
])

function readHeaders(headers: unknown, name: string): Readonly<Record<string, string>> {
  if (typeof headers !== 'object' || headers === null || Symbol.iterator in headers) {
    throw new TypeError(`${name}: must be a plain object of names and values.`)
  }
  const seen = new Set<string>()
  for (const [header, value] of Object.entries(headers)) {
    const key = header.toLowerCase()
    if (!isToken(header)) throw new TypeError(`${name}: a name is no header name.`)
    if (RESERVED.has(key)) throw new TypeError(`${name}.${header}: is set by the sender and cannot be replaced.`)
    if (seen.has(key)) throw new TypeError(`${name}.${header}: is there twice.`)
    if (typeof value !== 'string' || /[^\t\x20-\x7e\x80-\xff]/.test(value)) {
      throw new TypeError(`${name}.${header}: must be text without line breaks, in Latin-1.`)
    }
    seen.add(key)
  }
  return { ...headers }
}
