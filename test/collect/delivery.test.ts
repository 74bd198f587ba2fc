import { hash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { HooklineError } from '../../src/protocol/error.ts'
import type { Submission } from '../../src/send/destination-types.ts'
import { basic, recorder, setUpCollector, writeKey } from '../support/collect.ts'

const page = { type: 'page', userId: 'user-1', messageId: 'm-1' }
const full = () => Promise.reject(new HooklineError('queue_full', 'no room'))

function setUpTwo(submit?: (submissions: readonly Submission[]) => Promise<never>) {
  const [first, second] = [recorder(), recorder()]
  const flaky = { submit: submit ?? second.submit }
  const sources = [{ name: 'shop', writeKey, destinations: [first, flaky] }]
  const heal = () => Object.assign(flaky, second)
  return { ...setUpCollector({ sources }), first, second, heal }
}

describe('every destination of the source', () => {
  it('gets each accepted call, in one submission', async () => {
    const { post, first, second } = setUpTwo()
    await post('/v1/batch', { batch: [page, {}, { ...page, messageId: 'm-2' }] })
    for (const destination of [first, second]) {
      expect(destination.messages).toMatchObject([{ messageId: 'm-1' }, { messageId: 'm-2' }])
      expect(destination.submits).toBe(1)
    }
  })

  it('is waited for', async () => {
    const taken = Promise.withResolvers<never>()
    const { post, first } = setUpTwo(() => taken.promise)
    const answered = vi.fn()

    const answering = post('/v1/page', page).then(answered)
    await nextTurn()
    expect([first.messages.length, answered.mock.calls]).toEqual([1, []])

    taken.resolve([] as never)
    await answering
  })
})

describe('a destination without room', () => {
  it('turns the request away, and what comes again is no duplicate where it was taken', async () => {
    const { post, first, second, heal } = setUpTwo(full)
    const body = { batch: [page, { ...page, messageId: 'm-2' }] }
    const refused = await post('/v1/batch', body)
    expect([refused.status, refused.json.code, refused.headers['retry-after']]).toEqual([503, 'queue_full', '5'])
    heal()
    expect((await post('/v1/batch', { ...body, sentAt: '2026-01-15T09:31:00Z' })).status).toBe(200)
    for (const { messages } of [first, second])
      expect(messages).toMatchObject([{ messageId: 'm-1' }, { messageId: 'm-2' }])
  })

  it.each([
    ['rejects', () => Promise.reject(new Error('a bug'))],
    ['rejects with a fault of the client', () => Promise.reject(new HooklineError('message_invalid', 'no'))],
  ])('beside one that %s: internal', async (_how, submit) => {
    const destinations = [{ submit: full }, { submit }, recorder()]
    const { post, errors } = setUpCollector({ sources: [{ name: 'shop', writeKey, destinations }] })
    expect((await post('/v1/page', page)).json).toMatchObject({ status: 500, code: 'internal' })
    expect(errors[0]?.cause).toMatchObject({ errors: [expect.any(Error), expect.any(Error)] })
    expect(destinations[2]).toMatchObject({ messages: [{ messageId: 'm-1' }] })
  })
})

describe('the key of a submission', () => {
  async function keysOf(...calls: readonly (readonly [path: string, call: object, key?: string])[]) {
    const destination = recorder()
    const { post } = setUpCollector({
      sources: [
        { name: 'shop', writeKey, destinations: [destination] },
        { name: 'app', writeKey: 'another', destinations: [destination] },
      ],
    })
    for (const [path, call, key = writeKey] of calls) {
      const headers = { 'content-type': 'application/json', authorization: basic(key) }
      expect((await post(path, call, { headers })).status).toBe(200)
    }
    return destination.keys
  }
  const track = { userId: 'u', event: 'e', messageId: 'm', properties: { a: 1 } }

  it.each([{}, { sentAt: 'now' }])('is what earlier releases stored, with %j', async (also) => {
    const text = '["shop","track"]{"userId":"u","event":"e","messageId":"m","properties":{"a":1}}'
    expect(await keysOf(['/v1/track', { ...also, ...track }])).toEqual([hash('sha256', text)])
  })

  it.each<[string, object, object]>([
    ['another sentAt', { sentAt: '2026-01-15T09:30:00.000Z' }, { sentAt: '2026-01-15T09:30:07.000Z' }],
    ['another count of attempts', { _metadata: { bundled: [] } }, { _metadata: { bundled: [], retryCount: 1 } }],
  ])('is the same for %s, which a browser changes when it sends a call again', async (_what, first, again) => {
    const keys = await keysOf(['/v1/t', { ...track, ...first }], ['/v1/t', { ...track, ...again }])
    expect(keys).toEqual([expect.any(String), keys[0]])
  })

  it.each<[string, string, object, string?]>([
    ['another messageId', '/v1/track', { ...track, messageId: 'n' }],
    ['a guessed messageId', '/v1/track', { ...track, properties: { a: 2 } }],
    ['a sentAt that is not the one of the call', '/v1/track', { ...track, properties: { a: 1, sentAt: 'now' } }],
    ['another context of the batch', '/v1/batch', { batch: [{ ...track, type: 'track' }], context: { a: 1 } }],
    ['another source', '/v1/track', track, 'another'],
  ])('differs for %s', async (_what, ...other) => {
    expect(new Set(await keysOf(['/v1/track', track], other)).size).toBe(2)
  })

  it.each([undefined, ''])('is none where the messageId is %j: two that look alike are two', async (messageId) => {
    const call = ['/v1/track', { ...track, messageId }] as const
    expect(await keysOf(call, call)).toEqual([undefined, undefined])
  })
})
