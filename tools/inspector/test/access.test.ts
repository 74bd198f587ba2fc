/** Access to the page: with the token on this machine, or by `authorize`. Another site can do nothing. */

import { expect, it } from 'vitest'
import { createReceiver } from '../../../src/receive/create-receiver.ts'
import { manualClock } from '../../../src/testing/manual-clock.ts'
import { throwing } from '../../../test/support/throwing.ts'
import type { PageAnswer } from '../src/endpoint/listener.ts'
import { type Access, type Authorize, createInspector } from '../src/index.ts'
import { type Asked, ask, endpointOf, headerOf, logged, OWN_HEADERS } from './support.ts'

const receiver = createReceiver({ secret: 'secret' })
const CHANGES = ['/api/redrive', '/api/drop', '/api/replay', '/api/stop-replay', '/api/send-again']

const fail = throwing('the database is unavailable')

function problemOf({ body }: PageAnswer): string {
  return JSON.parse(body as string).error
}

function setupOf(request: Asked = {}, inspector = endpointOf()): Promise<PageAnswer> {
  return ask(inspector, '/api/setup', { ...request, headers: { ...headerOf(inspector), ...request.headers } })
}

it.each<Asked>([
  ...['127.0.0.1', '127.8.9.1', '::1', '::ffff:127.0.0.1'].map((remoteAddress) => ({ remoteAddress })),
  ...['localhost', 'LOCALHOST:3000', 'shop.localhost:3000', '127.0.0.1:3000', '[::1]:3000'].map((host) => ({
    headers: { host },
  })),
])('%j gets in with the token', async (request) => {
  expect(await setupOf(request)).toMatchObject({ status: 200 })
})

it('a token of the app stays the same when the app is started again; without one, each start has its own', async () => {
  const token = 'a-token-of-the-app_0123456789-abc'
  const headers = headerOf(endpointOf({ token }))
  expect(await setupOf({ headers }, endpointOf({ token }))).toMatchObject({ status: 200 })
  for (const other of [headers, headerOf(endpointOf())]) {
    expect(await setupOf({ headers: other })).toMatchObject({ status: 403 })
  }
})

it.each(['x'.repeat(31), 'x'.repeat(257), 'with a semicolon; and a space, 32 characters', '', 7])(
  'the token %j is refused, and not repeated',
  (token) => {
    const create = () => createInspector({ receiver, token: token as string })
    expect(create).toThrow(/`token`/)
    if (token !== '') expect(create).not.toThrow(String(token))
  },
)

it.each<Asked>([
  ...['192.168.1.7', '127.0.0.1.evil', '::ffff:10.0.0.1'].map((remoteAddress) => ({ remoteAddress })),
  ...['rebound.example:3000', 'localhost.evil.example', 'evil-localhost', undefined, ['localhost', 'localhost']].map(
    (host) => ({ headers: { host } }),
  ),
  { headers: { host: 'localhost:3000', ':authority': 'evil.example' } },
  { headers: { host: 'evil.example', ':authority': 'localhost:3000' } },
  ...`forwarded x-forwarded-for x-forwarded-host x_forwarded_for x-real-ip via cf-connecting-ip true-client-ip cdn-loop
    cf-ray x-original-host x-envoy-external-address x-user-ip x-socket-ip my-forwarded`
    .split(/\s+/)
    .map((name) => ({ headers: { [name]: '' } })),
])('%j is refused, although the token is right, with the name of what helps', async (request) => {
  const inspector = endpointOf()
  const answer = await setupOf(request, inspector)
  expect([answer.status, problemOf(answer)]).toEqual([403, expect.stringContaining('`authorize`')])
  for (const file of ['/', '/page.js', '/page.css']) {
    expect(await ask(inspector, file, request)).toMatchObject({ status: 403 })
  }
})

it('the token is in the fragment of the URL, which no browser sends', () => {
  const inspector = endpointOf()
  const url = new URL(inspector.url('http://localhost:3000/hookline'))
  expect([url.pathname, url.search]).toEqual(['/hookline/', ''])
  expect(Buffer.from(url.hash.replace('#token=', ''), 'base64url')).toHaveLength(32)
  expect(inspector.url('http://localhost:3000/hookline/')).toBe(url.href)
})

it('the token is taken in its header alone, so that no other port gets it from a browser', async () => {
  const inspector = endpointOf()
  const { 'x-hookline-inspector': token } = headerOf(inspector)
  const other = `${token.startsWith('A') ? 'B' : 'A'}${token.slice(1)}`
  const wrong = ['', '1', other, `${token}x`, token.slice(1), [token, token]]
  const requests: Asked[] = [
    ...wrong.map((given) => ({ headers: { 'x-hookline-inspector': given } })),
    {},
    { headers: { cookie: `hookline_inspector_3000=${token}`, authorization: `Bearer ${token}` } },
    { query: `token=${token}` },
  ]
  for (const request of requests) {
    const answer = await ask(inspector, '/api/setup', request)
    expect([answer.status, problemOf(answer)]).toEqual([403, expect.stringContaining('must have the token')])
  }
})

