/** What the page can do: dead letters, and sending a message again. */

import { randomUUID } from 'node:crypto'
import { createReceiver, type DeadLetterPage, HooklineError, type Message } from 'hookline'
import { serve } from 'hookline/node'
import { memoryQueue } from 'hookline/queues/memory'
import { createDestination, createSender } from 'hookline/sender'
import { capture, fixtures, manualClock } from 'hookline/testing'
import { expect, it, vi } from 'vitest'
import { systemClock } from '../../../src/kit/clock.ts'
import { deliver } from '../../../test/support/receive.ts'
import { throwing } from '../../../test/support/throwing.ts'
import { groupOf } from '../../letter-groups.ts'
import type { InspectorEndpoint } from '../src/endpoint/endpoint.ts'
import { partOfDestination, partOfQueue, partOfReceiver } from '../src/endpoint/queues.ts'
import { createInspector } from '../src/index.ts'
import type { DeadLetters } from '../src/wire.ts'
import { ask, closeLater, endpointOf, get, headerOf, keptBy, OWN_HEADERS, post, start } from './support.ts'

const SECRET = 'a secret that no answer has'

const idOf = (index: number) => `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`

const filler = 'x'.repeat(400)
const bodyOf = (at: number, reason: string) => ({ type: 'track', userId: `u${at}`, event: 'Sold', reason, filler })

async function queueWith(reasons: Record<string, number>) {
  const clock = manualClock()
  const queue = memoryQueue({ clock })
  closeLater(() => queue.close({ graceMs: 0 }))
  const planned = Object.entries(reasons).flatMap(([reason, count]) => Array.from({ length: count }, () => reason))
  const jobs = planned.map((reason, index) => ({
    id: idOf(index),
    body: Buffer.from(JSON.stringify(bodyOf(index, reason))),
  }))
  await queue.push(jobs)
  queue.work(async ({ body }) => ({ deadLetter: JSON.parse(Buffer.from(body).toString()).reason }), { concurrency: 10 })
  await queue.drain()
  void queue.pause() // What is redriven waits.
  return queue
}

async function deadLettersOf(endpoint: InspectorEndpoint, query: string): Promise<DeadLetters> {
  const { status, body } = await get(endpoint, '/api/dead-letters', query)
  expect(status).toBe(200)
  return JSON.parse(body as string)
}

it('dead letters are one group when only numbers and ids in their errors differ', () => {
  const letters = ['Order 4711 is locked', 'Order 12 is locked', `Order ${randomUUID()} is locked`, 'Order is gone']
  const names = letters.map((error) => groupOf({ reason: 'handler_failed', error }))
  expect(new Set(names)).toEqual(new Set(['handler_failed: Order # is locked', 'handler_failed: Order is gone']))
  expect(groupOf({ reason: 'long', error: 'x'.repeat(201) })).toBe(`long: ${'x'.repeat(200)}`)
})

it('dead letters of a queue by itself are grouped, and listed in pages', async () => {
  const queue = await queueWith({ refused: 120, window_over: 30 })
  const { journal } = keptBy(systemClock)
  const { id: row } = journal.addMessage('orders', { kind: 'received', at: 0, deliveryId: idOf(140) })
  const endpoint = endpointOf({ parts: [partOfQueue('orders', queue, systemClock)], journal })

  const { letters, ...first } = await deadLettersOf(endpoint, 'part=orders&group=window_over%3A%20')
  const failedAt = manualClock().now()
  const group = (reason: string, count: number) => ({
    name: `${reason}: `,
    reason,
    error: '',
    count,
    latestAt: failedAt,
  })
  expect(first).toEqual({ isWhole: true, groups: [group('window_over', 30), group('refused', 120)] })
  const read = (index: number) => {
    const fields = { id: idOf(index), type: 'track', name: 'Sold', user: `u${index}` }
    const excerpt = JSON.stringify(bodyOf(index, 'window_over')).slice(0, 400)
    return { ...fields, excerpt, reason: 'window_over', failedAt, attempts: 0, ...(index === 140 && { row }) }
  }
  expect(letters).toEqual(Array.from({ length: 30 }, (_, index) => read(149 - index)))
  expect(await get(endpoint, '/api/dead-letters', 'part=orders&after=x')).toMatchObject({ status: 400 })

  const ids = new Set<string>()
  for (let after: string | undefined = ''; after !== undefined; ) {
    const query = `part=orders&group=refused: ${after && `&after=${after}`}`
    const { letters, next }: DeadLetters = await deadLettersOf(endpoint, query)
    expect(letters).toHaveLength(next === undefined ? 20 : 50)
    for (const { id } of letters) ids.add(id)
    after = next
  }
  expect(ids.size).toBe(120)
})

