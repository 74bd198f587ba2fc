import { expect, it, vi } from 'vitest'
import type { EndpointRequest } from '../../src/host/endpoint.ts'
import { HooklineError, type HooklineErrorCode } from '../../src/protocol/error.ts'
import { basic, recorder, setUpCollector, writeKey } from '../support/collect.ts'
import { watchConsole } from '../support/console.ts'
import { watchWarnings } from '../support/receive.ts'

type ReceiverOnly =
  | 'signature_missing'
  | 'signature_malformed'
  | 'signature_mismatch'
  | 'source_unknown'
  | 'secret_unavailable'
  | 'message_invalid'
  | 'schema_mismatch'
  | 'handler_failed'
  | 'handler_timeout'
  | 'header_missing'
  | 'header_mismatch'
  | 'inbox_unavailable'
  | 'duplicate_in_progress'
  | 'batch_empty'
  | 'batch_too_large'
  | 'dedupe_unavailable'
/** Is reported, and never answered. */
type OfAQueue = 'lease_lapsed'
/** Lists calls of a batch, and is never the whole answer. */
type OfACall = 'message_type_unknown' | 'too_many_refused'

interface Case {
  readonly status: number
  readonly headers?: Record<string, string>
  readonly path?: string
  readonly body?: unknown
  readonly request?: Partial<EndpointRequest>
  readonly submit?: () => Promise<never>
}

const fails = (code: HooklineErrorCode) => () => Promise.reject(new HooklineError(code, 'from elsewhere'))
const json = { 'content-type': 'application/json' }

const cases: Readonly<Record<Exclude<HooklineErrorCode, ReceiverOnly | OfAQueue | OfACall>, Case>> = {
  method_not_allowed: { status: 405, request: { method: 'GET' }, headers: { allow: 'POST' } },
  content_type_unsupported: { status: 415, request: { headers: { 'content-type': 'text/html' } } },
  content_encoding_unsupported: { status: 415, request: { headers: { ...json, 'content-encoding': 'br' } } },
  content_encoding_invalid: { status: 400, request: { headers: { ...json, 'content-encoding': 'gzip' } } },
  body_too_large: { status: 413, request: { readBody: fails('body_too_large') }, headers: { connection: 'close' } },
  body_timeout: { status: 503, request: { readBody: () => new Promise(() => {}) }, headers: { connection: 'close' } },
  body_aborted: { status: 400, request: { readBody: fails('body_aborted') } },
  body_consumed: { status: 500, request: { readBody: fails('body_consumed') } },
  body_not_json: { status: 400, body: '{' },
  write_key_missing: {
    status: 401,
    request: { headers: json },
    headers: { 'www-authenticate': 'WriteKey realm="collector"' },
  },
  write_key_unknown: {
    status: 401,
    request: { headers: json },
    body: { writeKey: 'unknown' },
    headers: { 'www-authenticate': 'WriteKey realm="collector"' },
  },
  call_invalid: { status: 400, path: '/v1/identify', body: {} },
  call_too_large: { status: 413, path: '/v1/identify', body: { userId: 'u'.repeat(32 * 1024) } },
  queue_full: { status: 503, submit: fails('queue_full'), headers: { 'retry-after': '5' } },
  queue_unavailable: { status: 503, submit: fails('queue_unavailable'), headers: { 'retry-after': '5' } },
  shutting_down: { status: 503, submit: fails('shutting_down'), headers: { 'retry-after': '5', connection: 'close' } },
  internal: { status: 500, submit: () => Promise.reject(new Error('no')) },
}

