import { expect, it } from 'vitest'
import type { EndpointRequest } from '../../src/host/endpoint.ts'
import { HooklineError, type HooklineErrorCode } from '../../src/protocol/error.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import type { ReceiverOptions } from '../../src/receive/receiver-options.ts'
import { hostRequest, refusing, schemaOf, setUp } from '../support/receive.ts'

interface Case {
  readonly status: number
  readonly headers?: Record<string, string>
  readonly request?: Partial<EndpointRequest>
  readonly body?: string
  readonly options?: ReceiverOptions
  readonly handler?: () => unknown
  readonly closing?: true
}

const fails = (code: HooklineErrorCode) => () => Promise.reject(new HooklineError(code, 'from the host'))
const hangs = () => new Promise<never>(() => {})
const full = { ...memoryQueue(), push: fails('queue_full') }
const broken = schemaOf(() => Promise.reject(new Error('broken')))

type ReceiverCode = Exclude<
  HooklineErrorCode,
  | 'content_encoding_invalid'
  | 'write_key_missing'
  | 'write_key_unknown'
  | 'call_invalid'
  | 'call_too_large'
  | 'too_many_refused'
  | 'queue_full'
  | 'queue_unavailable'
  | 'lease_lapsed'
>

const cases: Readonly<Record<ReceiverCode, Case>> = {
  shutting_down: { status: 503, closing: true, headers: { 'retry-after': '5' } },
  method_not_allowed: { status: 405, request: { method: 'GET' }, headers: { allow: 'POST' } },
  content_type_unsupported: { status: 415, request: { headers: { 'content-type': 'text/plain' } } },
  content_encoding_unsupported: {
    status: 415,
    request: { headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' } },
  },
  body_too_large: { status: 413, request: { readBody: fails('body_too_large') }, headers: { connection: 'close' } },
  body_timeout: { status: 503, request: { readBody: hangs }, headers: { connection: 'close' } },
  body_aborted: { status: 400, request: { readBody: fails('body_aborted') } },
  body_consumed: { status: 500, request: { readBody: fails('body_consumed') } },
  body_not_json: { status: 400, body: '[]' },
  batch_empty: { status: 400, body: '[]', options: { batches: true } },
  batch_too_large: { status: 413, body: '[{},{}]', options: { batches: true, batchLimit: 1 } },
  signature_missing: {
    status: 401,
    request: { headers: { 'content-type': 'application/json' } },
    headers: { 'www-authenticate': 'HMAC-SHA1 header="X-Signature"' },
  },
  signature_malformed: {
    status: 401,
    request: { headers: { 'content-type': 'application/json', 'x-signature': 'junk' } },
    headers: { 'www-authenticate': 'HMAC-SHA1 header="X-Signature"' },
  },
  signature_mismatch: {
    status: 401,
    options: { secret: 'another' },
    headers: { 'www-authenticate': 'HMAC-SHA1 header="X-Signature"' },
  },
  header_missing: {
    status: 401,
    options: { header: { name: 'x-key', value: 'right' }, secret: undefined },
    headers: { 'www-authenticate': 'Header realm="webhooks"' },
  },
  header_mismatch: {
    status: 401,
    options: { header: { name: 'x-key', value: 'right' }, secret: undefined },
    request: { headers: { 'content-type': 'application/json', 'x-key': 'wrong' } },
    headers: { 'www-authenticate': 'Header realm="webhooks"' },
  },
  source_unknown: {
    status: 401,
    options: { secret: { source: () => undefined, secrets: () => undefined } },
    headers: { 'www-authenticate': 'HMAC-SHA1 header="X-Signature"' },
  },
  secret_unavailable: { status: 503, options: { secret: async () => undefined } },
  message_invalid: { status: 422, body: '{}' },
  message_type_unknown: { status: 422, body: '{"type":"purchase"}' },
  schema_mismatch: { status: 422, options: { events: { 'Order Completed': refusing } } },
  handler_failed: { status: 500, handler: () => Promise.reject(new Error('no')) },
  handler_timeout: { status: 503, handler: hangs },
  inbox_unavailable: { status: 503, options: { inbox: full }, headers: { 'retry-after': '5' } },
  duplicate_in_progress: {
    status: 503,
    options: { dedupe: { claim: () => 'in_progress', close() {} } },
    headers: { 'retry-after': '5' },
  },
  dedupe_unavailable: {
    status: 503,
    options: { dedupe: { claim: fails('dedupe_unavailable'), close() {} } },
    headers: { 'retry-after': '5' },
  },
  internal: { status: 500, options: { events: { 'Order Completed': broken } } },
}

it.each(Object.entries(cases))(
  '%s',
  async (code, { status, headers = {}, request, body, options, handler, closing }) => {
    const { receiver, clock, errors } = setUp(options)
    if (handler !== undefined) receiver.on('*', handler)
    if (closing) await receiver.close()
    const received = receiver.handle(hostRequest(request, body))
    if (options?.batches === undefined) await clock.advance(4500) // Else it would pass while their module loads.
    expect(await received).toMatchObject({
      ok: false,
      status,
      headers: { 'content-type': 'application/problem+json', ...headers },
      error: { code },
    })
    expect(Object.keys((await received).headers).sort()).toEqual(['content-type', ...Object.keys(headers)].sort())
    expect(errors.map((error) => error.code)).toEqual([code])
  },
)