it('dead letters of a destination have its last attempt, and are delivered when they are redriven', async () => {
  const clock = manualClock()
  const queue = memoryQueue({ clock })
  const { dispatcher } = capture({ script: [{ status: 410, body: 'gone' }, 'reset', 200, 410] })
  const webhooks = [{ url: 'https://shop.example/' }]
  const logger = { error() {}, warn() {}, info() {} }
  const transform = (message: Message) => (message.userId === 'u1' ? message : expect.fail('broken'))
  const destination = createDestination({ webhooks, sharedSecret: SECRET, queue, clock, dispatcher, logger, transform })
  closeLater(() => destination.close({ graceMs: 0 }))
  const parts = [partOfDestination('shop', destination), partOfQueue('outbox', queue, clock)]
  const endpoint = endpointOf({ parts, clock })
  for (const userId of ['u1', 'u2']) await destination.track({ userId, event: 'Sold' })
  await clock.advance(0)

  const failedAt = clock.now()
  const sold = { id: expect.any(String), failedAt, type: 'track', name: 'Sold' }
  const of = (user: string) => ({ ...sold, user, excerpt: expect.stringContaining(`"${user}"`) })
  const stack = expect.stringContaining('actions.test.ts')
  const error = { code: 'transform_failed', message: expect.stringContaining('broken'), stack }
  const broken = { ...of('u2'), reason: error.code, attempts: 0, error }
  const refused = { ...of('u1'), reason: 'refused', attempts: 1, error: { code: 'HTTP 410', message: 'gone' } }
  for (const part of ['shop', 'outbox']) {
    const { groups, letters } = await deadLettersOf(endpoint, `part=${part}`)
    const names = groups.map(({ name, reason, error, count, latestAt }) => [name, reason, error, count, latestAt])
    expect(names).toContainEqual(['refused: HTTP #', 'refused', 'HTTP 410', 1, failedAt])
    expect(letters.toSorted((one, other) => other.attempts - one.attempts)).toEqual([refused, broken])
  }
  const [dropped] = (await destination.deadLetters()).filter(({ reason }) => reason !== 'refused')
  await destination.drop([dropped?.id as string])
  expect(await post(endpoint, '/api/redrive', { part: 'shop', dryRun: false })).toMatchObject({ body: { count: 1 } })
  await clock.advance(4 * 3_600_000)
  expect(await destination.health()).toMatchObject({ waiting: 0, deadLetters: 0 })

  await destination.track({ userId: 'u1', event: 'Sold' })
  await clock.advance(0)
  const drop = () => post(endpoint, '/api/drop', { part: 'shop', dryRun: false })
  const [first, second] = await Promise.all([drop(), drop()])

  expect(first).toMatchObject({ status: 200, body: { count: 1 } })
  expect(second).toMatchObject({ status: 409 })
  expect(await destination.health()).toMatchObject({ deadLetters: 0 })
})

it('dead letters of an inbox have the error of the handler, and the replay that they are copies of', async () => {
  const clock = manualClock()
  const inbox = { queue: memoryQueue({ clock }), retries: [], history: { maxAgeMs: 60_000 } }
  const receiver = createReceiver({ secret: SECRET, inbox, clock, onError: () => {} })
  receiver.on('track', (_message, { replay }) => {
    if (replay !== undefined) throw new TypeError('The card was declined.')
  })
  closeLater(() => receiver.close())
  receiver.start()
  await deliver(receiver, fixtures.track, SECRET)
  await clock.advance(0)
  await receiver.replay({ id: 'fix-42' })
  await clock.advance(0)

  const endpoint = endpointOf({ parts: [partOfReceiver('app', receiver)], clock })
  const message = expect.stringContaining('TypeError: The card was declined.')
  const error = { code: 'handler_failed', message, stack: expect.stringContaining('actions.test.ts') }
  const { letters } = await deadLettersOf(endpoint, 'part=app')
  const fields = { type: 'track', name: 'Order Completed', user: 'user-1', excerpt: JSON.stringify(fixtures.track) }
  const failed = { reason: 'handler_failed', failedAt: clock.now(), attempts: 1, error, replayId: 'fix-42' }
  expect(letters).toEqual([{ id: expect.any(String), ...fields, ...failed }])
})

