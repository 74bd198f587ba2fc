/** The result of one POST as an attempt, and the class of each connection error. */

import type { PostOutcome } from '../http/post.ts'
import type { Attempt, AttemptError } from './api.ts'
import { PRIVATE_ADDRESS } from './private-address.ts'
import type { Target } from './webhooks.ts'

/** How many bytes of a response body an attempt quotes. */
const EXCERPT_BYTES = 256

/** The longest reason of an error, in characters. */
const MAX_REASON_LENGTH = 200

/** Creates the attempt that a POST ended with. */
export function toAttempt(target: Target, outcome: PostOutcome, at: Date, durationMs: number): Attempt {
  const { status, retryAfterMs, error } = outcome
  const { shown: url } = target
  const body = outcome.body.toString('utf8', 0, EXCERPT_BYTES)
  if (status === undefined) return { url, at, durationMs, ok: false, ...explainError(error, target), body }
  const ok = status >= 200 && status < 300
  if (ok || retryAfterMs === undefined) return { url, at, durationMs, ok, status, body }
  return { url, at, durationMs, ok, status, retryAfterMs, body }
}

/** Classifies an error of a connection and describes it without the query of the URL. */
export function explainError(
  error: unknown,
  { path, shown }: Pick<Target, 'path' | 'shown'>,
): { readonly error: AttemptError; readonly reason: string } {
  const code = codeOf(error)
  const text = error instanceof Error && error.message !== '' ? error.message : code
  // A dispatcher may quote the path, whose query may hold a token.
  const reason = path.includes('?') ? text.replaceAll(path, shown) : text
  return { error: classify(code), reason: reason.slice(0, MAX_REASON_LENGTH) }
}

/** The code of the error, of the first address that failed, or of the cause; else the name. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  const { code, errors, cause } = error as { code?: unknown; errors?: readonly unknown[]; cause?: unknown }
  if (typeof code === 'string') return code
  if (error.name === 'HTTPParserError' && error.message.includes('EOF')) return 'ECONNRESET' // Ended between chunks.
  const inner = errors?.[0] ?? cause
  return inner === undefined ? error.name : codeOf(inner)
}

function classify(code: string): AttemptError {
  for (const [pattern, error] of CLASSES) if (pattern.test(code)) return error
  return 'reset'
}

const CLASSES: readonly (readonly [RegExp, AttemptError])[] = [
  [/^DEPTH_ZERO_SELF_SIGNED_CERT/, 'self_signed'],
  [/TIMEOUT|ETIMEDOUT/, 'timeout'],
  [
    /^(CERT_|UNABLE_TO_|SELF_SIGNED_CERT_IN_CHAIN|ERR_TLS|ERR_SSL|ERR_OSSL|ERROR_IN_CERT|INVALID_|EPROTO|HOSTNAME_MISMATCH|PATH_LENGTH)/,
    'tls',
  ],
  [/^(ENOTFOUND|EAI_|ENODATA|ESERVFAIL)/, 'dns'],
  [/^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|EADDRNOTAVAIL|EACCES|EMFILE|ENFILE)/, 'refused'],
  [/^(HPE_|HTTPParserError|UND_ERR_HEADERS_OVERFLOW)/, 'http'],
  [/^(UND_ERR_DESTROYED|UND_ERR_CLOSED)/, 'closed'],
  [new RegExp(`^${PRIVATE_ADDRESS}$`), 'private_address'],
]