it('every answer has headers that keep the page to itself, and no token, also where it refuses', async () => {
  const inspector = endpointOf()
  const headers = headerOf(inspector)
  const { 'x-hookline-inspector': token } = headers
  const query = `token=${token}`
  const requests: readonly Asked[] = [{ headers, query }, { query }]
  const answers = [
    ...(await Promise.all(requests.flatMap((each) => inspector.routes.map((path) => ask(inspector, path, each))))),
    await ask(inspector, '/', { originalPath: '/hookline' }),
  ]
  expect(JSON.stringify(answers)).not.toContain(token)
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 308, 400, 403, 404, 405]))
  const stream = await ask(inspector, '/api/stream', { headers })
  const unbuffered = { 'cache-control': 'no-store, no-transform', 'x-accel-buffering': 'no' }
  expect(stream.headers, 'compression would hold events back').toMatchObject(unbuffered)
  for (const { headers } of [...answers, stream]) {
    expect(headers).toMatchObject({
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      'x-content-type-options': 'nosniff',
      'cache-control': expect.stringMatching(/^no-store(, no-transform)?$/),
      'referrer-policy': 'no-referrer',
      'cross-origin-resource-policy': 'same-origin',
      'cross-origin-opener-policy': 'same-origin',
      'x-frame-options': 'DENY',
    })
    expect(headers).not.toHaveProperty('access-control-allow-origin')
    expect(headers).not.toHaveProperty('set-cookie')
  }
})

it('a refusal of the page is a page', async () => {
  const inspector = endpointOf()
  const answer = await ask(inspector, '/', { headers: { 'x-forwarded-&<': '' } })
  expect(answer).toMatchObject({ status: 403, headers: { 'content-type': 'text/html; charset=utf-8' } })
  expect(answer.body).toContain('X-Forwarded-&#38;&#60;')
})

it.each([
  ...['/../package.json', '/%2e%2e/package.json', '/page.js/../../package.json', '//page.js', '/page.js%00'],
  ...['/PAGE.JS', '/__proto__', '/api/', ''],
])('%j cannot be asked for', (path) => {
  const request = { method: 'GET', path, query: '', headers: {}, remoteAddress: '127.0.0.1' }
  expect(endpointOf().handle(request as never)).toBeUndefined()
})

it.each<Asked['headers']>([
  ...[undefined, '1'].map((token) => ({ 'x-hookline-inspector': token })),
  ...['application/x-www-form-urlencoded', 'text/plain'].map((type) => ({ 'content-type': type })),
  ...['http://evil.example', 'http://localhost:3001', 'chrome-extension://localhost:3000', 'null'].map((origin) => ({
    origin,
  })),
  ...['cross-site', 'same-site', 'none'].map((site) => ({ 'sec-fetch-site': site })),
])('another site cannot post with %j', async (headers) => {
  const status = headers?.['content-type'] === undefined ? 403 : 415
  const inspector = endpointOf()
  for (const path of CHANGES) {
    const request = { ...OWN_HEADERS, ...headerOf(inspector), ...headers }
    expect(await ask(inspector, path, { method: 'POST', headers: request, body: {} })).toMatchObject({ status })
  }
})

it('another site cannot read the data', async () => {
  const read = (headers: Record<string, string>) => setupOf({ headers })
  for (const site of ['cross-site', 'same-site', 'anything']) {
    expect(await read({ 'sec-fetch-site': site })).toMatchObject({ status: 403 })
  }
  expect(await read({ origin: 'http://evil.example' })).toMatchObject({ status: 403 })
  for (const site of ['same-origin', 'none']) {
    expect(await read({ 'sec-fetch-site': site })).toMatchObject({ status: 200 })
  }
})

function authorizedBy(authorize: unknown) {
  const { log, lines } = logged()
  return { lines, inspector: endpointOf({ authorize: authorize as Authorize, log }) }
}

it('authorize decides alone, over any connection', async () => {
  const seen: unknown[] = []
  const { inspector } = authorizedBy((request: unknown) => seen.push(request) && 'read')
  const headers = { host: 'admin.example', 'x-forwarded-for': '1.2.3.4' }
  const answer = await ask(inspector, '/api/setup', { remoteAddress: '10.0.0.1', headers })
  expect(JSON.parse(answer.body as string)).toMatchObject({ access: 'read' })
  expect(seen).toEqual([{ method: 'GET', path: '/api/setup', headers, remoteAddress: '10.0.0.1' }])
  expect(() => inspector.url('http://x')).toThrow(TypeError)
})

it("with authorize, changes need 'write'", async () => {
  const change = async (path: string, access: Access, headers = OWN_HEADERS) =>
    (await ask(authorizedBy(async () => access).inspector, path, { method: 'POST', headers, body: {} })).status
  const { 'x-hookline-inspector': _, ...withoutOwn } = OWN_HEADERS
  for (const path of CHANGES) expect(await change(path, 'read')).toBe(403)
  expect([await change('/api/drop', 'write'), await change('/api/drop', 'write', withoutOwn)]).toEqual([404, 403])
})

it.each<[string, () => unknown, noted?: string]>([
  ['returns false', () => false],
  ['resolves to false', async () => false],
  ['throws', () => fail(), '`authorize`'],
  ['rejects', async () => fail(), '`authorize`'],
  ['returns true', () => true, '`authorize`'],
  ['returns nothing', () => undefined, '`authorize`'],
  ['returns an object', () => ({ access: 'write' }), '`authorize`'],
])('authorize that %s refuses, and is in the log if it is at fault: %s', async (_name, authorize, noted) => {
  for (const path of ['/', '/page.js', '/api/setup', '/api/stream']) {
    const { inspector, lines } = authorizedBy(authorize)
    const answer = await ask(inspector, path)
    expect(answer).toMatchObject({ status: 403, body: expect.not.stringContaining('database') })
    expect(lines).toEqual(noted === undefined ? [] : [expect.stringContaining(noted)])
  }
})

it('authorize that does not answer refuses, and holds no request for ever', async () => {
  const machine = manualClock()
  const { log, lines } = logged()
  const asked = ask(endpointOf({ authorize: () => new Promise(() => {}), log, machine }), '/api/setup')
  await machine.advance(10_000)
  expect(await asked).toMatchObject({ status: 403 })
  expect(lines).toEqual([expect.stringContaining('`authorize`')])
})
