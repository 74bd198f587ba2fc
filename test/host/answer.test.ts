/** The answer to each error: its status, and the headers that tell a sender or a proxy what to do. */

import { expect, it } from 'vitest'
import { problem } from '../../src/host/answer.ts'
import { HooklineError, type HooklineErrorCode } from '../../src/protocol/error.ts'
import { STATUS } from '../../src/protocol/error-codes.ts'

const later = { 'retry-after': '5' }
const close = { connection: 'close' }
const sign = { 'www-authenticate': 'HMAC-SHA1 header="X-Signature"' }
const header = { 'www-authenticate': 'Header realm="webhooks"' }
const key = { 'www-authenticate': 'WriteKey realm="collector"' }

const answers: readonly [codes: string, status: number, headers?: Record<string, string>][] = [
  ['method_not_allowed', 405, { allow: 'POST, PUT' }],
  ['content_type_unsupported content_encoding_unsupported', 415],
  ['content_encoding_invalid body_aborted body_not_json batch_empty call_invalid', 400],
  ['body_too_large', 413, close],
  ['batch_too_large call_too_large', 413],
  ['body_timeout', 503, close],
  ['signature_missing signature_malformed signature_mismatch source_unknown', 401, sign],
  ['header_missing header_mismatch', 401, header],
  ['write_key_missing write_key_unknown', 401, key],
  ['message_invalid message_type_unknown schema_mismatch too_many_refused', 422],
  ['body_consumed handler_failed internal', 500],
  ['secret_unavailable handler_timeout lease_lapsed', 503],
  ['duplicate_in_progress dedupe_unavailable inbox_unavailable queue_full queue_unavailable', 503, later],
  ['shutting_down', 503, { ...later, ...close }],
]

it.each<[string, number, Record<string, string>?]>(answers)(
  '%s is answered %i, and nothing of its cause',
  (codes, status, headers = {}) => {
    for (const code of codes.split(' ') as HooklineErrorCode[]) {
      const error = new HooklineError(code, 'the detail', { path: 'event', cause: new Error('hunter2') })
      const { body, ...head } = problem(error, ['POST', 'PUT'])
      expect(head).toEqual({ status, headers: { 'content-type': 'application/problem+json', ...headers } })
      expect(JSON.parse(body)).toEqual({ status, code, detail: 'the detail', path: 'event' })
    }
  },
)

it('each code has its answer', () => {
  expect(answers.flatMap(([codes]) => codes.split(' ')).sort()).toEqual(Object.keys(STATUS).sort())
})
