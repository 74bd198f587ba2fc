import { describe, expect, it, vi } from 'vitest'
import { idOfDigest } from '../../src/protocol/id.ts'
import { sign } from '../../src/protocol/signature.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { memoryDedupe } from '../../src/receive/memory-dedupe.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { countEvents, setUpBatches, track, WAYS } from '../support/batches.ts'
import { deliver, secret } from '../support/receive.ts'
import { throwing } from '../support/throwing.ts'
import { until } from '../support/until.ts'

const some = ['ada', 'ben', 'cy'].map((user) => track(user))

describe.each(WAYS)('a batch, %s', (way) => {
  it('each element is a delivery of its source, in order; its place tells it from a copy', async () => {
    const sent = [...some, some[0]]
    const set = setUpBatches(way, {
      secret: { source: ({ path, query }) => `shop${path}${query}`, secrets: () => ['older', secret] },
    })

    const received = await set.post(sent)

    expect(received).toMatchObject({ ok: true, status: 200, body: '{"ok":true}', message: some[0] })
    expect(received.elements).toMatchObject(sent.map((message) => ({ ok: true, message })))
    const seen = { verified: 'signature', secretIndex: 1, source: 'shop/' }
    expect(set.seen).toMatchObject(sent.map((message) => ({ message, delivery: seen })))
    const deliveries = set.seen.map(({ delivery }) => delivery)
    expect(deliveries.map(({ bytes }) => `${Buffer.from(bytes)}`)).toEqual(sent.map((each) => JSON.stringify(each)))
    expect(new Set(deliveries.map(({ id }) => id)).size).toBe(4)
    for (const { id } of deliveries)
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)
  })

  it('a message that comes alone is one as ever', async () => {
    const set = setUpBatches(way)
    const body = ` ${JSON.stringify(fixtures.track)} `
    const received = await set.send(body)
    expect(received).toMatchObject({ ok: true, message: fixtures.track })
    expect('elements' in received).toBe(false)
    expect(set.seen[0]?.delivery.id).toBe(idOfDigest(sign(body, secret)))
  })

  it('does not handle it again when it comes again, except inline', async () => {
    const set = setUpBatches(way)
    const events = countEvents()
    await set.post(some)
    expect(await set.post(some)).toMatchObject({ ok: true, status: 200 })
    expect(set.users()).toEqual(way === 'inline' ? ['ada', 'ben', 'cy', 'ada', 'ben', 'cy'] : ['ada', 'ben', 'cy'])
    expect(events).toMatchObject({ handled: way === 'inline' ? 6 : 3, stored: way === 'inbox' ? 6 : 0 })
  })

  it.each([
    ['message_invalid', { type: 'track', userId: 'ben' }],
    ['message_type_unknown', { type: 'purchase' }],
    ['body_not_json', null],
  ])('an element that is %s is reported, and makes no sender come again: %j', async (code, element) => {
    const set = setUpBatches(way)
    const events = countEvents()
    const received = await set.post([some[0], element, some[2]])
    expect(received).toMatchObject({ ok: false, status: 200, body: '{"ok":true}', error: { code } })
    expect(received.elements).toMatchObject([{ ok: true }, { ok: false, error: { code } }, { ok: true }])
    expect(set.users()).toEqual(['ada', 'cy'])
    expect(set.errors[0]).toMatchObject({ code })
    const letters = way === 'inbox' ? await set.receiver.deadLetters() : []
    expect(letters.map(({ bytes, reason }) => [reason, Buffer.from(bytes).toString()])).toEqual(
      way === 'inbox' ? [[code, JSON.stringify(element)]] : [],
    )
    expect(events).toMatchObject({ received: 2, refused: 1, handled: 2 })
  })

  it('an element that nests deeper than the stack is one that is invalid', async () => {
    const set = setUpBatches(way)
    const body = `[${JSON.stringify(some[0])},{"deep":${'['.repeat(100_000)}${']'.repeat(100_000)}}]`
    const received = await set.send(body)
    expect(received.status).toBe(200)
    expect(received.elements).toMatchObject([{ ok: true }, { ok: false, error: { code: 'body_not_json' } }])
    expect(received.elements?.[1]?.delivery.bytes).toHaveLength(0) // Those of the batch hold other messages.
    expect(set.users()).toEqual(['ada'])
  })

  it('one whose handler fails makes the sender come again, unless it is stored, and only that is handled again, except inline', async () => {
    const set = setUpBatches(way)
    let isBroken = true
    set.handler.run = ({ userId }) => {
      if (isBroken && userId === 'ben') throw new Error('out of stock')
    }
    const first = await deliver(set.receiver, [{}, ...some])
    if (way === 'inbox') return expect(first).toMatchObject({ error: { code: 'message_invalid' }, status: 200 })
    expect(first).toMatchObject({ ok: false, status: 500, error: { code: 'handler_failed' } })
    expect(JSON.parse(first.body)).toMatchObject({ code: 'handler_failed', status: 500 })
    const codes = first.elements?.map((each) => !each.ok && each.error.code)
    expect(codes).toEqual(['message_invalid', false, 'handler_failed', false])
    expect(set.errors.map(({ code }) => code)).toEqual(['message_invalid', 'handler_failed'])
    isBroken = false
    expect(await set.post([{}, ...some])).toMatchObject({ ok: false, status: 200 })
    expect(set.users()).toEqual(['ada', 'ben', 'cy', ...(way === 'dedupe' ? ['ben'] : ['ada', 'ben', 'cy'])])
  })

  it.each([
    ['an empty array', '[]', 'batch_empty', 400],
    ['more than the limit', '[{},{}]', 'batch_too_large', 413],
    ['no end', '[{}', 'body_not_json', 400],
  ] as const)('%s is refused as a whole', async (_what, body, code, status) => {
    const set = setUpBatches(way, { batchLimit: 1 })
    const received = await set.send(body)
    expect(received).toMatchObject({ ok: false, error: { code } })
    expect('elements' in received).toBe(false)
    // It is authentic, so that an inbox keeps it.
    expect(received.status).toBe(way === 'inbox' ? 200 : status)
    if (way === 'inbox')
      expect(await set.receiver.deadLetters()).toMatchObject([{ bytes: Buffer.from(body), verified: 'signature' }])
    expect(set.seen).toEqual([])
  })

  it('without a secret: every element is unverified, and known by the body and its place', async () => {
    const set = setUpBatches(way, { allowUnsigned: true })
    for (let time = 0; time < 2; time++) await set.post([some[0], some[0], {}])
    expect(set.users()).toEqual(way === 'inline' ? ['ada', 'ada', 'ada', 'ada'] : ['ada', 'ada'])
    expect(new Set(set.seen.map(({ delivery }) => delivery.verified))).toEqual(new Set([false]))
    expect(new Set(set.seen.map(({ delivery }) => delivery.id)).size).toBe(2)
    expect(set.errors.map(({ code }) => code)).toEqual(['message_invalid', 'message_invalid'])
  })
})

