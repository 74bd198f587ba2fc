import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import type { CollectedEvent } from '../../src/collect/collector-events.ts'
import type { Collector } from '../../src/collect/collector-types.ts'
import { basic, request, setUpCollector, writeKey } from '../support/collect.ts'

const call = { userId: 'u', event: 'E' }

/** What an observer sees, its bytes as text. */
function observe(collector: Collector) {
  const events: (Omit<CollectedEvent, 'bytes'> & { readonly text: string })[] = []
  collector.observe({
    answered: ({ bytes, ...event }) => void events.push({ ...event, text: Buffer.from(bytes).toString() }),
  })
  return events
}

it('an observer gets calls that are taken: how many, of which source, and the inflated body', async () => {
  const { collector, clock, post } = setUpCollector()
  const events = observe(collector)
  const batch = { batch: [{ type: 'track', ...call, messageId: 'mine' }, {}, { type: 'page', userId: 'u' }] }
  const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' }

  await post('/v1/batch', gzipSync(JSON.stringify(batch)), { headers: { ...headers, authorization: basic(writeKey) } })

  expect(events).toEqual([
    {
      request: { path: '/v1/batch', headers, remoteAddress: '192.0.2.1' },
      text: JSON.stringify(batch),
      ...{ source: 'shop', status: 200, error: undefined, accepted: 2, refused: 1 },
      messageIds: ['mine', expect.stringMatching(/^[0-9a-f-]{36}$/)],
      ...{ at: clock.now(), durationMs: 0 },
    },
  ])
})

it('an observer gets requests that fail as a whole: why, and what was read by then', async () => {
  const { collector, clock, post } = setUpCollector({ deadlineMs: 100 })
  const events = observe(collector)
  const json = { 'content-type': 'application/json' }

  await post('/v1/track', call, { method: 'GET' })
  await post('/v1/track', call, { headers: { ...json, authorization: basic('a guess') } })
  await post('/v1/track', { ...call, writeKey: 'a guess' }, { headers: json })
  await post('/v1/track', '{')
  await post('/v1/track', { event: 'E' })
  const late = post('/v1/track', '', { readBody: () => new Promise(() => {}) })
  await clock.advance(100)
  await late

  const seen = events.map((each) => [each.status, each.error?.code, each.text, each.source, each.durationMs])
  expect(seen).toEqual([
    [405, 'method_not_allowed', '', 'shop', 0],
    [401, 'write_key_unknown', '', undefined, 0],
    [401, 'write_key_unknown', JSON.stringify({ ...call, writeKey: 'a guess' }), undefined, 0],
    [400, 'body_not_json', '{', 'shop', 0],
    [400, 'call_invalid', '{"event":"E"}', 'shop', 0],
    [503, 'body_timeout', '', 'shop', 100],
  ])
  expect(events).toMatchObject(events.map(() => ({ accepted: 0, refused: 0 })))
})

it('an observer gets neither preflight requests nor other paths', async () => {
  const { collector, post } = setUpCollector()
  const events = observe(collector)
  await post('/v1/track', '', { method: 'OPTIONS' })
  expect(collector.handle(request('/other', call))).toBeUndefined()
  expect(events).toEqual([])
})
