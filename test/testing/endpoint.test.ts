/** The scripted endpoint, called over real sockets. */

import { once } from 'node:events'
import { connect } from 'node:net'
import { Pool } from 'undici'
import { afterEach, describe, expect, it } from 'vitest'
import { verify } from '../../src/protocol/signature.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import type { Step } from '../../src/testing/script.ts'
import { type EndpointOptions, type ScriptedEndpoint, startEndpoint } from '../../src/testing/scripted-endpoint.ts'
import { signedRequest } from '../../src/testing/signed-request.ts'
import { until } from '../support/until.ts'
import { errorOf, post } from './post.ts'

const running: ScriptedEndpoint[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((endpoint) => endpoint.close()))
})

async function start(options?: EndpointOptions): Promise<ScriptedEndpoint> {
  const endpoint = await startEndpoint(options)
  running.push(endpoint)
  return endpoint
}

async function statuses(url: string, count: number): Promise<number[]> {
  const all: number[] = []
  for (let left = count; left > 0; left -= 1) all.push((await post(url)).status)
  return all
}

describe('the script', () => {
  it('answers 500 for a function that throws, and close() says why', async () => {
    const endpoint = await startEndpoint({
      script: [
        () => {
          throw new Error('not this one')
        },
        () => 'nonsense' as Step,
      ],
    })
    expect(await statuses(endpoint.url, 2)).toEqual([500, 500])
    await expect(endpoint.close()).rejects.toThrow('not this one')
  })

  it('answers 500 for a header that cannot be sent, and close() says which', async () => {
    const endpoint = await startEndpoint({ script: [() => ({ headers: { 'x-a': 'a\nb' } })] })
    expect(await statuses(endpoint.url, 1)).toEqual([500])
    await expect(endpoint.close()).rejects.toThrow(/^`script\[0\]\(request\)\.headers` .*"x-a"/)
  })

  it.each([0, 5])('answers 500 for headers that do not go together, after %i ms too', async (delayMs) => {
    const headers = { 'content-length': '2', trailer: 'x-sum' }
    const endpoint = await startEndpoint({ script: [{ headers, body: 'ok', delayMs }] })
    expect(await statuses(endpoint.url, 1)).toEqual([500])
    await expect(endpoint.close()).rejects.toThrow('Trailers are invalid')
  })

  it('names the function whose step is none', async () => {
    const endpoint = await startEndpoint({ script: [200, () => 'nonsense' as Step] })
    expect(await statuses(endpoint.url, 2)).toEqual([200, 500])
    await expect(endpoint.close()).rejects.toThrow(/^`script\[1\]\(request\)` must be a step\. Got 'nonsense'\./)
  })
})

describe('a step', () => {
  it('delayMs holds the answer back', async () => {
    const { url } = await start({ script: [{ delayMs: 40 }] })
    const before = performance.now()
    expect((await post(url)).status).toBe(200)
    expect(performance.now() - before).toBeGreaterThanOrEqual(39)
  })

  it("'hang' reads the request and never answers", async () => {
    const endpoint = await start({ script: ['hang'] })
    const leaving = new AbortController()
    const outcome = post(endpoint.url, 'body', { signal: leaving.signal })
    const [request] = await endpoint.received(1)
    expect(request?.bytes.toString()).toBe('body')
    setTimeout(() => leaving.abort(), 60)
    await expect(outcome).rejects.toThrow('aborted')
  })

  it.each<[string, Step]>([
    ["'drip'", 'drip'],
    ['dripMs', { dripMs: 5 }],
  ])('%s sends headers, and bytes without end', async (_name, step) => {
    const { url } = await start({ script: [step] })
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.write('POST /webhooks HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n')
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    await until(() => text.split('1\r\n.\r\n').length > 3)
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    socket.destroy()
    await once(socket, 'close')
  })

  it.each<[Step, string]>([
    ['reset', 'ECONNRESET'],
    [{ reset: 'headers' }, 'ECONNRESET'],
    [{ reset: 'body' }, 'ECONNRESET'],
    ['close', 'UND_ERR_SOCKET'],
  ])('%j ends in %s', async (step, code) => {
    const { url } = await start({ script: [step, 200] })
    expect(await errorOf(post(url))).toMatchObject({ code })
    expect((await post(url)).status).toBe(200)
  })

  it("'garbage' is not HTTP", async () => {
    const { url } = await start({ script: ['garbage'] })
    expect(await errorOf(post(url))).toMatchObject({ name: 'HTTPParserError' })
  })

  it.each<['answer' | 'chunk', RegExp]>([
    ['answer', /content-length: 16\r\n(.+\r\n)*\r\nHalf of $/],
    ['chunk', /transfer-encoding: chunked\r\n(.+\r\n)*\r\n8\r\nHalf of \r\n$/i],
  ])('reset: %s sends the first half', async (reset, half) => {
    const { url } = await start({ script: [{ reset }] })
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.write('POST /webhooks HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n')
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    const [error] = await once(socket, 'error').catch((error) => [error])
    expect(error).toMatchObject({ code: 'ECONNRESET' })
    expect(text).toMatch(half)
  })

  it('reset: headers does not wait for the body, and is no request', async () => {
    const endpoint = await start({ script: [{ reset: 'headers' }] })
    const socket = connect(Number(new URL(endpoint.url).port), '127.0.0.1')
    socket.write('POST /webhooks HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n')
    await expect(once(socket, 'end')).rejects.toMatchObject({ code: 'ECONNRESET' })
    expect(endpoint.requests).toEqual([])
  })
})

