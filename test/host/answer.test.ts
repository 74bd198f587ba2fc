/** The answer to each error: its status, and the headers that tell a sender or a proxy what to do. */

import { expect, it } from 'vitest'
import { problem } from '../../src/host/answer.ts'
import { HooklineError, type HooklineErrorCode } from '../../src/protocol/error.ts'

const later = { 'retry-after': '5' }
const close = { connection: 'close' }
const sign = { 'www-authenticate': 'HMAC-SHA1 header="X-Signature"' }
const header = { 'www-authenticate': 'Header realm="webhooks"' }
const key = { 'www-authenticate': 'WriteKey realm="collector"' }

const answers: Readonly<Record<HooklineErrorCode, readonly [status: number, headers?: Record<string, string>]>> = {
  method_not_allowed: [405, { allow: 'POST, PUT' }],
  content_type_unsupported: [415],
  content_encoding_unsupported: [415],
  content_encoding_invalid: [400],
  body_too_large: [413, close],
  body_timeout: [503, close],
  body_aborted: [400],
  body_consumed: [500],
  body_not_json: [400],
  batch_empty: [400],
  batch_too_large: [413],
  signature_missing: [401, sign],
  signature_malformed: [401, sign],
  signature_mismatch: [401, sign],
  source_unknown: [401, sign],
  header_missing: [401, header],
  header_mismatch: [401, header],
  secret_unavailable: [503],
  write_key_missing: [401, key],
  write_key_unknown: [401, key],
  message_invalid: [422],
  message_type_unknown: [422],
  schema_mismatch: [422],
  call_invalid: [400],
  call_too_large: [413],
  too_many_refused: [422],
  handler_failed: [500],
  handler_timeout: [503],
  duplicate_in_progress: [503, later],
  dedupe_unavailable: [503, later],
  inbox_unavailable: [503, later],
  queue_full: [503, later],
  queue_unavailable: [503, later],
  lease_lapsed: [503],
  shutting_down: [503, { ...later, ...close }],
  internal: [500],
}

it.each(Object.entries(answers))('%s is answered %j, and nothing of its cause', (code, [status, headers = {}]) => {
  const error = new HooklineError(code as HooklineErrorCode, 'the detail', {
    path: 'event',
    cause: new Error('hunter2'),
  })

  const answer = problem(error, ['POST', 'PUT'])

  expect(answer).toMatchObject({ status, headers: { 'content-type': 'application/problem+json', ...headers } })
  expect(Object.keys(answer.headers)).toHaveLength(1 + Object.keys(headers).length)
  expect(JSON.parse(answer.body)).toEqual({ status, code, detail: 'the detail', path: 'event' })
})
