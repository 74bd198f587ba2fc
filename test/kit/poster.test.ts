/** The poster of the command: what it sends, and what it says of an address. */

import { getEventListeners } from 'node:events'
import { expect, it } from 'vitest'
import { createPoster } from '../../src/kit/poster.ts'
import { startEndpoint } from '../../src/testing/scripted-endpoint.ts'
import { serveKept } from '../send/set-up.ts'
import { until } from '../support/until.ts'

it('posts any bytes, by any method, to any path of its origin', async () => {
  await using endpoint = await startEndpoint({ script: [{ status: 201, body: 'taken' }] })
  const poster = createPoster(new URL('/a?b=c', endpoint.url))

  const first = await poster.post(Buffer.from('x'), { 'x-one': '1' }, { method: 'PUT' })
  const second = await poster.post(Buffer.from('y'), {}, { path: '/other', isChunked: true })
  await poster.close()

  const taken = { status: 201, headers: expect.any(Object), body: Buffer.from('taken'), durationMs: expect.any(Number) }
  expect([first, second]).toEqual([taken, taken])
  const sent = endpoint.requests.map(({ method, path, headers, bytes }) => [method, path, headers, `${bytes}`])
  expect(sent).toMatchObject([
    ['PUT', '/a?b=c', { 'x-one': '1', 'content-length': '1' }, 'x'],
    ['POST', '/other', { 'transfer-encoding': 'chunked' }, 'y'],
  ])
})

it('says what is wrong in place of an answer, and ends when it is told to', async () => {
  await using endpoint = await startEndpoint({ script: ['reset', 'hang'] })
  const poster = createPoster(new URL(endpoint.url))
  const gone = new AbortController()
  const post = () => poster.post(Buffer.from('x'), {}, gone)
  expect(await post()).toMatchObject({ error: 'reset', reason: expect.any(String) })
  expect(getEventListeners(gone.signal, 'abort')).toEqual([])

  const pending = post()
  gone.abort()
  expect((await pending).status).toBeUndefined()
  expect((await post()).status).toBeUndefined()
  await poster.close()
})

it('reaches an address without a request', async () => {
  const { url, open, seen } = await serveKept()
  expect(await createPoster(new URL(url)).reach()).toBeUndefined()
  await until(() => seen.connections === 1 && open.size === 0)
  expect(seen.requests).toBe(0)
  expect(await createPoster(new URL('http://127.0.0.1:9/')).reach()).toMatchObject({ error: 'refused' })
})