describe('what came', () => {
  it('is kept with everything a test may ask', async () => {
    const endpoint = await start()
    const { headers, body } = signedRequest(JSON.stringify(fixtures.track), 'secret')
    const before = Date.now()
    await post(`${endpoint.url}/eu?x=1`, body, { headers: { ...headers, 'x-twice': ['a', 'b'] } })
    const [request] = endpoint.requests
    expect(request).toMatchObject({ method: 'POST', url: `${endpoint.url}/eu?x=1`, path: '/webhooks/eu?x=1' })
    expect(request?.headers).toMatchObject({ 'content-type': 'application/json', 'x-twice': 'a, b' })
    expect(verify(request?.bytes ?? Buffer.alloc(0), request?.headers['x-signature'], 'secret')).toBe(true)
    expect(request?.message).toEqual(fixtures.track)
    expect(request?.message).toBe(request?.message)
    expect(endpoint.messages).toEqual([fixtures.track])
    expect(request?.at.getTime()).toBeGreaterThanOrEqual(before)
    expect(request?.at.getTime()).toBeLessThanOrEqual(Date.now())
  })

  it('may come over one connection, which the endpoint never ends by itself', async () => {
    const endpoint = await start()
    const pool = new Pool(new URL(endpoint.url).origin, { connections: 1 })
    for (const body of ['one', 'two']) {
      const answer = await pool.request({ path: '/webhooks', method: 'POST', body })
      expect([await answer.body.text(), answer.headers['keep-alive']]).toEqual(['', undefined])
    }
    await pool.close()
    expect([endpoint.requests.length, endpoint.connections]).toEqual([2, 1])
  })

  it('may be no message', async () => {
    const endpoint = await start()
    await post(endpoint.url, 'hello')
    expect(() => endpoint.messages).toThrow('The body must be valid JSON.')
    expect(() => endpoint.requests[0]?.message).toThrow('The body must be valid JSON.')
  })

  it('is waited for', async () => {
    const endpoint = await start()
    const received = endpoint.received(2)
    await post(endpoint.url, 'one')
    await post(endpoint.url, 'two')
    await post(endpoint.url, 'three')
    expect((await received).map(({ bytes }) => bytes.toString())).toEqual(['one', 'two'])
    expect(await endpoint.received(1)).toHaveLength(1)
  })

  it('is waited for within bounds', async () => {
    const endpoint = await start()
    await post(endpoint.url)
    const waited = endpoint.received(3, { timeoutMs: 20 })
    await expect(waited).rejects.toThrow('Waited 20 ms for 3 requests. Got 1.')
  })

  it('is counted in connections and bytes, whole requests or not', async () => {
    const endpoint = await start()
    expect([endpoint.connections, endpoint.bytesReceived]).toEqual([0, 0])
    const socket = connect(Number(new URL(endpoint.url).port), '127.0.0.1')
    const part = 'POST /webhooks HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nhalf'
    socket.write(part)
    await until(() => endpoint.bytesReceived === part.length)
    socket.destroy()
    await post(endpoint.url, 'whole')
    expect(endpoint.connections).toBe(2)
    expect(endpoint.requests.map(({ bytes }) => bytes.toString())).toEqual(['whole'])
  })
})

