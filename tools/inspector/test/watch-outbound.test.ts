/** What an inspector keeps of real destinations and collectors. */

import type { Message } from 'hookline'
import type { DestinationOptions } from 'hookline/sender'
import { fixtures, manualClock, type Script } from 'hookline/testing'
import { describe, expect, it } from 'vitest'
import { setUp as setUpDestination } from '../../../test/send/set-up.ts'
import { basic, setUpCollector, writeKey } from '../../../test/support/collect.ts'
import { watchCollector, watchDestination } from '../src/watch-outbound.ts'
import { keptBy, pause } from './support.ts'

function allOf({ rows, detail }: ReturnType<typeof keptBy>): string {
  return JSON.stringify([rows(), rows().map(({ id }) => detail(id))])
}

describe('a destination', () => {
  function setUp(script: Script = [200], options: Partial<DestinationOptions> = {}) {
    const set = setUpDestination(script, options)
    const kept = keptBy(set.clock)
    const stop = watchDestination('shop', set.destination, kept.journal, kept.series)
    return { ...set, ...kept, stop, counts: () => kept.counts('shop'), all: () => allOf(kept) }
  }

  const urls = [{ url: 'https://one.example/hooks?token=hush' }, { url: 'https://two.example/hooks' }]

  it('whose functions failed first: what was posted, or that a filter leaves it out', async () => {
    let isBroken = true
    const filter = ({ userId }: Message) => {
      if (isBroken) throw new Error('broken')
      return userId === 'sent'
    }
    const transform = (message: Message) => ({ ...message, userId: 'hidden' }) as Message
    const { destination, clock, rows, detail, steps } = setUp([200], { filter, transform })
    for (const userId of ['sent', 'left out']) await destination.track({ userId, event: 'Sold' })
    await clock.advance(0)
    expect(rows()).toMatchObject(Array(2).fill({ state: 'dead', code: 'transform_failed' }))
    const error = { code: 'Error', message: 'broken', stack: expect.stringMatching(/\n +at /) }
    expect(detail(1)?.steps.at(-1)).toMatchObject({ what: 'round', reason: 'transform_failed', error })
    expect(detail(1)?.body.text).toMatch(/^\{/)
    isBroken = false
    await destination.redrive('all')
    await clock.advance(0)
    expect(rows()).toMatchObject([{ state: 'skipped', code: 'filtered' }, { state: 'done' }])
    expect(detail(1)?.body.text).toMatch(/^\{.*"userId":"hidden"/)
    expect(steps(2)?.at(-1)).toBe('skipped')
  })

  it('queued, tried again, delivered: one row', async () => {
    const { destination, clock, rows, detail, captured, start, counts } = setUp([{ status: 503, body: 'later' }, 200])
    const queued = await destination.track({ userId: 'u', event: 'Sold', messageId: 'm' })
    if (!queued.queued) throw new Error('It was not queued.')
    const sent = { id: 1, kind: 'sent', part: 'shop', at: start, bytes: expect.any(Number), messageIds: ['m'] }
    const waiting = { ...sent, type: 'track', name: 'Sold', user: 'u', state: 'waiting' }
    expect(rows()).toEqual([{ ...waiting, attempts: 0 }])
    expect(detail()?.window).toBeUndefined()

    await clock.advance(0)
    const retryAt = clock.nextTimerAt as number
    expect(retryAt).toBeGreaterThan(start)
    const text = Buffer.from(captured.requests[0]?.bytes ?? []).toString()
    const attempt = { url: 'https://shop.example/webhooks', durationMs: 0 }
    const first = { ...attempt, at: start, ok: false, status: 503, body: 'later' }
    const expected = {
      row: { ...waiting, bytes: text.length, attempts: 1, status: 503, durationMs: 0, retryAt },
      body: { size: text.length, text },
      steps: [
        { what: 'queued', at: start },
        { what: 'attempt', at: start, attempt: first },
        { what: 'round', at: start, status: 'retrying', retryAt },
      ],
      ...{ deliveryId: queued.id, isStored: true, canExplain: false },
      window: { startedAt: start, endsAt: start + 4 * 3_600_000 },
    }
    expect(detail()).toEqual(expected)
    await clock.advance(60_000)
    const last = { ...first, at: retryAt, ok: true, status: 200, body: '' }
    expected.steps.push({ what: 'attempt', at: retryAt, attempt: last })
    const round = { what: 'round', at: retryAt, status: 'delivered' }
    const done = { ...expected.row, state: 'done', attempts: 2, status: 200, retryAt: undefined }
    expect(detail()).toEqual({ ...expected, row: done, steps: [...expected.steps, round] })
    expect(counts()).toEqual([1, 1])
  })

  it('a row names the URLs that gave a final response while it waits; when all did, it is dead until it is redriven', async () => {
    const { destination, clock, rows, detail, counts, journal } = setUp([410, 'reset', 400, 200], { webhooks: urls })
    await destination.track({ userId: 'u', event: 'Sold' })
    expect(rows()[0]).not.toHaveProperty('finalUrls')

    await clock.advance(0)
    expect(rows()).toMatchObject([{ state: 'waiting', code: 'reset', finalUrls: ['https://one.example/hooks?…'] }])
    const reset = { url: urls[1]?.url, durationMs: 0, ok: false, error: 'reset', reason: expect.any(String), body: '' }
    expect(detail()?.steps[2]).toMatchObject({ attempt: reset })

    await clock.advance(60_000)
    expect(rows()).toMatchObject([{ state: 'dead', code: 'refused', attempts: 2 }])
    expect(rows()[0]).not.toHaveProperty('finalUrls')
    expect(detail()?.steps.at(-1)).toMatchObject({ status: 'failed', reason: 'refused' })

    const id = detail()?.deliveryId as string
    const { version } = journal
    await destination.redrive([id])
    journal.changed('shop', [id], 'redriven', clock.now(), version)
    expect(rows()).toMatchObject([{ state: 'waiting' }])
    expect(rows()[0]).not.toHaveProperty('finalUrls')

    await clock.advance(0)
    expect(rows()).toMatchObject([{ id: 1, state: 'done', attempts: 3 }])
    expect(counts()).toEqual([1, 3])
  })

  it('a row has the outcome of the attempt that ended last', async () => {
    const clock = manualClock()
    const slow = () => pause(clock, 100).then(() => 503)
    const { destination, rows } = setUp([slow, 500, 200, 'reset'], { clock, webhooks: urls })
    await destination.track({ userId: 'u', event: 'Sold' })
    await clock.advance(100)
    expect(rows()).toMatchObject([{ state: 'waiting', status: 503, durationMs: 100 }])
    await clock.advance(60_000)
    expect(rows()).toMatchObject([{ state: 'done', code: undefined, attempts: 2 }])
  })

  it('what is not queued, or left out by a filter, is a row that was skipped, with the reason', async () => {
    const filter = ({ userId }: Message) => userId !== 'left out'
    const { destination, clock, rows, detail, counts } = setUp([200], { filter })
    await destination.submit([{ message: { ...fixtures.track, integrations: { All: false } } }])
    await destination.track({ userId: 'left out', event: 'Sold', messageId: 'one' })
    await clock.advance(0)
    destination.disable()
    await destination.track({ userId: 'u', event: 'Sold' })
    await clock.advance(60_000)
    const skipped = { kind: 'sent', part: 'shop', state: 'skipped', type: 'track', attempts: 0 }
    expect(rows()).toMatchObject([
      { ...skipped, code: 'switched_off' },
      { ...skipped, code: 'filtered', name: 'Sold', user: 'left out', messageIds: ['one'] },
      { ...skipped, code: 'not_selected' },
    ])
    const steps = [{ what: 'queued' }, { what: 'skipped', reason: 'filtered' }]
    expect(detail(2)).toMatchObject({ isStored: true, steps })
    expect(JSON.parse(detail(2)?.body.text ?? '')).toMatchObject({ userId: 'left out', event: 'Sold' })
    expect(counts()).toEqual([0, 0])
  })

  it('forget removes the rows of a user, and an attempt that ends later brings nothing back', async () => {
    const clock = manualClock()
    const slow = () => pause(clock, 100).then(() => 503)
    const { destination, captured, rows, all } = setUp([slow], { clock })
    for (const userId of ['gone', 'stays']) await destination.track({ userId, event: 'Sold' })
    await clock.advance(50)
    expect(rows().map(({ user }) => user)).toEqual(['stays', 'gone'])
    await destination.forget('gone')
    expect(rows().map(({ user }) => user)).toEqual(['stays'])
    await clock.advance(100)
    expect([captured.requests.length, rows().length, all().includes('gone')]).toEqual([2, 1, false])
    await destination.track({ userId: 'gone', event: 'Sold' })
    expect(rows()).toMatchObject([{ user: 'gone', state: 'waiting' }, {}])
  })
})

describe('a collector', () => {
  function setUp(options: Parameters<typeof setUpCollector>[0] = {}) {
    const set = setUpCollector(options)
    const kept = keptBy(set.clock)
    watchCollector('site', set.collector, kept.journal, kept.series)
    return { ...set, ...kept, counts: () => kept.counts('site'), all: () => allOf(kept) }
  }

  const json = { 'content-type': 'application/json' }
  const call = { userId: 'u', event: 'Sold' }

  it('a batch is one row', async () => {
    const { post, rows, detail, clock, counts } = setUp()
    const [first, second] = ['a'.repeat(300), 'b'].map((messageId) => ({ ...call, messageId }))
    const batch = [{ ...first, type: 'track' }, {}, { ...second, type: 'page' }]
    const text = JSON.stringify({ batch })
    const at = clock.now()
    const readBody = () => clock.advance(7).then(() => ({ bytes: Buffer.from(text), source: 'stream' }) as const)
    await post('/v1/batch', {}, { readBody })
    const collected = { kind: 'collected', part: 'site', at, durationMs: 7, attempts: 0, bytes: text.length, id: 1 }
    const sender = { remoteAddress: '192.0.2.1' }
    const answered = { state: 'done', type: 'batch', status: 200, refusedCalls: 1 }
    const row = { ...collected, ...answered, messageIds: ['a'.repeat(200), 'b'] }
    expect(detail()).toEqual({
      row,
      request: { ...sender, method: 'POST', path: '/v1/batch', headers: [['content-type', 'application/json']] },
      body: { size: text.length, text },
      steps: [
        { what: 'arrived', at, isCopy: false, bytes: text.length, ...sender },
        { what: 'collected', at: at + 7, accepted: 2, refused: 1, source: 'shop' },
        { what: 'answered', at: at + 7, status: 200, durationMs: 7 },
      ],
      ...{ isStored: false, canExplain: false },
    })
    expect([counts(), rows()[0]]).toEqual([[1, 0], row])
  })

  it('a call that is refused, by the source', async () => {
    const { post, rows, detail, counts } = setUp()
    await post('/v1/track', { event: 'Sold' })
    const refused = { state: 'refused', status: 400, code: 'call_invalid', type: 'track', name: 'Sold' }
    expect(rows()).toMatchObject([refused])
    expect(rows()[0]?.isRefused).toBeUndefined()
    const error = { code: 'call_invalid', message: expect.any(String) }
    expect(detail()?.steps).toMatchObject([{ what: 'arrived' }, { what: 'answered', status: 400, error }])
    expect(counts()).toEqual([0, 1])
  })

  it('a call is described up to 32 KB, and a batch by its first 100 ids', async () => {
    const { post, rows } = setUp()
    const sized = (size: number) => JSON.stringify(call).padEnd(size)
    for (const size of [32_768, 32_769]) await post('/v1/track', sized(size))
    await post('/v1/batch', { batch: Array(101).fill({ type: 'track', ...call }) })
    const shown = rows().map(({ name, user, messageIds }) => `${name} ${user} ${messageIds?.length}`)
    expect(shown).toEqual(['undefined undefined 100', 'undefined undefined 1', 'Sold u 1'])
  })

  it('write keys are shown nowhere: neither a wrong one, nor that of a batch and its calls', async () => {
    const { post, rows, all, detail } = setUp()
    const key = JSON.stringify(writeKey)
    const batch = `{"writeKey" : ${key},"batch":[{"type":"track","userId":"u","event":"Sold","writeKey":${key}}]}`

    await post('/v1/batch', batch, { headers: json })
    await post('/v1/track', { ...call, writeKey: 'a guess' }, { headers: json })
    await post('/v1/track', call, { headers: { ...json, authorization: basic('a guess') } })

    const refused = { state: 'refused', status: 401, code: 'write_key_unknown', isRefused: true }
    expect(rows()).toMatchObject([refused, refused, { state: 'done', status: 200 }])
    expect(detail(1)?.body).toEqual({ size: batch.length, text: batch.replaceAll(key, '"…"') })
    for (const secret of [writeKey, 'a guess', basic('a guess').slice('Basic '.length)]) {
      expect(all()).not.toContain(secret)
    }
  })
})
