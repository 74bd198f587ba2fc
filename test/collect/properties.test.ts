import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { setUpCollector } from '../support/collect.ts'
import { runs } from '../support/properties.ts'

const field = fc.oneof(fc.jsonValue(), fc.constantFrom('page', 'track', 'alias', 'user-1', '2026-01-15', {}, null))
const names = ['type', 'userId', 'anonymousId', 'event', 'groupId', 'previousId', 'traits', 'properties', 'context']
const others = ['integrations', 'timestamp', 'messageId', 'sentAt', 'writeKey', '__proto__', 'constructor', 'toString']
const call = fc.oneof(
  fc.jsonValue(),
  fc.dictionary(fc.constantFrom(...names, ...others), field),
  fc.record({ type: fc.constantFrom('page', 'identify', 'screen'), userId: fc.constant('u') }),
)

describe('whatever the bodies', () => {
  it('accepted and refused are all there were, and accepted are delivered', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(call, { maxLength: 30 }),
        fc.dictionary(fc.constantFrom(...others, 'context'), field),
        async (batch, rest) => {
          const { post, destination, errors } = setUpCollector()
          const { status, json } = await post('/v1/batch', { ...rest, batch })
          expect([status, errors]).toEqual([200, []])
          expect(json.accepted + json.refused.length).toBe(batch.length)
          expect(destination.keys.length + json.refused.length).toBeLessThanOrEqual(batch.length)
          for (const { index, code } of json.refused)
            expect([batch.length > index, code]).toEqual([true, expect.any(String)])
        },
      ),
      { numRuns: runs(60) },
    )
  })

  it('bytes of any kind are answered, and never by an error of ours', async () => {
    const { post } = setUpCollector()
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 200 }),
        fc.constantFrom('/v1/batch', '/v1/t'),
        async (bytes, path) => {
          expect((await post(path, bytes)).status).toBeLessThan(500)
        },
      ),
    )
  })
})