it('a dry run counts dead letters and changes none; then they are changed, and the journal notes each slice', async () => {
  const queue = await queueWith({ refused: 1_100, window_over: 30 })
  const clock = manualClock()
  const { journal } = keptBy(clock)
  journal.update(journal.addMessage('shop', { kind: 'received', at: 0 }))
  const changed = vi.spyOn(journal, 'changed')
  const endpoint = endpointOf({ parts: [partOfQueue('orders', queue, systemClock)], journal, clock })
  const groups = { refused: { reason: 'refused', count: 1_100 }, over: { reason: 'window_over', count: 30 } }

  const dry = await post(endpoint, '/api/drop', { part: 'orders', dryRun: true })
  expect(dry).toEqual({ status: 200, body: { count: 1_130, reasons: [groups.refused, groups.over] } })
  expect(await queue.counts()).toMatchObject({ deadLetters: 1_130, waiting: 0 })
  expect(changed).not.toHaveBeenCalled()
  expect((await deadLettersOf(endpoint, 'part=orders')).groups).toHaveLength(2)

  const redriven = await post(endpoint, '/api/redrive', { part: 'orders', group: 'refused: ', dryRun: false })
  expect(redriven).toEqual({ status: 200, body: { count: 1_100, reasons: [groups.refused] } })
  expect(await queue.counts()).toMatchObject({ deadLetters: 30, waiting: 1_100 })
  expect(changed.mock.calls).toEqual(
    [500, 500, 100].map((length) => ['orders', expect.objectContaining({ length }), 'redriven', clock.now(), 1]),
  )
  expect((await deadLettersOf(endpoint, 'part=orders')).groups).toMatchObject([groups.over])

  const ids = [idOf(1_100), idOf(0)]
  const dropped = await post(endpoint, '/api/drop', { part: 'orders', ids, dryRun: false })
  expect(dropped.body).toEqual({ count: 1, reasons: [{ reason: 'window_over', count: 1 }] })
  expect(await post(endpoint, '/api/drop', { part: 'orders', dryRun: false })).toMatchObject({ body: { count: 29 } })
  expect(await queue.counts()).toMatchObject({ deadLetters: 0, waiting: 1_100 })
})

/** A part with so many dead letters, made up as they are read; its methods are spies. */
function partWith(count: number) {
  const letters = vi.fn(async function* ({ newestFirst, after }: DeadLetterPage) {
    for (let index = after === undefined ? 0 : Number(after.slice(-12)) + 1; index < count; index += 1) {
      const at = newestFirst ? count - index : index
      const details = () => ({ attempts: 1, excerpt: '' })
      yield { id: idOf(index), reason: index === 0 ? 'rare' : 'usual', error: '', failedAt: new Date(at), details }
    }
  })
  const change = vi.fn(async (ids: readonly string[]) => ids.length)
  const queue = { exists: async () => true, health: vi.fn(), letters, redrive: change, drop: change }
  return { part: { name: 'shop', kind: 'queue', queue } as const, letters, change }
}

it('dead letters are read up to 10 000, and their groups again after 5 seconds, a failure or a change', async () => {
  const { part, letters } = partWith(10_001)
  const machine = manualClock()
  const endpoint = endpointOf({ parts: [part], machine })
  const reads = async () => {
    letters.mockClear()
    const { groups, ...read } = await deadLettersOf(endpoint, 'part=shop&group=none')
    expect(read).toEqual({ isWhole: false, letters: [], next: idOf(9_999) })
    expect(groups.map(({ count }) => count)).toEqual([1, 9_999])
    return letters.mock.calls.length
  }

  letters.mockImplementationOnce(throwing(new HooklineError('queue_unavailable', 'away')))
  expect(await get(endpoint, '/api/dead-letters', 'part=shop')).toMatchObject({ status: 503 })
  expect([await reads(), await reads()]).toEqual([2, 1])
  await machine.advance(4_999)
  expect(await reads()).toBe(1)
  await machine.advance(1)
  expect([await reads(), await reads()]).toEqual([2, 1])
  await post(endpoint, '/api/drop', { part: 'shop', ids: [idOf(0)], dryRun: false })
  expect(await reads()).toBe(2)
})

it('dead letters that are changed until the queue is unavailable: the error says how many were', async () => {
  const { part, letters, change } = partWith(1_200)
  const endpoint = endpointOf({ parts: [part] })
  const redrive = (more: object) => post(endpoint, '/api/redrive', { part: 'shop', dryRun: false, ...more })
  change.mockResolvedValueOnce(499).mockRejectedValueOnce(new HooklineError('queue_unavailable', 'away'))
  expect(await redrive({})).toEqual({ status: 503, body: { error: expect.stringMatching(/499.*1200/) } })
  const reasons = ['rare', 'usual'].map((reason) => ({ reason, count: 1 }))
  expect(await redrive({ ids: [idOf(1), idOf(0)] })).toEqual({ status: 200, body: { count: 2, reasons } })
  expect(change).toHaveBeenLastCalledWith([idOf(0), idOf(1)])
  expect(letters).toHaveBeenLastCalledWith({ newestFirst: false })
})

