/** What the scripts of an endpoint and of a capture have in common: the contract of both ends. */

import type { Dispatcher } from 'undici'
import { describe, expect, it } from 'vitest'
import { capture } from '../../src/testing/capture.ts'
import type { Script } from '../../src/testing/script.ts'
import { listen } from '../send/set-up.ts'
import { post } from './post.ts'

interface Options {
  readonly script?: Script
}

async function startSocket(options: Options) {
  const end = await listen(options)
  return { end, send: (path = '', body = '') => post(end.url + path, body) }
}

async function startCapture(options: Options) {
  const end = capture(options)
  const dispatcher = end.dispatcher as Dispatcher
  return { end, send: (path = '', body = '') => post(`https://shop.example/webhooks${path}`, body, { dispatcher }) }
}

describe.each([
  ['an endpoint', startSocket],
  ['a capture', startCapture],
] as const)('the script of %s', (_name, start) => {
  it('is 200 without one, has a step for each request, repeats the last, and can be replaced', async () => {
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

  it('gives status, headers and body', async () => {
    const { send } = await start({ script: [{ status: 503, headers: { 'Retry-After': '120' }, body: 'later' }] })
    expect(await send()).toMatchObject({ status: 503, headers: { 'retry-after': '120' }, body: 'later' })
  })

  it('is asked for the step of a request, and waited for', async () => {
    const gate = Promise.withResolvers<number>()
    const script: Script = [
      async ({ path, bytes }) => (path.endsWith('?a') ? gate.promise : { status: 202, body: bytes }),
    ]
    const { end, send } = await start({ script })
    const held = send('?a')
    await end.received(1)
    expect(await send('', 'hello')).toMatchObject({ status: 202, body: 'hello' })
    gate.resolve(201)
    expect(await held).toMatchObject({ status: 201, body: '' })
  })
})
