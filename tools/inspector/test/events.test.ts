/** What the view of events gets: which events arrived at a receiver, how often, and which fields did not match. */

import { expect, it } from 'vitest'
import { z } from 'zod'
import { HooklineError } from '../../../src/protocol/error.ts'
import { memoryQueue } from '../../../src/queues-memory.ts'
import { fixtures } from '../../../src/testing/fixtures.ts'
import { deliver, setUp } from '../../../test/support/receive.ts'
import { createEventCounts } from '../src/event-counts.ts'
import { createInspector, type Inspector } from '../src/index.ts'
import { createRequestPage } from '../src/page-server.ts'
import type { EventLine, PartEvents, Series } from '../src/wire.ts'
import { closeLater, get } from './support.ts'

const item = z.object({ sku: z.string(), price: z.number() })
const events = { 'Order Completed': z.object({ total: z.number(), items: z.array(item) }) }
const of = (event: string, properties: object = {}) => ({ ...fixtures.track, event, properties })
const completed = of('Order Completed', { total: 1, items: [] })

function inspect(options: object = {}) {
  const { receiver, clock } = setUp(options)
  receiver.on('*', () => {})
  const inspector = createInspector({ receiver: { shop: receiver }, clock })
  closeLater(() => inspector.close())
  const parts = async () => JSON.parse((await get(inspector, '/api/events')).body as string) as PartEvents[]
  const lines = async () => (await parts())[0]?.events ?? []
  return { receiver, clock, inspector, parts, lines }
}

/** How many came of each, how many failed, and whether it has a schema. */
const summaryOf = (lines: readonly EventLine[]) =>
  lines.map(({ type, event, count, failed, hasSchema }) => `${event ?? type} ${count} ${failed} ${hasSchema ?? '-'}`)

it('what arrived is listed by event of track messages, and by other type', async () => {
  const { receiver, clock, parts, lines } = inspect()
  const firstAt = clock.now()
  for (const message of [of('A'), of('B'), of('A'), fixtures.identify, fixtures.page]) {
    await deliver(receiver, message)
    await clock.advance(1_000)
  }
  const line = (second: number, type: string, event?: string, count = 1, lastAt = firstAt + second * 1_000) => {
    const counts = { count, failed: 0, fields: [], otherFields: 0, minutes: [...Array(14).fill(0), count] }
    return { type, event, ...counts, firstAt: firstAt + second * 1_000, lastAt }
  }
  const [a, b] = [line(0, 'track', 'A', 2, firstAt + 2_000), line(1, 'track', 'B')]
  expect(await parts()).toEqual([{ part: 'shop', others: 0, events: [a, b, line(3, 'identify'), line(4, 'page')] }])
  await clock.advance(14 * 60_000)
  expect((await lines())[0]?.minutes).toEqual([2, ...Array(14).fill(0)])
  await deliver(receiver, of('A'))
  await clock.advance(60_000)
  expect((await lines())[0]?.minutes).toEqual([...Array(13).fill(0), 1, 0])
})

it('what arrived has a schema or none; what has none comes first, then what did not match', async () => {
  const { receiver, lines } = inspect({
    events: { Good: z.object({}), Bad: z.object({ a: z.string() }) },
    custom: true,
  })
  for (const event of ['Good', 'Good', 'Bad', 'New']) await deliver(receiver, of(event))
  await deliver(receiver, fixtures.page)
  expect(summaryOf(await lines())).toEqual(['New 1 0 false', 'Bad 1 1 true', 'Good 2 0 true', 'page 1 0 -'])
  const traits = inspect({ traits: { group: z.object({}) } })
  for (const message of [fixtures.identify, of('Sold')]) await deliver(traits.receiver, message)
  expect(summaryOf(await traits.lines())).toEqual(['identify 1 0 false', 'Sold 1 0 -', 'group 0 0 true'])
})

it('what arrived is not what strangers sent; of unsigned messages, those that were read', async () => {
  const { receiver, lines } = inspect()
  await deliver(receiver, of('Forged'), 'another secret')
  await deliver(receiver, 'no JSON')
  await deliver(receiver, { type: 'track' })
  await deliver(receiver, of('Signed'))
  await receiver.close()
  await deliver(receiver, of('Late'))
  expect(summaryOf(await lines())).toEqual(['Signed 1 0 -'])
  const unsigned = inspect({ allowUnsigned: true })
  for (const message of [of('A'), { type: 'track' }]) await deliver(unsigned.receiver, message)
  expect(summaryOf(await unsigned.lines())).toEqual(['A 1 0 -'])
})

it('500 events are counted beside those with a schema, and all others together', async () => {
  const { receiver, parts } = inspect({ events })
  for (let index = 0; index < 502; index += 1) await deliver(receiver, of(`Event ${index}`))
  await deliver(receiver, of('Event 501'))
  await deliver(receiver, completed)
  const [part] = await parts()
  expect(part?.events).toHaveLength(501)
  expect(part?.others).toBe(3)
  expect(part?.events.at(-1)).toMatchObject({ event: 'Order Completed', count: 1 })
})