describe('a batch without an inbox', () => {
  it('gives each invalid element to onRejected, which can make the sender come again', async () => {
    const rejected: string[] = []
    let isFull = true
    const set = setUpBatches('dedupe', {
      onRejected: (error, { bytes, headers }) => {
        if (isFull) throw new Error('disk full')
        rejected.push(`${error.code} ${Buffer.from(bytes)} ${typeof headers['x-signature']}`)
      },
    })
    const batch = [some[0], { type: 'purchase' }]
    expect(await set.post(batch)).toMatchObject({ status: 500, error: { code: 'handler_failed' } })
    isFull = false
    expect(await set.post(batch)).toMatchObject({ status: 200, error: { code: 'message_type_unknown' } })
    expect(rejected).toEqual(['message_type_unknown {"type":"purchase"} string'])
    expect(set.users()).toEqual(['ada'])
  })

  it('ends at the deadline, and says what became of each element', async () => {
    const set = setUpBatches('dedupe')
    const held = Promise.withResolvers<void>()
    set.handler.run = ({ userId }) => (userId === 'ben' ? held.promise : undefined)
    const events = countEvents()
    const pending = deliver(set.receiver, some)
    await until(() => set.seen.length === 2)
    await set.clock.advance(4_500)
    const received = await pending
    expect(received).toMatchObject({ ok: false, status: 503, error: { code: 'handler_timeout' } })
    const late = { ok: false, error: { code: 'handler_timeout' } }
    expect(received.elements).toMatchObject([{ ok: true, message: some[0] }, late, late])
    expect(received.elements?.[1]?.delivery.signal.aborted).toBe(true)
    expect(set.seen[1]?.delivery.signal.reason).toMatchObject({ code: 'handler_timeout' })
    expect(set.errors.map(({ code }) => code)).toEqual(['handler_timeout'])
    expect(events).toEqual({ received: 2, refused: 1, stored: 0, handled: 1, failed: 1 })
    held.reject(new Error('too late'))
    await until(() => set.errors.length === 2)
    expect(set.errors[1]).toMatchObject({ code: 'handler_failed' })
    expect(set.users()).toEqual(['ada', 'ben']) // The rest does not begin after the answer.
    expect(events).toMatchObject({ handled: 1, failed: 1 })
  })

  it('whose last element is late reports that one alone', async () => {
    const set = setUpBatches('dedupe')
    set.handler.run = ({ userId }) => userId === 'cy' && new Promise(() => {})
    const events = countEvents()
    const pending = deliver(set.receiver, some)
    await until(() => set.seen.length === 3)
    await set.clock.advance(4_500)
    expect(await pending).toMatchObject({ status: 503 })
    expect(events).toEqual({ received: 3, refused: 0, stored: 0, handled: 2, failed: 1 })
  })

  it('copies by a key of yours are handled once, also in one batch', async () => {
    const key = ({ messageId }: { messageId?: string }) => String(messageId)
    const set = setUpBatches('inline', { dedupe: { store: memoryDedupe(), key } })
    const batch = [track('ada', { messageId: '1' }), track('ben', { messageId: '1' }), track('cy', { messageId: '2' })]
    expect(await set.post(batch)).toMatchObject({ ok: true })
    expect(set.users()).toEqual(['ada', 'cy'])
  })
})

