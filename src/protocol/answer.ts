/** What goes back over the wire: one success, and a problem (RFC 9457) for every error. */

import type { EndpointAnswer } from './endpoint.ts'
import type { HooklineError, HooklineErrorCode } from './error.ts'
import { RETRY_AFTER_S } from './limits.ts'

/** The answer to a message that was handled. */
export const accepted: EndpointAnswer = {
  status: 200,
  headers: { 'content-type': 'application/json' },
  body: '{"ok":true}',
}

// Not `Basic`, although it is taken: to that, a browser shows visitors of the collector's own site a login dialog.
const writeKey = { 'www-authenticate': 'WriteKey realm="collector"' }
const challenge = { 'www-authenticate': 'HMAC-SHA1 header="X-Signature"' }
// The rest of the body is still on its way, and nobody is going to read it.
const hangUp = { connection: 'close' }

const comeBack = { 'retry-after': String(RETRY_AFTER_S) }

const HEADERS: { readonly [Code in HooklineErrorCode]?: Readonly<Record<string, string>> } = {
  shutting_down: comeBack,
  queue_full: comeBack,
  queue_unavailable: comeBack,
  inbox_unavailable: comeBack,
  duplicate_in_progress: comeBack,
  dedupe_unavailable: comeBack,
  method_not_allowed: { allow: 'POST' },
  body_too_large: hangUp,
  body_timeout: hangUp,
  signature_missing: challenge,
  signature_malformed: challenge,
  signature_mismatch: challenge,
  write_key_missing: writeKey,
  write_key_unknown: writeKey,
}

/** The answer to an error: its code and what it says, nothing of its cause. */
export function problem(error: HooklineError): EndpointAnswer {
  const { status, code, message, path } = error
  return {
    status,
    headers: { 'content-type': 'application/problem+json', ...HEADERS[code] },
    body: JSON.stringify({ status, code, detail: message, path }),
  }
}
