/** Who gets in: this machine with the token, or whom `authorize` lets in; and what another site can do: nothing. */

import { createServer, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { createReceiver } from '../../../src/receive/create-receiver.ts'
import { manualClock } from '../../../src/testing/manual-clock.ts'
import type { PageAnswer } from '../src/endpoint/listener.ts'
import { type Authorize, createInspector } from '../src/index.ts'
import { type Asked, ask, closeLater, endpointOf, headerOf, logged, OWN_HEADERS, serve } from './support.ts'

function problemOf({ body }: PageAnswer): string {
  return JSON.parse(body as string).error
}

describe('without authorize', () => {
  it.each(['127.0.0.1', '127.8.9.1', '::1', '::ffff:127.0.0.1'])('lets %s in with the token', async (remoteAddress) => {
    const inspector = endpointOf()
    const headers = headerOf(inspector)
    expect(await ask(inspector, '/api/setup', { remoteAddress, headers })).toMatchObject({ status: 200 })
  })

  it.each(['localhost', 'LOCALHOST:3000', 'shop.localhost:3000', '127.0.0.1:3000', '[::1]:3000'])(
    'lets the Host %s in',
    async (host) => {
      const inspector = endpointOf()
      const headers = { ...headerOf(inspector), host }
      expect(await ask(inspector, '/api/setup', { headers })).toMatchObject({ status: 200 })
    },
  )

  it('takes a token of the app, which stays the same when it is started again; else each has its own', async () => {
    const token = 'a-token-of-the-app_0123456789-abc'
    const headers = headerOf(endpointOf({ token }))
    expect(await ask(endpointOf({ token }), '/api/setup', { headers })).toMatchObject({ status: 200 })
    for (const other of [headers, headerOf(endpointOf())]) {
      expect(await ask(endpointOf(), '/api/setup', { headers: other })).toMatchObject({ status: 403 })
    }
  })

  it.each([
    ['short', 'Got other text'],
    ['with a semicolon; and a space, 32 characters', 'Got other text'],
    ['', 'Got other text'],
    [7, 'Got a number'],
  ])('refuses the token %j, and does not repeat it', (token, found) => {
    const receiver = createReceiver({ secret: 'secret' })
    const create = () => createInspector({ receiver, token: token as string })
    expect(create).toThrow(found)
    if (token !== '') expect(create).not.toThrow(String(token))
  })

  it('refuses a token beside authorize', () => {
    const options = {
      receiver: createReceiver({ secret: 'secret' }),
      token: 'x'.repeat(32),
      authorize: () => false as const,
    } as const
    expect(() => createInspector(options)).toThrow('`token` cannot be combined with `authorize`')
  })

  const refusals: Record<string, [Asked, found: string]> = {
    'an address of the network': [{ remoteAddress: '192.168.1.7' }, 'a connection of another machine'],
    'an address that only begins like one': [{ remoteAddress: '127.0.0.1.evil' }, 'a connection of another machine'],
    'a mapped address of the network': [{ remoteAddress: '::ffff:10.0.0.1' }, 'a connection of another machine'],
    'no address': [{ remoteAddress: undefined }, 'an address that this host does not know'],
    'a name that leads here': [{ headers: { host: 'rebound.example:3000' } }, 'a Host that is not of this machine'],
    'a Host that begins like one': [{ headers: { host: 'localhost.evil.example' } }, 'a Host that is not of'],
    'a Host that ends like one': [{ headers: { host: 'evil-localhost' } }, 'a Host that is not of this machine'],
    'an address as a name': [{ headers: { host: '127.0.0.1.evil.example' } }, 'a Host that is not of this machine'],
    'a Host with a user': [{ headers: { host: 'localhost@evil.example' } }, 'a Host that is not of this machine'],
    'no Host': [{ headers: { host: undefined } }, 'a Host that is not of this machine'],
    'an empty Host': [{ headers: { host: '' } }, 'a Host that is not of this machine'],
    'two Hosts': [{ headers: { host: ['localhost:3000', 'localhost:3000'] } }, 'a Host that is not of this machine'],
    'two Hosts in one': [{ headers: { host: 'localhost, evil.example' } }, 'a Host that is not of this machine'],
    'another authority than its Host': [
      { headers: { host: 'localhost:3000', ':authority': 'evil.example' } },
      'a Host that is not of this machine',
    ],
    Forwarded: [{ headers: { forwarded: 'for=1.2.3.4' } }, 'a request with Forwarded'],
    'X-Forwarded-For': [{ headers: { 'x-forwarded-for': '127.0.0.1' } }, 'a request with X-Forwarded-For'],
    'an empty X-Forwarded-Host': [{ headers: { 'x-forwarded-host': '' } }, 'a request with X-Forwarded-Host'],
    'X-Real-IP': [{ headers: { 'x-real-ip': '127.0.0.1' } }, 'a request with X-Real-Ip'],
    Via: [{ headers: { via: '1.1 proxy' } }, 'a request with Via'],
    'CF-Connecting-IP': [{ headers: { 'cf-connecting-ip': '1.2.3.4' } }, 'a request with Cf-Connecting-Ip'],
    'True-Client-IP': [{ headers: { 'true-client-ip': '1.2.3.4' } }, 'a request with True-Client-Ip'],
    X_Forwarded_For: [{ headers: { x_forwarded_for: '1.2.3.4' } }, 'a request with X_forwarded_for'],
  }
  it.each(Object.entries(refusals))('refuses %s, although the token is right', async (_name, [request, found]) => {
    const inspector = endpointOf()
    const headers = { ...headerOf(inspector), ...request.headers }
    const answer = await ask(inspector, '/api/setup', { ...request, headers })
    expect(answer.status).toBe(403)
    expect(problemOf(answer)).toContain(`Got ${found}`)
    expect(problemOf(answer)).toContain('Pass `authorize` to createInspector')
    for (const file of ['/', '/page.js', '/page.css']) {
      expect(await ask(inspector, file, request)).toMatchObject({ status: 403 })
    }
  })

  it('has the token in the fragment of the URL, which no browser sends', () => {
    const inspector = endpointOf()
    const url = new URL(inspector.url('http://localhost:3000/hookline'))
    expect([url.pathname, url.search]).toEqual(['/hookline/', ''])
    expect(Buffer.from(url.hash.replace('#token=', ''), 'base64url')).toHaveLength(32)
    expect(inspector.url('http://localhost:3000/hookline/')).toBe(url.href)
  })

  it('takes the token in its header alone, so that no other port gets it from a browser', async () => {
    const inspector = endpointOf()
    const { 'x-hookline-inspector': token } = headerOf(inspector)
    const other = `${token.startsWith('A') ? 'B' : 'A'}${token.slice(1)}`
    const requests: Asked[] = [
      ...['', '1', other, `${token}x`, token.slice(1), [token, token]].map((given) => ({
        headers: { 'x-hookline-inspector': given },
      })),
      {},
      { headers: { cookie: `hookline_inspector_3000=${token}` } },
      { headers: { authorization: `Bearer ${token}` } },
      { query: `token=${token}` },
    ]
    for (const request of requests) {
      const answer = await ask(inspector, '/api/setup', request)
      expect([answer.status, problemOf(answer)]).toEqual([403, expect.stringContaining('needs the token')])
    }
  })

  it('sends a URL without its slash to the folder, whatever its name is', async () => {
    const inspector = endpointOf()
    const redirects = {
      '/hookline': './hookline/?a=x',
      '/a/b': './b/?a=x',
      '/a/javascript:b': './javascript:b/?a=x',
    }
    for (const [originalPath, location] of Object.entries(redirects)) {
      const answer = await ask(inspector, '/', { originalPath, query: 'a=x' })
      expect([answer.status, answer.headers.location]).toEqual([308, location])
    }
    expect(await ask(inspector, '/', { originalPath: '/hookline/' })).toMatchObject({ status: 200 })
  })
})

describe('what every answer has', () => {
  it('headers that keep the page to itself, also where it refuses', async () => {
    const inspector = endpointOf()
    const headers = headerOf(inspector)
    const answers = [
      ...(await Promise.all(inspector.routes.map((path) => ask(inspector, path, { headers })))),
      ...(await Promise.all(inspector.routes.map((path) => ask(inspector, path)))),
      await ask(inspector, '/', { originalPath: '/hookline' }),
    ]
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 308, 400, 403, 404, 405]))
    for (const { headers } of answers) {
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

  it('no token', async () => {
    const inspector = endpointOf()
    const headers = headerOf(inspector)
    const token = headers['x-hookline-inspector']
    for (const path of inspector.routes) {
      for (const request of [{}, { headers }, { remoteAddress: '1.2.3.4', query: `token=${token}` }]) {
        const { headers, body } = await ask(inspector, path, request)
        expect(JSON.stringify([headers, body])).not.toContain(token)
      }
    }
  })

  it('a refusal of the page is a page', async () => {
    const inspector = endpointOf()
    const answer = await ask(inspector, '/', { headers: { 'x-forwarded-&<': '' } })
    expect(answer).toMatchObject({ status: 403, headers: { 'content-type': 'text/html; charset=utf-8' } })
    expect(answer.body).toContain('X-Forwarded-&#38;&#60;')
  })
})

describe('what can be asked for', () => {
  it.each([
    '/../package.json',
    '/%2e%2e/package.json',
    '/..%5cpackage.json',
    '/page.js/../../package.json',
    '//page.js',
    '/page.js/',
    '/page.js%00',
    '/PAGE.JS',
    '/page.js.map',
    '/__proto__',
    '/constructor',
    '/api',
    '/api/',
    '',
  ])('not %j', (path) => {
    const request = { method: 'GET', path, query: '', headers: {}, remoteAddress: '127.0.0.1' }
    expect(endpointOf().handle(request as never)).toBeUndefined()
  })

  it('refuses methods that a route does not have', async () => {
    const inspector = endpointOf()
    const headers = { ...OWN_HEADERS, ...headerOf(inspector) }
    for (const [path, method, allow] of [
      ['/', 'POST', 'GET, HEAD'],
      ['/page.js', 'DELETE', 'GET, HEAD'],
      ['/api/stream', 'OPTIONS', 'GET, HEAD'],
      ['/api/drop', 'GET', 'POST'],
      ['/api/drop', 'HEAD', 'POST'],
      ['/api/drop', 'PUT', 'POST'],
    ] as const) {
      const answer = await ask(inspector, path, { method, headers })
      expect([answer.status, answer.headers.allow]).toEqual([405, allow])
    }
    for (const path of ['/', '/api/setup', '/api/stream']) {
      expect(await ask(inspector, path, { method: 'HEAD', headers })).toMatchObject({ status: 200 })
    }
  })
})

describe('another site', () => {
  const posts: Record<string, [Asked['headers'], status: number, found: string]> = {
    'without the header': [{ 'x-hookline-inspector': undefined }, 403, 'The inspector needs the token of its URL'],
    'with another value of it': [{ 'x-hookline-inspector': '1' }, 403, 'The inspector needs the token of its URL'],
    'as a form': [
      { 'content-type': 'application/x-www-form-urlencoded' },
      415,
      'content type must be application/json',
    ],
    'as text': [{ 'content-type': 'text/plain' }, 415, 'content type must be application/json'],
    'of another origin': [{ origin: 'http://evil.example' }, 403, 'Got an Origin of another site'],
    'of another port': [{ origin: 'http://localhost:3001' }, 403, 'Got an Origin of another site'],
    'of an extension': [{ origin: 'chrome-extension://localhost:3000' }, 403, 'Got an Origin of another site'],
    'of a sandbox': [{ origin: 'null' }, 403, 'Got an Origin of another site'],
    'of another site': [{ 'sec-fetch-site': 'cross-site' }, 403, 'Got a Sec-Fetch-Site of another site'],
    'of the same site': [{ 'sec-fetch-site': 'same-site' }, 403, 'Got a Sec-Fetch-Site of another site'],
    'that a person typed': [{ 'sec-fetch-site': 'none' }, 403, 'Got a Sec-Fetch-Site of another site'],
  }
  it.each(Object.entries(posts))('cannot post %s', async (_name, [headers, status, found]) => {
    const inspector = endpointOf()
    for (const path of ['/api/redrive', '/api/drop', '/api/replay', '/api/send-again']) {
      const answer = await ask(inspector, path, {
        method: 'POST',
        headers: { ...OWN_HEADERS, ...headerOf(inspector), ...headers },
        body: {},
      })
      expect([answer.status, problemOf(answer)]).toEqual([status, expect.stringContaining(found)])
    }
  })

  it('cannot read the data', async () => {
    const inspector = endpointOf()
    const read = (headers: Asked['headers']) =>
      ask(inspector, '/api/setup', { headers: { ...headerOf(inspector), ...headers } })
    for (const site of ['cross-site', 'same-site', 'anything']) {
      expect(await read({ 'sec-fetch-site': site })).toMatchObject({ status: 403 })
    }
    expect(await read({ origin: 'http://evil.example' })).toMatchObject({ status: 403 })
    for (const site of ['same-origin', 'none'])
      expect(await read({ 'sec-fetch-site': site })).toMatchObject({ status: 200 })
  })

  it('a body may be a megabyte', async () => {
    const inspector = endpointOf()
    const headers = { ...OWN_HEADERS, ...headerOf(inspector) }
    const send = (body: unknown) => ask(inspector, '/api/send-again', { method: 'POST', headers, body })
    const large = await send({ sender: 'x'.repeat(1_000_000) })
    expect([large.status, large.headers.connection]).toEqual([413, 'close'])
    expect(await send('[1')).toMatchObject({ status: 400 })
    expect(await send([])).toMatchObject({ status: 400 })
  })
})

describe('authorize', () => {
  function authorizedBy(authorize: unknown) {
    const { log, lines } = logged()
    return { lines, inspector: endpointOf({ authorize: authorize as Authorize, log }) }
  }
  const postEmpty: Asked = { method: 'POST', headers: OWN_HEADERS, body: {} }

  it('decides alone, over any connection', async () => {
    const seen: unknown[] = []
    const { inspector } = authorizedBy((request: unknown) => seen.push(request) && 'read')
    const headers = { host: 'admin.example', 'x-forwarded-for': '1.2.3.4' }
    const answer = await ask(inspector, '/api/setup', { remoteAddress: '10.0.0.1', headers })
    expect(JSON.parse(answer.body as string)).toMatchObject({ access: 'read' })
    expect(seen).toEqual([{ method: 'GET', path: '/api/setup', headers, remoteAddress: '10.0.0.1' }])
    expect(() => inspector.url('http://x')).toThrow(TypeError)
  })

  it("changes need 'write'", async () => {
    const answer = await ask(authorizedBy(async () => 'read').inspector, '/api/drop', postEmpty)
    expect([answer.status, problemOf(answer)]).toEqual([403, expect.stringContaining("Got 'read'")])
    expect(await ask(authorizedBy(async () => 'write').inspector, '/api/drop', postEmpty)).toMatchObject({
      status: 404,
    })
    const { 'x-hookline-inspector': _, ...withoutOwn } = OWN_HEADERS
    const form = await ask(authorizedBy(() => 'write').inspector, '/api/drop', { ...postEmpty, headers: withoutOwn })
    expect([form.status, problemOf(form)]).toEqual([403, expect.stringContaining('X-Hookline-Inspector: 1. Got none')])
  })

  it('refuses with false, and says nothing of that in the log', async () => {
    for (const authorize of [() => false, async () => false]) {
      const { inspector, lines } = authorizedBy(authorize)
      for (const path of ['/', '/page.js', '/api/setup', '/api/stream']) {
        expect(await ask(inspector, path)).toMatchObject({ status: 403 })
      }
      expect(lines).toEqual([])
    }
  })

  const broken: Record<string, () => unknown> = {
    throws: () => {
      throw new Error('the database is away')
    },
    rejects: () => Promise.reject(new Error('the database is away')),
    'returns true': () => true,
    'returns nothing': () => undefined,
    'returns another word': () => 'admin',
    'returns an object': () => ({ access: 'write' }),
  }
  it.each(Object.entries(broken))('refuses, with a line in the log, when it %s', async (_name, authorize) => {
    const { inspector, lines } = authorizedBy(authorize)
    const answer = await ask(inspector, '/api/setup')
    expect(answer.status).toBe(403)
    expect(answer.body).not.toContain('database')
    expect(lines).toEqual([expect.stringContaining('`authorize`')])
  })
})

it('authorize that does not answer refuses, and holds no request for ever', async () => {
  const machine = manualClock()
  const { log, lines } = logged()
  const asked = ask(endpointOf({ authorize: () => new Promise(() => {}), log, machine }), '/api/setup')
  await machine.advance(10_000)
  expect(await asked).toMatchObject({ status: 403 })
  expect(lines).toEqual([expect.stringContaining('did not answer within 10 seconds')])
})

describe('over a reverse proxy of this machine', () => {
  /** Passes each request on as it is, with these headers more, as proxies do with the Host of what they stand before. */
  async function startProxy(target: string, added: Record<string, string>): Promise<string> {
    const proxy = createServer((incoming, outgoing) => {
      const { method, url: path, headers } = incoming
      const { host, hostname, port } = new URL(target)
      const passed = httpRequest(
        { hostname, port, method, path, headers: { ...headers, host, ...added } },
        (response) => {
          outgoing.writeHead(response.statusCode as number, response.headers)
          response.pipe(outgoing)
        },
      )
      incoming.pipe(passed)
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => proxy.once('listening', resolve))
    closeLater(() => {
      proxy.close()
      proxy.closeAllConnections()
    })
    return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
  }

  it('one that says so is refused; of one that does not, the token is asked for', async () => {
    const inspector = endpointOf()
    const target = await serve(inspector)
    const open = await startProxy(target, {})
    const named = await startProxy(target, { 'x-forwarded-for': '203.0.113.9' })

    for (const path of ['/api/setup', '/api/stream']) {
      const [byOpen, byNamed] = await Promise.all([fetch(open + path), fetch(named + path)])
      expect([byOpen.status, byNamed.status]).toEqual([403, 403])
      expect(await byOpen.text()).toContain('needs the token')
      expect(await byNamed.text()).toContain('X-Forwarded-For')
    }
    const headers = headerOf(inspector)
    for (const path of ['/', '/api/setup']) expect((await fetch(named + path, { headers })).status).toBe(403)
    expect((await fetch(`${open}/api/setup`, { headers })).status).toBe(200)
  })
})
