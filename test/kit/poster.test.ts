/** The poster of the command: what it sends, and what it says of an address. */

import { expect, it } from 'vitest'
import { createPoster } from '../../src/kit/poster.ts'
import { startEndpoint } from '../../src/testing/scripted-endpoint.ts'

it('posts any bytes, by any method, to any path of its origin', async () => {
  await using endpoint = await startEndpoint({ script: [{ status: 201, body: 'taken' }] })
  const poster = createPoster(new URL('/a?b=c', endpoint.url))

  const first = await poster.post(Buffer.from('x'), { 'x-one': '1' }, { method: 'PUT' })
  const second = await poster.post(Buffer.from('y'), {}, { path: '/other', isChunked: true })
  await poster.close()

  expect([first, second]).toMatchObject(Array(2).fill({ status: 201, body: Buffer.from('taken') }))
  expect(endpoint.requests.map(({ method, path, headers }) => [method, path, headers['transfer-encoding']])).toEqual([
    ['PUT', '/a?b=c', undefined],
    ['POST', '/other', 'chunked'],
  ])
})

it('says what is wrong in place of an answer, and ends when it is told to', async () => {
  await using endpoint = await startEndpoint({ script: ['reset', 'hang'] })
  const poster = createPoster(new URL(endpoint.url))
  expect(await poster.post(Buffer.from('x'), {})).toMatchObject({ error: 'reset', reason: expect.any(String) })

  const gone = new AbortController()
  const pending = poster.post(Buffer.from('x'), {}, { signal: gone.signal })
  gone.abort()
  expect((await pending).status).toBeUndefined()
  expect((await poster.post(Buffer.from('x'), {}, { signal: gone.signal })).status).toBeUndefined()
  await poster.close()
})

it('reaches an address without a request', async () => {
  const endpoint = await startEndpoint()
  const poster = createPoster(new URL(endpoint.url))
  expect(await poster.reach()).toBeUndefined()
  expect(endpoint.requests).toEqual([])
  await endpoint.close()
  expect(await poster.reach()).toMatchObject({ error: 'refused' })
})
