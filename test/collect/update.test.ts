/** update(): other sources while the collector runs. */

import { describe, expect, it } from 'vitest'
import type { EndpointBody } from '../../src/host/body.ts'
import { basic, recorder, setUpCollector, writeKey } from '../support/collect.ts'
import { expectRefusal } from '../support/refusal.ts'

const page = { type: 'page', userId: 'user-1' }
const headersOf = (key: string) => ({ 'content-type': 'application/json', authorization: basic(key) })

describe('update', () => {
  it('changes write keys, kinds and destinations for the next request', async () => {
    const { collector, post, destination } = setUpCollector()
    const other = recorder()
    const sources = [{ name: 'shop', writeKey: 'a new key', kind: 'server' as const, destinations: [other] }]
    expect(collector.update({ sources })).toBeUndefined()

    expect((await post('/v1/page', page)).json.code).toBe('write_key_unknown')
    expect((await post('/v1/page', page, { headers: headersOf('a new key') })).status).toBe(200)
    expect([destination.messages, other.messages]).toMatchObject([[], [{ userId: 'user-1', context: {} }]])
    expect(other.messages[0]?.context).toEqual({})
  })

  it.each([
    ['in the header', headersOf(writeKey), page],
    ['in the body', { 'content-type': 'application/json' }, { ...page, writeKey }],
  ])('a request that has begun ends with the sources it began with: the key %s', async (_where, headers, body) => {
    const { collector, post, destination } = setUpCollector()
    const arrived = Promise.withResolvers<EndpointBody>()
    const answered = post('/v1/page', '', { headers, readBody: () => arrived.promise })
    collector.update({ sources: [{ name: 'app', writeKey: 'a new key', destinations: [recorder()] }] })
    arrived.resolve({ bytes: Buffer.from(JSON.stringify(body)), source: 'stream' })
    expect((await answered).status).toBe(200)
    expect(destination.messages).toHaveLength(1)
  })

  const valid = { name: 'app', writeKey: 'a new key', destinations: [] }
  it.each<[option: string, changes: unknown]>([
    ['update: options', undefined],
    ['source', { source: [valid] }],
    ['logger', { sources: [valid], logger: undefined }],
    ['sources', {}],
    ['sources[1].kind', { sources: [valid, { ...valid, name: 'b', kind: 'app' }] }],
  ])('with a wrong `%s` is a TypeError, and changes nothing: %j', async (option, changes) => {
    const { collector, post } = setUpCollector()
    await expectRefusal(() => collector.update(changes as never), `\`${option}\``)
    expect((await post('/v1/page', page, { headers: headersOf('a new key') })).status).toBe(401)
    expect((await post('/v1/page', page)).status).toBe(200)
  })
})