describe('close()', () => {
  it('ends what hangs and stops listening; a second time does no harm', async () => {
    const endpoint = await startEndpoint({ script: ['hang', 'drip', { delayMs: 60_000 }] })
    const outcomes = [1, 2, 3].map(() => errorOf(post(endpoint.url)))
    await endpoint.received(3)
    await endpoint.close()
    const [hung, dripped, held] = await Promise.all(outcomes)
    expect([hung?.code, held?.code]).toEqual(['UND_ERR_SOCKET', 'UND_ERR_SOCKET'])
    expect(dripped).toBeInstanceOf(Error) // The headers of its answer were there, or not yet.
    expect(await errorOf(post(endpoint.url))).toMatchObject({ code: 'ECONNREFUSED' })
    await endpoint.close()
  })

  it('leaves the port to the next', async () => {
    const first = await startEndpoint()
    const port = Number(new URL(first.url).port)
    expect(await errorOf(startEndpoint({ port }))).toMatchObject({ code: 'EADDRINUSE' })
    await post(first.url)
    await first.close()
    const second = await start({ port, script: [201] })
    expect(second.url).toBe(first.url)
    expect((await post(first.url)).status).toBe(201)
  })

  it('is what `await using` does', async () => {
    let url = ''
    {
      await using endpoint = await startEndpoint()
      url = endpoint.url
      expect((await post(url)).status).toBe(200)
    }
    expect(await errorOf(post(url))).toMatchObject({ code: 'ECONNREFUSED' })
  })
})

describe('options', () => {
  it.each<[object, RegExp]>([
    [{ scripts: [] }, /^`scripts` is not an option\. .*Valid options: script, path, port, tls\.$/],
    [{ path: 'webhooks' }, /^`path` must begin with/],
    [{ path: 7 }, /^`path` must begin with/],
    [{ port: 65_536 }, /^`port` must be a whole number from 0 to 65535\./],
    [{ tls: 'good' }, /^`tls` must be one of 'self_signed', 'expired', 'wrong_name', 'private_ca'\./],
    [{ script: [] }, /^`script` must be a non-empty list\. Got an empty list\./],
    [{ script: 200 }, /^`script` must be a non-empty list\. Got 200\./],
    [{ script: [200, 'hangs'] }, /^`script\[1\]` must be a step\. Got 'hangs'\./],
    [{ script: ['refused'] }, /^`script\[0\]` must be a step\. Got 'refused'\./],
    [{ script: [null] }, /^`script\[0\]` must be a step\. Got null\./],
    [{ script: [100] }, /^`script\[0\]\.status` must be a whole number from 200 to 599\./],
    [{ script: [600] }, /^`script\[0\]\.status` must be/],
    [{ script: [{ status: '200' }] }, /^`script\[0\]\.status` must be/],
    [{ script: [{ code: 200 }] }, /^`script\[0\]\.code` is not an option\. .*Valid options: status,/],
    [{ script: [{ headers: { a: 1 } }] }, /^`script\[0\]\.headers` must be an object of strings\./],
    [{ script: [{ headers: null }] }, /^`script\[0\]\.headers` must be an object of strings\./],
    [{ script: [{ headers: { 'x a': '1' } }] }, /^`script\[0\]\.headers` .*"x a"/],
    [{ script: [{ headers: { 'x-a': '1\n2' } }] }, /^`script\[0\]\.headers` .*"x-a"/],
    [{ script: [{ body: {} }] }, /^`script\[0\]\.body` must be text or bytes\. Got an object\./],
    [{ script: [{ delayMs: -1 }] }, /^`script\[0\]\.delayMs` must be a whole number from 0/],
    [{ script: [{ delayMs: 2 ** 31 }] }, /^`script\[0\]\.delayMs` must be/],
    [{ script: [{ dripMs: 0 }] }, /^`script\[0\]\.dripMs` must be a whole number from 1/],
    [{ script: [{ dripMs: 1, body: 'x' }] }, /^`script\[0\]\.dripMs` must stand alone\. Got a body beside it\./],
    [{ script: [{ reset: 'soon' }] }, /^`script\[0\]\.reset` must be one of 'headers', 'body', 'answer', 'chunk'\./],
    [
      { script: [{ reset: 'body', status: 200 }] },
      /^`script\[0\]\.status` is not an option\. .*Valid options: reset\.$/,
    ],
  ])('%j is a TypeError', async (options, message) => {
    const error = await errorOf(startEndpoint(options))
    expect(error).toBeInstanceOf(TypeError)
    expect(error.message).toMatch(message)
  })

  it('the arguments of received are checked too', async () => {
    const endpoint = await start({ path: '/' })
    expect(new URL(endpoint.url).pathname).toBe('/')
    await expect(endpoint.received(0)).rejects.toThrow(/^`count` must be a whole number from 1 to 2147483647\./)
    await expect(endpoint.received(1, { timeoutMs: 0.5 })).rejects.toThrow(/^`timeoutMs` must be/)
    await expect(endpoint.received(1, { timeout: 5 } as never)).rejects.toThrow(/^`timeout` is not an option/)
  })
})
