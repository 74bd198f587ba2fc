/** Custom messages: any JSON that is none of the seven, inline, in batches and with an inbox. */

import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { createReceiver, type Delivery, type HistoryFilter, type ReceivedMessage } from '../../src/index.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { sqliteQueue } from '../../src/queues-sqlite.ts'
import { fixtures, type SignedRequestOptions, signedRequest } from '../../src/testing.ts'
import { schemaOf, secret } from '../support/receive.ts'
import { until } from '../support/until.ts'

const order = { messageId: 'order-7', order: { id: 7 }, userId: 'user-1' }

function setUp(options: object = {}) {
  const seen: ReceivedMessage[] = []
  const deliveries: Delivery[] = []
  const receiver = createReceiver({ secret, custom: true as const, onError: () => {}, ...options })
  receiver.on('custom', (message, delivery) => {
    seen.push(message)
    deliveries.push(delivery)
  })
  const send = (body: unknown, how?: SignedRequestOptions) => {
    const { bytes, headers } = signedRequest(
      how || typeof body === 'string' ? (body as string) : JSON.stringify(body),
      secret,
      how,
    )
    return receiver.receive(bytes, headers)
  }
  return { receiver, send, seen, deliveries }
}

describe('with `custom`', () => {
  it.each<[string, unknown]>([
    ['an object without a type', order],
    ['a type that is almost one of the seven', { type: 'Track', userId: 'user-1', event: 'e' }],
    ['the type custom', { type: 'custom', body: 1 }],
    ['a type that is no text', { type: ['track'] }],
    ['text', '"hello"'],
    ['null', 'null'],
    ['a list', [fixtures.track, 1]],
  ])('%s is a custom message', async (_what, body) => {
    const { receiver, send, seen, deliveries } = setUp()
    const all: unknown[] = []
    receiver.on('*', (message) => void all.push(message))
    const custom = { type: 'custom', body: typeof body === 'string' ? JSON.parse(body) : body }
    expect(await send(body)).toMatchObject({ ok: true, status: 200, message: custom })
    expect([seen, all]).toEqual([[custom], [custom]])
    expect(deliveries).toMatchObject([{ verified: 'signature' }])
  })

  it.each(Object.values(fixtures))('$type stays what it is', async (message) => {
    const { receiver, send, seen } = setUp()
    const got: unknown[] = []
    receiver.on(message.type, (each) => void got.push(each))
    expect(await send(message)).toMatchObject({ ok: true })
    expect([got.length, seen]).toEqual([1, []])
  })

  it.each<[string, object | string, string, string | undefined]>([
    ['one of the seven that is invalid', { type: 'track', userId: 'user-1' }, 'message_invalid', 'event'],
    ['what is no JSON', '{"order":', 'body_not_json', undefined],
    ['an empty body', '', 'body_not_json', undefined],
  ])('%s is refused', async (_what, body, code, path) => {
    const { send, seen } = setUp()
    expect(await send(body)).toMatchObject({ ok: false, error: { code, path } })
    expect(seen).toEqual([])
  })

  it('drops keys that reach a prototype, at any depth', async () => {
    const { send, seen } = setUp()
    await send('{"a":[{"__proto__":{"admin":true},"b":{"constructor":{"prototype":{"admin":true}}}}]}')
    expect(seen).toEqual([{ type: 'custom', body: { a: [{ b: { constructor: {} } }] } }])
    expect(({} as { admin?: boolean }).admin).toBeUndefined()
  })

  it.each(['[', '{"a":'])('takes what nests as deeply as the limit lets it: %s', async (open) => {
    const { send, seen } = setUp()
    const depth = 80_000
    expect(await send(`${open.repeat(depth)}1${(open === '[' ? ']' : '}').repeat(depth)}`)).toMatchObject({ ok: true })
    expect(seen).toHaveLength(1)
  })

  it('gives a batch element by element, beside the seven', async () => {
    const { receiver, send, seen, deliveries } = setUp({ batches: true })
    const tracks: unknown[] = []
    receiver.on('track', ({ event }) => void tracks.push(event))
    const { elements } = await send([order, fixtures.track, 'text', { type: 'track' }, [1]])
    expect(elements?.map(({ ok }) => ok)).toEqual([true, true, true, false, true])
    expect(seen).toEqual([order, 'text', [1]].map((body) => ({ type: 'custom', body })))
    expect(tracks).toEqual([fixtures.track.event])
    expect(deliveries.map(({ bytes }) => String(Buffer.from(bytes)))).toEqual([JSON.stringify(order), '"text"', '[1]'])
    expect(new Set(deliveries.map(({ id }) => id)).size).toBe(3)
  })
})

