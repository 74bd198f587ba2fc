/** Answers of the inspector: the page, the headers of all, and what a refusal looks like. */

import type { EndpointAnswer, EndpointRequest } from '../../http/endpoint.ts'
import { HooklineError } from '../../message/error.ts'
import type { Problem } from '../wire.ts'

declare const HOOKLINE_PAGE: string

export const pageFiles: Readonly<Record<'html' | 'script' | 'style', string>> = JSON.parse(HOOKLINE_PAGE)

/** Of every answer: the page runs its own script and no other, in no frame, and nothing of it is stored. */
const HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'x-frame-options': 'DENY',
}

/** A request that is refused: thrown by whatever answers it. */
export class Refusal extends Error {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>

  /** @param message What must be so, what was found, what to do. It is answered, so it holds no secret. */
  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message)
    this.status = status
    this.headers = headers
  }
}

export function answer(
  status: number,
  type: string,
  body: EndpointAnswer['body'],
  headers: Readonly<Record<string, string>> = {},
): EndpointAnswer {
  return { status, headers: { ...HEADERS, 'content-type': type, ...headers }, body }
}

/** An answer without a body that sends the browser elsewhere. */
export function redirect(location: string): EndpointAnswer {
  return answer(308, 'text/plain', '', { location })
}

export function json(value: unknown): EndpointAnswer {
  return answer(200, 'application/json', JSON.stringify(value))
}

/** The answer to what was thrown; undefined when that is a fault of the inspector. Renders HTML when `/` is requested. */
export function refused(thrown: unknown, { path }: EndpointRequest): EndpointAnswer | undefined {
  if (!(thrown instanceof HooklineError || thrown instanceof Refusal)) return undefined
  const { status, message } = thrown
  const headers = thrown instanceof Refusal ? thrown.headers : UNREAD.has(thrown.code) ? { connection: 'close' } : {}
  if (path === '/') return answer(status, 'text/html; charset=utf-8', toPage(message), headers)
  return answer(status, 'application/json', JSON.stringify({ error: message } satisfies Problem), headers)
}

/** The rest of such a body is not read, so the connection cannot carry another request. */
const UNREAD: ReadonlySet<string> = new Set(['body_too_large', 'body_timeout'])

/**
 * Returns a whole number that the page sent.
 *
 * @throws Refusal
 */
export function requireBetween(name: string, value: unknown, least: number, most: number): number {
  if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) return value as number
  const text = `\`${name}\` must be a whole number from ${least} to ${most}. Got something else. Send a number.`
  throw new Refusal(400, text)
}

function toPage(message: string): string {
  const text = message.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Hookline inspector</title>
<link rel="icon" href="data:,">
<p>${text}</p>
</html>
`
}
