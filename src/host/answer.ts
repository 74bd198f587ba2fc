/** Answers: one for success, and a problem (RFC 9457) for every error. */

import type { HooklineError, HooklineErrorCode } from '../protocol/error.ts'
import { RETRY_AFTER_S } from '../protocol/limits.ts'
import type { EndpointAnswer } from './endpoint.ts'

export const accepted: EndpointAnswer = {
  status: 200,
  headers: { 'content-type': 'application/json' },
  body: '{"ok":true}',
}

/** For a message that an inbox or `dedupe` knew: nothing was done. */
export const duplicate: EndpointAnswer = { ...accepted, body: '{"ok":true,"duplicate":true}' }

// The scheme is not `Basic`, although Basic is accepted: browsers answer a Basic challenge with a login dialog.
const writeKeyChallenge = { 'www-authenticate': 'WriteKey realm="collector"' }
const signatureChallenge = { 'www-authenticate': 'HMAC-SHA1 header="X-Signature"' }
const headerChallenge = { 'www-authenticate': 'Header realm="webhooks"' }
// The rest of the body is not read, so the connection cannot carry another request.
const closeConnection = { connection: 'close' }
const retryLater = { 'retry-after': String(RETRY_AFTER_S) }

const HEADERS: { readonly [Code in HooklineErrorCode]?: Readonly<Record<string, string>> } = {
  shutting_down: retryLater,
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
  header_missing: headerChallenge,
  header_mismatch: headerChallenge,
  write_key_missing: writeKeyChallenge,
  write_key_unknown: writeKeyChallenge,
}

export const POST_ONLY: readonly string[] = ['POST']

/** The answer to an error: its code, message and path. Never its cause. */
export function problem(error: HooklineError, methods = POST_ONLY): EndpointAnswer {
  const { status, code, message, path } = error
  const allow = code === 'method_not_allowed' && { allow: methods.join(', ') }
  return {
    status,
    headers: { 'content-type': 'application/problem+json', ...HEADERS[code], ...allow },
    body: JSON.stringify({ status, code, detail: message, path }),
  }
}

/** The headers of an answer without `connection`: HTTP/2 and later forbid it. */
export function withoutConnection({ headers }: EndpointAnswer): Readonly<Record<string, string>> {
  if (!('connection' in headers)) return headers
  const { connection: _, ...others } = headers
  return others
}
