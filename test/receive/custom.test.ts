/** Custom messages: any JSON that is none of the seven, inline, in batches and with an inbox. */

import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createReceiver, type Delivery, type HistoryFilter, type ReceivedMessage } from '../../src/index.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { fixtures } from '../../src/testing.ts'
import { listHistory } from '../support/inbox.ts'
import { deliver, secret } from '../support/receive.ts'

const order = { messageId: 'order-7', order: { id: 7 }, userId: 'user-1' }

function setUp(options: object = {}) {
  const seen: ReceivedMessage[] = []
  const deliveries: Delivery[] = []
  const receiver = createReceiver({ secret, custom: true as const, onError: () => {}, ...options })
  const handler = (message: ReceivedMessage, delivery: Delivery) => seen.push(message) && deliveries.push(delivery)
  receiver.on('custom', handler, { name: 'crm' })
  const send = (body: unknown) => deliver(receiver, JSON.stringify(body))
  return { receiver, send, seen, deliveries }
}

describe('with `custom`', () => {
  it.each<[string, unknown]>([
    ['an object without a type', order],
    ['the type custom', { type: 'custom', body: 1 }],
    ['null', null],
    ['a list', [fixtures.track, 1]],
  ])('%s is a custom message', async (_what, body) => {
    const { receiver, send, seen, deliveries } = setUp()
    const all: unknown[] = []
    receiver.on('*', (message) => void all.push(message))
    const custom = { type: 'custom', body }
    expect(await send(body)).toMatchObject({ ok: true, status: 200, message: custom })
    expect([seen, all]).toEqual([[custom], [custom]])
    expect(deliveries).toMatchObject([{ verified: 'signature' }])
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

  it('handlers get its output, and the seven do not go through it', async () => {
    const { send, seen } = setUp({ custom: schema })
    await send(order)
    expect(await send(fixtures.page)).toMatchObject({ ok: true })
    expect(seen).toEqual([{ type: 'custom', body: { order: { id: '7' } } }])
    expect(await setUp({ custom: z.null() }).send(null)).toMatchObject({ ok: true })
  })

  it('another body: 422, which quotes nothing of it, and `onRejected` gets it', async () => {
    const rejected: unknown[] = []
    const { send, seen } = setUp({ custom: schema, onRejected: (error: unknown) => void rejected.push(error) })
    const received = await send({ order: { 'key-of-sender': 'value-of-sender' } })
    expect(received).toMatchObject({ status: 422, error: { code: 'schema_mismatch', path: 'body' } })
    expect(received.body).not.toContain('of-sender')
    expect([seen, rejected.length]).toEqual([[], 1])
  })
})

it('in an inbox, a custom message is handled, kept, found and replayed', async () => {
  const queue = memoryQueue()
  const { receiver, send, seen } = setUp({ inbox: { queue, history: { maxAgeMs: 60_000 } } })
  await send(order)
  await send(fixtures.track)
  receiver.start()
  await queue.drain()
  const custom = { type: 'custom', body: order }
  const list = async (filter: HistoryFilter) => (await listHistory(receiver, filter)).map(({ message }) => message)
  expect(await list({ type: 'custom' })).toEqual([custom])
  expect(await list({ userId: 'user-1' })).toContainEqual(custom)
  expect(await list({ type: 'track' })).toMatchObject([{ type: 'track' }])
  expect(await receiver.replay({ handlers: ['crm'] })).toMatchObject({ count: 1, types: { custom: 1 } })
  await queue.drain()
  expect(seen).toEqual([custom, custom])
})