it.each(Object.entries(cases))(
  '%s',
  async (code, { status, headers = {}, path = '/v1/batch', body, request, submit }) => {
    const destination = { ...recorder(), ...(submit && { submit }) }
    const sources = [{ name: 'shop', writeKey, destinations: [destination] }]
    const { post, clock, errors } = setUpCollector({ sources })
    const answered = post(path, body ?? { batch: [{ type: 'page', userId: 'u' }] }, request)
    await clock.advance(30_000)
    const answer = await answered
    const expected = {
      'content-type': 'application/problem+json',
      'access-control-allow-origin': '*',
      'access-control-expose-headers': 'retry-after',
      ...headers,
    }
    expect([answer.status, answer.headers]).toEqual([status, expected])
    expect(answer.json).toMatchObject({ status, code })
    expect(errors.map((error) => error.code)).toEqual([code])
  },
)

it('passes to onError the request, and the error of a destination', async () => {
  const onError = vi.fn()
  const cause = new Error('disk on fire')
  const destinations = [recorder(), { submit: () => Promise.reject(cause) }]
  const { post } = setUpCollector({ onError, sources: [{ name: 'shop', writeKey, destinations }] })
  const answer = await post('/v1/page', { userId: 'u' })
  expect(answer.body).not.toContain('fire')
  expect(onError.mock.calls).toEqual([
    [
      expect.objectContaining({ code: 'internal', cause: expect.objectContaining({ errors: [cause] }) }),
      { path: '/v1/page', headers: expect.objectContaining(json), remoteAddress: '192.0.2.1' },
    ],
  ])
})

it.each([
  [
    'prints a fault of ours, with the stack',
    () => Promise.reject(new Error('disk')),
    [/^hookline: internal at \/v1\/\w+: [^\n]+\n {4}Error: disk\n/],
  ],
  ['does not print that a destination is closed', fails('shutting_down'), []],
  [
    'prints a fault of the client on one line',
    fails('body_aborted'),
    [/^hookline: body_aborted at \/v1\/batch: [^\n]+$/],
  ],
] as const)('without onError it %s', async (_what, readBody, lines) => {
  const printed = watchConsole()
  const { post } = setUpCollector({ onError: undefined } as never)
  await post('/v1/batch', {}, { readBody })
  expect(printed.map(({ text }) => text)).toEqual(lines.map((line) => expect.stringMatching(line)))
})

it('a logger gets the lines in place of the console, with the path', async () => {
  const printed = watchConsole()
  const logged: unknown[] = []
  const keep = (...call: unknown[]) => void logged.push(call)
  const logger = { error: keep, warn: keep, info: keep }
  const { post, clock } = setUpCollector({ onError: undefined, logger } as never)
  for (let index = 0; index < 500; index++) {
    await post('/v1/page', {}, { headers: { 'content-type': 'application/json', authorization: basic('a gu3ss') } })
  }
  await clock.advance(60_000)

  expect(logged).toEqual([
    [{ code: 'write_key_unknown', path: '/v1/page' }, expect.any(String)],
    [{ code: 'write_key_unknown', more: 499 }, expect.any(String)],
  ])
  expect(JSON.stringify(logged)).not.toContain('gu3ss')
  expect(printed).toEqual([])
})

it.each([
  [
    'throws',
    () => {
      throw new Error('no log')
    },
    'no log',
  ],
  ['rejects with a string', () => Promise.reject('no log'), 'a thrown string'],
])('answers also when onError %s', async (_how, onError, detail) => {
  const warn = watchWarnings()
  const { post } = setUpCollector({ onError })
  expect((await post('/v1/batch', '')).status).toBe(400)
  await new Promise((resolve) => setImmediate(resolve))

  expect(warn.mock.calls).toEqual([[expect.any(String), { code: 'HOOKLINE_ON_ERROR', detail }]])
})

it('answers 500 when the host itself throws', async () => {
  const { post, errors } = setUpCollector()
  const bug = new TypeError('a bug')

  const answer = await post('/v1/batch', '', { readBody: () => Promise.reject(bug) })

  expect(answer.json).toMatchObject({ status: 500, code: 'internal' })
  expect(errors[0]?.cause).toBe(bug)
})
