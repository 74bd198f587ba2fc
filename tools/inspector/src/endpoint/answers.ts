/** Answers of the inspector: the page, the headers of every answer, and refusals. */

import { HooklineError } from 'hookline'
import type { Problem } from '../wire.ts'
import type { PageAnswer, PageRequest } from './listener.ts'

declare const HOOKLINE_PAGE: string

export const pageFiles: Readonly<Record<'html' | 'script' | 'style', string>> = JSON.parse(HOOKLINE_PAGE)

/** The headers of every answer. They let the page run only its own script, and keep the page out of frames and caches. */
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

/** An error that refuses a request. Any code that answers requests may throw it. */
export class Refusal extends Error {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>

  /** @param message Says what is required, what was found, and what to do. It must not contain a secret, because the client receives it. */
  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message)
    this.status = status
    this.headers = headers
  }
}

/** @throws Refusal, created from the other arguments, if the condition is false. */
export function refuseUnless(isSo: boolean, ...refusal: ConstructorParameters<typeof Refusal>): asserts isSo {
  if (!isSo) throw new Refusal(...refusal)
}

export function createAnswer(
  status: number,
  type: string,
  body: PageAnswer['body'],
  headers: Readonly<Record<string, string>> = {},
): PageAnswer {
  return { status, headers: { ...HEADERS, 'content-type': type, ...headers }, body }
}

export function json(value: unknown): PageAnswer {
  return createAnswer(200, 'application/json', JSON.stringify(value))
}

const CONSUMED = 'The body was read before the request reached the inspector. Mount the inspector before body parsers.'

/** Returns the answer for an error; undefined when the error is a bug in the inspector. A request for `/` is answered with HTML. */
export function refused(thrown: unknown, { path }: PageRequest): PageAnswer | undefined {
  if (!(thrown instanceof HooklineError || thrown instanceof Refusal)) return undefined
  const { status } = thrown
  const message = thrown instanceof HooklineError && thrown.code === 'body_consumed' ? CONSUMED : thrown.message
  // After a HooklineError, the connection is closed, because the body may not have been read.
  const headers = thrown instanceof Refusal ? thrown.headers : { connection: 'close' }
  if (path === '/') return createAnswer(status, 'text/html; charset=utf-8', toPage(message), headers)
  return createAnswer(status, 'application/json', JSON.stringify({ error: message } satisfies Problem), headers)
}

/**
 * Returns a value that the page sent, which must be a whole number in this range.
 *
 * @throws Refusal for any other value.
 */
export function requireBetween(name: string, value: unknown, least: number, most: number): number {
  const number = Number.isInteger(value) ? (value as number) : Number.NaN
  const rule = `\`${name}\` must be a whole number from ${least} to ${most}`
  refuseUnless(number >= least && number <= most, 400, `${rule}.`)
  return number
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
