import crypto, { createHmac } from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createDestination } from '../../src/destination/destination.ts'
import type { DestinationOptions } from '../../src/destination/options.ts'
import type { DispatcherLike } from '../../src/http/post.ts'
import { setUpCollector, writeKey } from '../support/collect.ts'

interface Posted {
  readonly body: Buffer
  readonly signature: string | undefined
}

/** A destination and what it posted. */
function setUpDestination(options: Omit<DestinationOptions, 'webhooks'>) {
  const posted: Posted[] = []
  const dispatcher: DispatcherLike = {
    dispatch({ body, headers }, handler) {
      const names = headers as readonly string[]
      posted.push({ body: body as Buffer, signature: names[names.indexOf('X-Signature') + 1] })
      handler.onRequestStart?.({} as never, {})
      handler.onResponseStart?.({} as never, 200, {})
      handler.onResponseEnd?.({} as never, {})
      return true
    },
  }
  const webhooks = [{ url: 'http://shop.example/' }]
  return { posted, destination: createDestination({ webhooks, dispatcher, ...options }) }
}

test('destinations of one secret post the same bytes with one signature, and one of another secret its own', async () => {
  const all = ['one', 'one', 'one', 'another'].map((sharedSecret) => setUpDestination({ sharedSecret }))
  const hash = vi.spyOn(crypto, 'hash')
  syncBuiltinESMExports()
  onTestFinished(() => {
    hash.mockRestore()
    syncBuiltinESMExports()
  })
  const sources = [{ name: 'shop', writeKey, destinations: all.map(({ destination }) => destination) }]
  const { post } = setUpCollector({ sources })
  await post('/v1/page', { userId: 'user-1', messageId: 'm-1' })
  await post('/v1/page', { userId: 'user-2', messageId: 'm-2' })
  await vi.waitUntil(() => all.every(({ posted }) => posted.length === 2))

  const signatures = new Set(all.flatMap(({ posted }) => posted.map(({ signature }) => signature)))
  for (const [index, { posted }] of all.entries()) {
    const secret = index === 3 ? 'another' : 'one'
    for (const { body, signature } of posted) {
      expect(signature).toBe(createHmac('sha1', secret).update(body).digest('hex'))
    }
    expect(posted.map(({ body }) => body)).toEqual(all[0]?.posted.map(({ body }) => body))
  }
  expect(hash.mock.results.filter(({ value }) => signatures.has(value))).toHaveLength(4) // One a message and secret.
})
