/** The error codes, and the HTTP status of each. */

/** The status of the answer for each code. A 4xx ends the retries of the sender, so a fault on the receiving side is a 5xx. */
export const STATUS = {
  shutting_down: 503,
  method_not_allowed: 405,
  content_type_unsupported: 415,
  content_encoding_unsupported: 415,
  content_encoding_invalid: 400,
  body_too_large: 413,
  body_timeout: 503,
  body_aborted: 400,
  body_consumed: 500,
  body_not_json: 400,
  batch_empty: 400,
  batch_too_large: 413,
  signature_missing: 401,
  signature_malformed: 401,
  signature_mismatch: 401,
  header_missing: 401,
  header_mismatch: 401,
  source_unknown: 401,
  secret_unavailable: 503,
  message_invalid: 422,
  message_type_unknown: 422,
  schema_mismatch: 422,
  handler_failed: 500,
  handler_timeout: 503,
  duplicate_in_progress: 503,
  dedupe_unavailable: 503,
  inbox_unavailable: 503,
  write_key_missing: 401,
  write_key_unknown: 401,
  call_invalid: 400,
  call_too_large: 413,
  too_many_refused: 422,
  queue_full: 503,
  queue_unavailable: 503,
  lease_lapsed: 503,
  internal: 500,
} as const satisfies Readonly<Record<string, number>>

/** Names what went wrong. Codes are stable: later versions may add codes, but never rename one. */
export type HooklineErrorCode = keyof typeof STATUS
