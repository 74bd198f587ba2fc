/** The webhooks of a sender: one to five URLs with static headers, checked once. */

import { createHash } from 'node:crypto'
import { invalidOption, isToken, kindOf, refuseUnknown, requireUrl } from '../kit/checks.ts'
import { WEBHOOKS_LIMIT } from '../protocol/limits.ts'

/** One URL to post messages to. */
export interface Webhook {
  /** The full URL, `http://` or `https://`. Messages are posted to exactly this URL. */
  readonly url: string
  /** Static headers, added to every request to this URL. */
  readonly headers?: Readonly<Record<string, string>>
}

export interface Target {
  /** A digest that is stored in place of the URL, because the URL may hold a token. */
  readonly id: string
  readonly url: string
  /** The URL with its query replaced by `?…`, for reports. */
  readonly shown: string
  readonly origin: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

export function readWebhooks(webhooks: unknown): readonly Target[] {
  if (!Array.isArray(webhooks) || webhooks.length === 0 || webhooks.length > WEBHOOKS_LIMIT) {
    const found = Array.isArray(webhooks) ? `${webhooks.length} entries` : kindOf(webhooks)
    const advice = "Pass URLs, for example [{ url: 'https://example.com/webhooks' }]."
    throw invalidOption('webhooks', `must be a list of 1 to ${WEBHOOKS_LIMIT} entries`, found, advice)
  }
  const targets = webhooks.map((webhook, index) => readWebhook(webhook, `webhooks[${index}]`))
  for (const [index, { url }] of targets.entries()) {
    const first = targets.findIndex((other) => other.url === url)
    const found = `the URL of webhooks[${first}]`
    if (first !== index)
      throw invalidOption(`webhooks[${index}].url`, 'must be unique', found, 'Remove one of the two.')
  }
  return targets
}

function readWebhook(webhook: unknown, name: string): Target {
  if (typeof webhook !== 'object' || webhook === null) {
    throw invalidOption(name, 'must be an object', kindOf(webhook), 'Pass { url } or { url, headers }.')
  }
  refuseUnknown(webhook, ['url', 'headers'], `${name}.`)
  const { url, headers = {} }: Partial<Record<keyof Webhook, unknown>> = webhook
  const credentialsAdvice = `Pass them as the header Authorization in \`${name}.headers\`.`
  const { href, origin, pathname, search } = requireUrl(`${name}.url`, url, credentialsAdvice)
  return {
    id: createHash('sha256').update(href).digest('hex').slice(0, 16),
    url: href,
    shown: `${origin}${pathname}${search === '' ? '' : '?…'}`,
    origin,
    path: pathname + search,
    headers: readHeaders(headers, `${name}.headers`),
  }
}

/** Headers that describe the message, its signature or the connection: only the sender sets them. */
export const RESERVED_HEADERS: ReadonlySet<string> = new Set([
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
    const isIterable = typeof headers === 'object' && headers !== null && !Array.isArray(headers)
    const found = isIterable ? 'an iterable' : kindOf(headers)
    const advice = "Pass names and values, for example { 'X-Team': 'growth' }."
    throw invalidOption(name, 'must be a plain object', found, advice)
  }
  const names = new Set<string>()
  for (const [header, value] of Object.entries(headers)) {
    checkHeader(name, header, value)
    const lower = header.toLowerCase()
    if (names.has(lower)) {
      const rule = 'repeats another header: names of headers are case-insensitive'
      throw invalidOption(`${name}.${header}`, rule, undefined, 'Remove one of the two.')
    }
    names.add(lower)
  }
  return { ...headers }
}

/** Checks a header. The errors show neither the value nor an invalid name, because either may be a token. */
function checkHeader(name: string, header: string, value: unknown): void {
  if (!isToken(header)) {
    const found = header === '' ? 'an empty name' : 'a name with a character that is not allowed'
    throw invalidOption(name, 'must have valid header names', found, 'Use letters, digits and hyphens.')
  }
  if (RESERVED_HEADERS.has(header.toLowerCase())) {
    throw invalidOption(`${name}.${header}`, 'is reserved for the sender', undefined, 'Remove it.')
  }
  if (typeof value !== 'string' || /[^\t\x20-\x7e\x80-\xff]/.test(value)) {
    const rule = 'must be a Latin-1 string without control characters'
    const found = typeof value === 'string' ? 'a string with other characters' : kindOf(value)
    throw invalidOption(`${name}.${header}`, rule, found, 'Pass a string on one line, and encode other characters.')
  }
}
