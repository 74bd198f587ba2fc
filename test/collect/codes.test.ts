import { expect, it, vi } from 'vitest'
import type { EndpointRequest } from '../../src/host/endpoint.ts'
import { HooklineError, type HooklineErrorCode } from '../../src/protocol/error.ts'
import { basic, recorder, setUpCollector, writeKey } from '../support/collect.ts'
import { watchConsole } from '../support/console.ts'
import { keepLines } from '../support/logger.ts'
import { throwing } from '../support/throwing.ts'

const fails = (code: HooklineErrorCode) => () => Promise.reject(new HooklineError(code, 'from elsewhere'))
const json = { 'content-type': 'application/json' }
const batch = { batch: [{ type: 'page', userId: 'u' }] }

/** The codes that the other tests of the collector do not bring about on the way from a host or a queue. Headers: test/host. */
it.each<[HooklineErrorCode, number, Partial<EndpointRequest>]>([
  ['method_not_allowed', 405, { method: 'GET' }],
  ['body_too_large', 413, { readBody: fails('body_too_large') }],
  ['body_aborted', 400, { readBody: fails('body_aborted') }],
  ['body_consumed', 500, { readBody: fails('body_consumed') }],
])('answers %s, which pages of any site may read, and reports it', async (code, status, changes) => {
  const { post, errors } = setUpCollector()

  const answer = await post('/v1/batch', batch, changes)

  expect(answer).toMatchObject({ status, json: { status, code } })
  expect(answer.headers).toMatchObject({
    'content-type': 'application/problem+json',
    'access-control-allow-origin': '*',
    'access-control-expose-headers': 'retry-after',
  })
  expect(errors.map((error) => error.code)).toEqual([code])
})

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

it('a logger gets the lines in place of the console, with the path', async () => {
  const printed = watchConsole()
  const { logger, lines } = keepLines()
  const { post, clock } = setUpCollector({ onError: undefined, logger } as never)
  for (let index = 0; index < 500; index++) {
    await post('/v1/page', {}, { headers: { ...json, authorization: basic('a gu3ss') } })
  }
  await clock.advance(60_000)

  expect(lines).toEqual([
    ['warn', { code: 'write_key_unknown', path: '/v1/page' }, expect.stringMatching(/ at \/v1\/page: [^\n]+$/)],
    ['warn', { code: 'write_key_unknown', more: 499 }, expect.any(String)],
  ])
  expect(JSON.stringify(lines)).not.toContain('gu3ss')
  expect(printed).toEqual([])
})

it('answers 500 when the host itself throws', async () => {
  const { post, errors } = setUpCollector()
  const bug = new TypeError('a bug')
  const answer = await post('/v1/batch', '', { readBody: throwing(bug) })
  expect(answer.json).toMatchObject({ status: 500, code: 'internal' })
  expect(errors[0]?.cause).toBe(bug)
})