it('a batch with an inbox is stored in one push, all of it or none, also what is invalid', async () => {
  const queue = memoryQueue()
  const push = vi.fn(queue.push)
  const set = setUpBatches('inbox', { inbox: { ...queue, push } })
  const cause = new Error('disk full')
  push.mockImplementationOnce(throwing(cause))
  const failed = await deliver(set.receiver, [...some, {}])
  expect(failed).toMatchObject({ status: 503, error: { code: 'inbox_unavailable' }, headers: { 'retry-after': '5' } })
  const unavailable = { ok: false, error: { code: 'inbox_unavailable' } }
  expect(failed.elements).toMatchObject(Array(4).fill(unavailable))
  expect(set.errors).toMatchObject([{ code: 'inbox_unavailable', cause }])
  expect(await deliver(set.receiver, some)).toMatchObject({ ok: true })
  expect(push.mock.calls.map(([jobs]) => jobs.length)).toEqual([4, 3])
  expect(await queue.counts()).toMatchObject({ waiting: 3 })
  await set.receiver.close()
})

it('a batch has 1000 elements at most by default', async () => {
  const set = setUpBatches('inline')
  const messages = Array.from({ length: 1_001 }, () => ({ type: 'page', userId: 'ada' }))
  expect(await set.post(messages)).toMatchObject({ status: 413, error: { code: 'batch_too_large' } })
  const received = await set.post(messages.slice(1))
  expect(received).toMatchObject({ ok: true })
  expect(received.elements).toHaveLength(1_000)
})
