/** Creates the answers to requests: one for success, and problem details (RFC 9457) for each error. */

import type { HooklineError, HooklineErrorCode } from '../protocol/error.ts'
import type { STATUS } from '../protocol/error-codes.ts'
import { RETRY_AFTER_S } from '../protocol/limits.ts'
import type { EndpointAnswer } from './endpoint.ts'

export const accepted: EndpointAnswer = {
  status: 200,
  headers: { 'content-type': 'application/json' },
  body: '{"ok":true}',
}

/** The answer to a message that an inbox or a dedupe store already had, so that it was neither stored nor handled again. */
export const duplicate: EndpointAnswer = { ...accepted, body: '{"ok":true,"duplicate":true}' }

// The scheme is not `Basic`, although Basic is accepted: browsers answer a Basic challenge with a login dialog.
const writeKeyChallenge = { 'www-authenticate': 'WriteKey realm="collector"' }
const signatureChallenge = { 'www-authenticate': 'HMAC-SHA1 header="X-Signature"' }
const headerChallenge = { 'www-authenticate': 'Header realm="webhooks"' }
// The connection must not carry another request, because the rest of the body will not be read, or because the process is about to end.
const closeConnection = { connection: 'close' }
const retryLater = { 'retry-after': String(RETRY_AFTER_S) }

type Headers = Readonly<Record<string, string>>

type CodeOf<Status> = {
  [Code in HooklineErrorCode]: (typeof STATUS)[Code] extends Status ? Code : never
}[HooklineErrorCode]

/** The additional headers of the answer for each error code. A 401 must have a challenge (RFC 9110, section 15.5.2). */
const HEADERS: { readonly [Code in HooklineErrorCode]?: Headers } & Readonly<Record<CodeOf<401>, Headers>> = {
  shutting_down: { ...retryLater, ...closeConnection },
  queue_full: retryLater,
  queue_unavailable: retryLater,
  inbox_unavailable: retryLater,
  duplicate_in_progress: retryLater,
  dedupe_unavailable: retryLater,
  body_too_large: closeConnection,
  body_timeout: closeConnection,
  signature_missing: signatureChallenge,
  signature_malformed: signatureChallenge,
  signature_mismatch: signatureChallenge,
  source_unknown: signatureChallenge, // The answer to the sender says `signature_mismatch` instead.
  header_missing: headerChallenge,
  header_mismatch: headerChallenge,
  write_key_missing: writeKeyChallenge,
  write_key_unknown: writeKeyChallenge,
}

export const POST_ONLY: readonly string[] = ['POST']

/** Creates the answer for an error. The answer contains the code, message and path of the error, but never its cause. */
export function problem(error: HooklineError, methods = POST_ONLY): EndpointAnswer {
  const { status, code, message, path } = error
  const headers: Record<string, string> = { 'content-type': 'application/problem+json', ...HEADERS[code] }
  if (code === 'method_not_allowed') headers.allow = methods.join(', ')
  return {
    status,
    headers,
    body: JSON.stringify({ status, code, detail: message, path }),
  }
}

/** Returns the headers of an answer without `connection`, which HTTP/2 and HTTP/3 forbid. */
export function withoutConnection({ headers }: EndpointAnswer): Readonly<Record<string, string>> {
  if (!('connection' in headers)) return headers
  const { connection: _, ...others } = headers
  return others
}
