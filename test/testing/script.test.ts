/** What an endpoint and a capture have in common, their scripts and what they keep: the contract of both ends. */

import type { Dispatcher } from 'undici'
import { describe, expect, it } from 'vitest'
import { capture, type EndpointOptions, fixtures, type Script, signedRequest } from '../../src/testing.ts'
import { listen } from '../send/set-up.ts'
import { post } from './post.ts'

type Options = Pick<EndpointOptions, 'script'>

async function startSocket(options: Options) {
  const end = await listen(options)
  return { end, url: end.url, send: (path = '', body = '', headers = {}) => post(end.url + path, body, { headers }) }
}

async function startCapture(options: Options) {
  const end = capture(options)
  const dispatcher = end.dispatcher as Dispatcher
  const url = 'https://shop.example/webhooks'
  return { end, url, send: (path = '', body = '', headers = {}) => post(url + path, body, { headers, dispatcher }) }
}

describe.each([
  ['an endpoint', startSocket],
  ['a capture', startCapture],
] as const)('%s', (_name, start) => {
  it('keeps what came, with everything a test may ask', async () => {
    const { end, url, send } = await start({})
    const { headers, body, bytes } = signedRequest(JSON.stringify(fixtures.track), 'secret')
    await send('/eu?x=1', body, { ...headers, 'X-Twice': ['a', 'b'] })
    const [request] = await end.received(1)
    expect(request).toMatchObject({ method: 'POST', url: `${url}/eu?x=1`, path: '/webhooks/eu?x=1', bytes })
    expect(request?.headers).toMatchObject({ ...headers, 'x-twice': 'a, b' })
    expect(request?.message).toBe(request?.message)
    expect([end.requests, end.messages]).toEqual([[request], [fixtures.track]])
    expect(Math.abs(Date.now() - (request?.at.getTime() ?? 0))).toBeLessThan(60_000)
  })

  it('has a script, which is 200 without one, has a step for each request, repeats the last, and can be replaced', async () => {
    const statuses = async (send: () => Promise<{ status: number }>, count: number) => {
      const all: number[] = []
      for (let left = count; left > 0; left -= 1) all.push((await send()).status)
      return all
    }
    expect(await statuses((await start({})).send, 2)).toEqual([200, 200])
    const { end, send } = await start({ script: [500, 429, 204] })
    expect(await statuses(send, 5)).toEqual([500, 429, 204, 204, 204])
    end.script([503, 200])
    expect(await statuses(send, 3)).toEqual([503, 200, 200])
  })

  it('answers with status, headers and body', async () => {
    const { send } = await start({ script: [{ status: 503, headers: { 'Retry-After': '120' }, body: 'later' }] })
    expect(await send()).toMatchObject({ status: 503, headers: { 'retry-after': '120' }, body: 'later' })
  })

  it('asks a function for the step of a request, and waits for it', async () => {
    const gate = Promise.withResolvers<number>()
    const script: Script = [
      async ({ path, bytes }) => (path.endsWith('?a') ? gate.promise : { status: 202, body: bytes }),
    ]
    const { end, send } = await start({ script })
    const held = send('?a')
    await end.received(1)
    expect(await send('', 'hello')).toMatchObject({ status: 202, body: 'hello' })
    expect(await end.received(1)).toMatchObject([{ path: '/webhooks?a' }])
    gate.resolve(201)
    expect(await held).toMatchObject({ status: 201, body: '' })
  })
})