describe('with a schema', () => {
  const schema = z.object({ order: z.object({ id: z.coerce.string() }) })

  it('handlers get its output', async () => {
    const { send, seen } = setUp({ custom: schema })
    await send(order)
    expect(seen).toEqual([{ type: 'custom', body: { order: { id: '7' } } }])
  })

  it('another body: 422, which quotes nothing of it, and `onRejected` gets it', async () => {
    const rejected: unknown[] = []
    const { send, seen } = setUp({ custom: schema, onRejected: (error: unknown) => void rejected.push(error) })
    const received = await send({ order: { 'key-of-sender': 'value-of-sender' } })
    expect(received).toMatchObject({ status: 422, error: { code: 'schema_mismatch', path: 'body' } })
    expect(received.body).not.toContain('of-sender')
    expect([seen, rejected.length]).toEqual([[], 1])
  })

  it('null is what the schema gets for null', async () => {
    const given: unknown[] = []
    const { send } = setUp({ custom: schemaOf((value) => ({ value: given.push(value) })) })
    await send('null')
    expect(given).toEqual([null])
  })

  it('the seven do not go through it', async () => {
    const { send } = setUp({ custom: schema })
    expect(await send(fixtures.page)).toMatchObject({ ok: true })
  })
})

describe('without `custom`', () => {
  it.each([{}, { custom: false }])('the 422 names it: %j', async (options) => {
    const receiver = createReceiver({ secret, onError: () => {}, ...options })
    const { bytes, headers } = signedRequest({ type: 'purchase', userId: 'user-1' }, secret)
    const received = await receiver.receive(bytes, headers)
    expect(received).toMatchObject({ status: 422, error: { code: 'message_type_unknown' } })
    expect(received.body).toContain('`custom`')
  })
})

describe('in an inbox', () => {
  function setUpInbox(options: object = {}) {
    const queue = memoryQueue()
    const set = setUp({ inbox: { queue, history: { maxAgeMs: 60_000 }, retries: () => undefined, ...options } })
    return { ...set, queue }
  }

  it('is handled, kept, found and replayed', async () => {
    const { receiver, queue, send, seen } = setUpInbox()
    await send(order)
    await send(fixtures.track)
    receiver.start()
    await queue.drain()
    const custom = { type: 'custom', body: order }
    const list = async (filter: HistoryFilter) => {
      const found = []
      for await (const { message } of receiver.history(filter)) found.push(message)
      return found
    }
    expect(await list({ type: 'custom' })).toEqual([custom])
    expect(await list({ userId: 'user-1' })).toContainEqual(custom)
    expect(await list({ type: 'track' })).toMatchObject([{ type: 'track' }])
    expect(await receiver.replay({ type: 'custom' })).toMatchObject({ count: 1, types: { custom: 1 } })
    await queue.drain()
    expect(seen).toEqual([custom, custom])
  })

  it('a worker without the option makes it a dead letter, which one with it can handle', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'hookline-'))
    onTestFinished(() => rm(directory, { recursive: true, force: true, maxRetries: 9 }))
    const open = () => sqliteQueue({ path: join(directory, 'inbox.sqlite') })
    const plain = createReceiver({ secret, inbox: open(), onError: () => {} })
    const { receiver, send, seen } = setUp({ inbox: open() })
    await send(order)
    plain.on('*', () => {}).start()
    await until(async () => (await plain.health()).deadLetters === 1)
    await plain.close()
    expect(await receiver.deadLetters({ type: 'custom' })).toMatchObject([
      { reason: 'message_invalid', message: undefined },
    ])
    await receiver.redrive('all')
    receiver.start()
    await until(() => seen.length === 1)
    expect(seen).toEqual([{ type: 'custom', body: order }])
    await receiver.close()
  })

  it('is forgotten with its user, by its own ids alone', async () => {
    const { receiver, queue, send } = setUpInbox()
    for (const body of [order, { nested: order }, [order]]) await send(body)
    expect(await receiver.forget('user-1')).toMatchObject({ deleted: 2 })
    expect((await queue.counts()).waiting).toBe(1)
  })

  it('goes by `key` and `groupBy`', async () => {
    const { send, queue } = setUpInbox({
      key: ({ body }: { body: typeof order }) => `order ${body.order.id}`,
      groupBy: ({ body }: { body: typeof order }) => body.userId,
    })
    await send(order)
    await send({ ...order, note: 'a copy' })
    expect((await queue.counts()).waiting).toBe(1)
  })
})