const MISMATCHES = { 'at once': {}, 'of a batch': { batches: true }, 'of an inbox': { inbox: memoryQueue() } } as const

it.each(Object.entries(MISMATCHES))('what does not match is counted by field: %s', async (_, options) => {
  const { receiver, lines } = inspect({ events, ...options })
  if ('inbox' in options) receiver.start()
  const wrong = of('Order Completed', { total: '1', items: [{ sku: 'a' }, { sku: 5, price: 1 }, { sku: 'b' }] })
  const all = [wrong, completed, of('Order Completed', { items: [] })]
  if ('batches' in options) await deliver(receiver, JSON.stringify([...all, { type: 'track', event: 'Invalid' }]))
  else for (const message of all) await deliver(receiver, message)
  await expect.poll(async () => (await lines())[0]?.failed).toBe(2)
  expect(await lines()).toMatchObject([
    {
      event: 'Order Completed',
      count: 3,
      hasSchema: true,
      fields: [
        { path: 'properties.total', code: 'invalid_type', count: 2 },
        { path: 'properties.items[].price', code: 'invalid_type', count: 1 },
        { path: 'properties.items[].sku', code: 'invalid_type', count: 1 },
      ],
      otherFields: 0,
    },
  ])
})

it('what does not match has 20 fields at most, and shows keys that look like names', () => {
  const counts = createEventCounts('shop', setUp().clock)
  const fail = (keys: readonly (string | { readonly key: string })[]) => {
    const issues = keys.map((key) => ({ message: '', path: [key] }))
    counts.mismatched({ type: 'custom' }, new HooklineError('schema_mismatch', '', { path: 'body', issues }))
  }
  fail(['x'.repeat(1_000), { key: 'named' }])
  fail(Array.from({ length: 20 }, (_, index) => `key ${index}`))
  const [line] = counts.snapshot().events
  expect([line?.fields.length, line?.otherFields, line?.failed]).toEqual([20, 2, 2])
  expect(line?.fields.slice(0, 2).map(({ path }) => path)).toEqual(['body.*', 'body.named'])
})

it.each(['receiver', 'inspector'] as const)(
  'what does not match is deleted, as a message may name it, by `forget` of the %s',
  async (by) => {
    const { receiver, inspector, lines } = inspect({
      inbox: memoryQueue(),
      events: { Prices: z.object({ by: z.record(z.string(), z.number()) }) },
    })
    receiver.start()
    await deliver(receiver, of('Prices', { by: { ada: 'none' } }))
    await expect.poll(async () => (await lines())[0]?.fields[0]?.path).toBe('properties.by.ada')
    await (by === 'receiver' ? receiver : inspector).forget('ada')
    expect(await lines()).toMatchObject([{ count: 1, failed: 1, fields: [], otherFields: 0 }])
  },
)

it.each([
  ['of a long list, the first 1 000', Array(5_000).fill(of('Sold')), false, [['Sold', 1_000]]],
  ['of a list, only messages', [of('Sold'), { type: 'track' }, 7], false, [['Sold', 1]]],
  ['nothing of what a stranger may have sent', of('Sold'), true, []],
])('the page of `hookline listen` counts %s', async (_what, sent, isRefused, counted) => {
  const page = createRequestPage({})
  closeLater(page.close)
  const body = Buffer.from(JSON.stringify(sent))
  const outcome = { at: 0, state: 'done', durationMs: 1 } as const
  const request = { ...outcome, method: 'PUT', path: '/hooks', headers: { host: 'x' } }
  const described = { type: 'track', name: 'Sold', user: 'u', status: 200, code: 'none', bytes: body.length } as const
  const steps = [{ at: 0, what: 'queued' }] as const
  const read = async (path: string, query = '') =>
    JSON.parse((await get(page as unknown as Inspector, path, query)).body as string)
  page.append({ ...request, ...described, body, steps, isRefused }, true)
  page.append({ ...request, ...described, body, steps, isRefused }, false)
  const [part] = (await read('/api/events')) as PartEvents[]
  const { p50 } = (await read('/api/series', 'part=listen&minutes=240')) as Series
  expect(p50.filter((ms) => ms !== null)).toEqual([expect.closeTo(1, 0)])
  const row = { id: 1, part: 'listen', kind: 'received', attempts: 0, ...outcome, ...described }
  expect(await read('/api/message', 'id=1')).toEqual({
    ...{ row: { ...row, ...(isRefused && { isRefused }) }, steps, isStored: false, canExplain: false },
    request: { method: 'PUT', path: '/hooks', headers: [['host', 'x']] },
    body: { size: body.length, text: String(body) },
  })
  expect(part?.events.map(({ event, count }) => [event, count])).toEqual(counted)
})
