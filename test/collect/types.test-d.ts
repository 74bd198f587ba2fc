/** What the compiler accepts as a call. */

import { expectTypeOf, test } from 'vitest'
import { type BatchError, type Client, createClient, type RecordedCall } from '../../src/client.ts'

declare const client: Client

test('what is missing or wrong does not compile', () => {
  client.page({ anonymousId: 'a', userId: null, properties: { path: '/' }, timestamp: new Date() })
  // @ts-expect-error: event
  client.track({ userId: 'u' })
  // @ts-expect-error: traits and properties are two names of one thing
  client.page({ userId: 'u', traits: {}, properties: {} })
  // @ts-expect-error: there is no delete call
  client.delete({ userId: 'u' })
  // @ts-expect-error: endpoint
  createClient('write-key', {})
})

test('the write key may come from the environment, and calls are narrowed by type', () => {
  createClient(process.env.WRITE_KEY, {
    endpoint: 'https://analytics.example.com/v1/batch',
    onError(error, calls) {
      expectTypeOf(error).toEqualTypeOf<BatchError>()
      for (const call of calls) if (call.type === 'track') expectTypeOf(call.event).toBeString()
    },
  })
  expectTypeOf(client.close).returns.resolves.toEqualTypeOf<readonly RecordedCall[]>()
})