const receiver = createReceiver({ secret: SECRET })
type Wrong = [string, object, number]
it.each<Wrong>([
  ['an unknown part', { part: '__proto__', dryRun: true }, 404],
  ['a receiver without an inbox', { part: 'shop', dryRun: true }, 404],
  ['no dryRun', { part: 'orders' }, 400],
  ['ids that are text', { part: 'orders', dryRun: false, ids: 'all' }, 400],
  ...[[], [7], Array(10_001).fill('a')].map((ids): Wrong => ['ids', { part: 'orders', dryRun: false, ids }, 400]),
  ['ids and a group', { part: 'orders', dryRun: false, ids: ['a'], group: 'refused: ' }, 400],
  ['a group of another type', { part: 'orders', dryRun: false, group: null }, 400],
])('dead letters are not changed by %s', async (_name, body, status) => {
  const queue = await queueWith({ refused: 2 })
  const parts = [partOfQueue('orders', queue, systemClock), partOfReceiver('shop', receiver)]
  const endpoint = endpointOf({ parts })
  for (const path of ['/api/redrive', '/api/drop']) expect(await post(endpoint, path, body)).toMatchObject({ status })
  expect(await queue.counts()).toMatchObject({ deadLetters: 2 })
})

it('sending again goes to the URLs of the sender, and answers with the attempts', async () => {
  const receiver = createReceiver({ secret: SECRET, onError: () => {} }).on('track', () => {})
  const url = await start(serve(receiver))
  const sender = createSender({ webhooks: [{ url: `${url}/?key=hidden` }], sharedSecret: SECRET })
  const inspector = createInspector({ receiver, senders: { shop: sender } })
  closeLater(() => Promise.all([inspector.close(), sender.close()]))
  const incomplete = { type: 'track', userId: 'u1' }
  const messages = [{ ...incomplete, event: 'Sold' }, incomplete, '[]', { ...incomplete, userId: 42, event: 'Sold' }]
  for (const message of messages) await deliver(receiver, message, SECRET)
  await deliver(receiver, { type: 'delete', userId: 'victim' }, 'a forger')

  const sent = await post(inspector, '/api/send-again', { sender: 'shop', id: 1 })

  const [at, durationMs] = [expect.any(Number), expect.any(Number)]
  const attempts = [{ url: `${url}/?…`, at, durationMs, ok: true, status: 200, body: '{"ok":true}' }]
  expect(sent).toEqual({ status: 200, body: { ok: true, attempts } })
  expect(JSON.stringify(sent)).not.toMatch(/hidden|a secret/)
  const again = async (id: unknown, sender = 'shop') =>
    (await post(inspector, '/api/send-again', { sender, id })).status
  expect([await again(4), await again(2), await again(3), await again('1')]).toEqual([200, 422, 400, 400])
  const [forged, gone] = [5, 99]
  const unknown = [await again(forged), await again(gone), await again(1, 'constructor'), await again(1, url)]
  expect(unknown).toEqual([404, 404, 404, 404])
})

it('four messages are sent again at a time', async () => {
  const { promise, resolve } = Promise.withResolvers<object>()
  const senders = new Map([['slow', { send: () => promise } as never]])
  const { journal } = keptBy(systemClock)
  vi.spyOn(journal, 'messageOf').mockReturnValue(fixtures.track)
  const endpoint = endpointOf({ senders, journal })
  const headers = { ...OWN_HEADERS, ...headerOf(endpoint) }
  const send = () => ask(endpoint, '/api/send-again', { method: 'POST', headers, body: { sender: 'slow', id: 1 } })
  const four = [send(), send(), send(), send()]
  expect(await send()).toMatchObject({ status: 429, headers: { 'retry-after': '1' } })
  resolve({ ok: true, attempts: [] })
  expect((await Promise.all(four)).map(({ status }) => status)).toEqual([200, 200, 200, 200])
  expect(await send()).toMatchObject({ status: 200 })
  senders.set('slow', { send: () => Promise.reject(new Error('the disk is on fire')) } as never)
  expect(await send()).toMatchObject({ status: 500, body: expect.not.stringContaining('disk') })
})
