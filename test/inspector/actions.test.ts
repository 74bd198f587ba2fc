/** What the page can do: dead letters, sending, faults and the clock. */

import { randomUUID } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { serve } from '../../adapters/node.ts'
import { createReceiver } from '../../src/index.ts'
import { groupOf } from '../../src/inspector/endpoint/dead-letters.ts'
import type { InspectorEndpoint } from '../../src/inspector/endpoint/endpoint.ts'
import { partOfDestination, partOfQueue, partOfReceiver } from '../../src/inspector/endpoint/queues.ts'
import type { DeadLetters } from '../../src/inspector/wire.ts'
import { createInspector } from '../../src/inspector.ts'
import { HooklineError } from '../../src/message/error.ts'
import { memoryQueue } from '../../src/queues/memory/index.ts'
import { createDestination, createSender } from '../../src/sender.ts'
import { capture, fixtures, type ManualClock, manualClock, signedRequest } from '../../src/testing.ts'
import { systemClock } from '../../src/time/clock.ts'
import { ask, closeLater, endpointOf, fakeJournal, get, headerOf, OWN_HEADERS, post, start } from './support.ts'

const SECRET = 'a secret that no answer has'

/** Lets time pass by the clock of the machine, in which that of the app is moved. */
async function pass(machine: ManualClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 10) {
    await machine.advance(10)
    for (let turn = 0; turn < 6; turn++) await nextTurn()
  }
}

async function queueWith(reasons: Record<string, number>) {
  const clock = manualClock()
  const queue = memoryQueue({ clock })
  closeLater(() => queue.close({ graceMs: 0 }))
  const planned = Object.entries(reasons).flatMap(([reason, count]) => Array.from({ length: count }, () => reason))
  const jobs = planned.map((reason, index) => ({
    id: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
    body: Buffer.from(JSON.stringify({ type: 'track', userId: `u${index}`, event: 'Order Completed', reason })),
  }))
  await queue.push(jobs)
  queue.work(async ({ body }) => ({ deadLetter: JSON.parse(Buffer.from(body).toString()).reason }), { concurrency: 10 })
  await queue.drain()
  queue.pause() // What is redriven waits.
  return queue
}

async function deadLettersOf(endpoint: InspectorEndpoint, query: string): Promise<DeadLetters> {
  const { status, body } = await get(endpoint, '/api/dead-letters', query)
  expect(status).toBe(200)
  return JSON.parse(body as string)
}

describe('dead letters', () => {
  it('are one group when only numbers and ids in their errors differ', () => {
    const letters = ['Order 4711 is locked', 'Order 12 is locked', `Order ${randomUUID()} is locked`, 'Order is gone']
    const names = letters.map((error) => groupOf({ reason: 'handler_failed', error }))
    expect(new Set(names)).toEqual(new Set(['handler_failed: Order # is locked', 'handler_failed: Order is gone']))
  })

  it('of a queue by itself are grouped, and listed in pages', async () => {
    const queue = await queueWith({ refused: 120, window_over: 30 })
    const endpoint = endpointOf({ parts: [partOfQueue('orders', queue, systemClock)] })
    const first = await deadLettersOf(endpoint, `part=orders&group=${encodeURIComponent('window_over: ')}`)
    expect(first).toMatchObject({
      part: 'orders',
      isWhole: true,
      groups: [
        { name: 'window_over: ', reason: 'window_over', error: '', count: 30 },
        { name: 'refused: ', reason: 'refused', error: '', count: 120 },
      ],
    })
    expect(first.letters).toHaveLength(30)
    expect(first.next).toBeUndefined()
    expect(first.letters[0]).toMatchObject({
      id: '00000000-0000-4000-8000-000000000149',
      reason: 'window_over',
      attempts: 0,
      type: 'track',
      name: 'Order Completed',
      user: 'u149',
      excerpt: expect.stringContaining('"userId":"u149"'),
    })
    expect(first.letters[9]).toMatchObject({ user: 'u140', row: 7 })
    expect(first.letters[1]).not.toHaveProperty('row')
    const wrong = await get(endpoint, '/api/dead-letters', 'part=orders&after=x')
    expect([wrong.status, wrong.body]).toEqual([
      400,
      expect.stringContaining('`after` must be the id of a dead letter'),
    ])

    const ids: string[] = []
    for (let after: string | undefined = ''; after !== undefined; ) {
      const page: DeadLetters = await deadLettersOf(
        endpoint,
        `part=orders&group=refused: ${after && `&after=${after}`}`,
      )
      expect(page.letters.length).toBeLessThanOrEqual(50)
      ids.push(...page.letters.map(({ id }) => id))
      after = page.next
    }
    expect(new Set(ids).size).toBe(120)
    expect(ids).toHaveLength(120)
  })

  it('of a destination have its last attempt, and are delivered when they are redriven', async () => {
    const clock = manualClock()
    const queue = memoryQueue({ clock })
    const { dispatcher } = capture({ script: [{ status: 410, body: 'gone' }, 'reset', 200, 410] })
    const webhooks = [{ url: 'https://shop.example/' }]
    const logger = { error() {}, warn() {}, info() {} }
    const destination = createDestination({ webhooks, sharedSecret: SECRET, queue, clock, dispatcher, logger })
    closeLater(() => destination.close({ graceMs: 0 }))
    const parts = [partOfDestination('shop', destination), partOfQueue('outbox', queue, clock)]
    const endpoint = endpointOf({ parts, clock })
    await destination.track({ userId: 'u1', event: 'Sold' })
    await clock.advance(0)

    const error = { code: 'HTTP 410', message: 'gone' }
    for (const part of ['shop', 'outbox']) {
      const { groups, letters } = await deadLettersOf(endpoint, `part=${part}`)
      expect(groups).toMatchObject([{ reason: 'refused', count: 1 }])
      expect(letters).toMatchObject([{ attempts: 1, error, type: 'track', name: 'Sold', user: 'u1' }])
    }
    expect(await post(endpoint, '/api/redrive', { part: 'shop', dryRun: false })).toMatchObject({ body: { count: 1 } })
    await clock.advance(4 * 3_600_000)
    expect(await destination.health()).toMatchObject({ waiting: 0, deadLetters: 0 })

    await destination.track({ userId: 'u1', event: 'Sold' })
    await clock.advance(0)
    const drop = () => post(endpoint, '/api/drop', { part: 'shop', dryRun: false })
    const [first, second] = await Promise.all([drop(), drop()])
    expect(first).toMatchObject({ status: 200, body: { count: 1 } })
    expect(second).toEqual({ status: 409, body: { error: expect.stringContaining('one change at a time') } })
    expect(await destination.health()).toMatchObject({ deadLetters: 0 })
  })

  it('of an inbox have the error of the handler; of what is no message, its bytes', async () => {
    const clock = manualClock()
    const [queue, other] = [memoryQueue({ clock }), memoryQueue({ clock })]
    const receiver = createReceiver({ secret: SECRET, inbox: { queue, retries: [] }, clock, onError: () => {} })
    receiver.on('track', () => {
      throw new TypeError('The card was declined.')
    })
    closeLater(() => Promise.all([receiver.close(), other.close({ graceMs: 0 })]))
    receiver.start()
    const { bytes, headers } = signedRequest(fixtures.track, SECRET)
    await receiver.receive(bytes, headers)
    await other.push(['no JSON', '7'].map((text) => ({ id: crypto.randomUUID(), body: Buffer.from(text) })))
    other.work(async () => ({ deadLetter: 'broken' }), { concurrency: 1 })
    await clock.advance(0)

    const parts = [partOfReceiver('app', receiver), partOfQueue('other', other, clock)]
    const endpoint = endpointOf({ parts, clock })
    expect((await deadLettersOf(endpoint, 'part=app')).letters).toMatchObject([
      {
        reason: 'handler_failed',
        type: 'track',
        error: {
          code: 'handler_failed',
          message: expect.stringContaining('TypeError: The card was declined.'),
          stack: expect.stringContaining('actions.test.ts'),
        },
      },
    ])
    const { letters } = await deadLettersOf(endpoint, 'part=other')
    expect(letters.map(({ excerpt }) => excerpt).toSorted()).toEqual(['7', 'no JSON'])
    for (const letter of letters) expect(letter).not.toHaveProperty('type')
    expect(await post(endpoint, '/api/redrive', { part: 'app', dryRun: false })).toMatchObject({ body: { count: 1 } })
    await clock.advance(0)
    expect(await post(endpoint, '/api/drop', { part: 'app', dryRun: false })).toMatchObject({ body: { count: 1 } })
    expect(await receiver.health()).toMatchObject({ waiting: 0, deadLetters: 0 })
  })

  it('are read page by page, and other requests go between', async () => {
    const queue = await queueWith({ refused: 1_000 })
    const endpoint = endpointOf({ parts: [partOfQueue('orders', queue, systemClock)] })
    let [turns, isOver] = [0, false]
    const count = (): void => {
      turns += 1
      if (!isOver) setImmediate(count)
    }
    setImmediate(count)
    await deadLettersOf(endpoint, 'part=orders&reason=other')
    isOver = true
    expect(turns).toBeGreaterThan(15)
  })

  it('a dry run counts and changes nothing; then they are changed, and the journal notes each slice', async () => {
    const queue = await queueWith({ refused: 1_100, window_over: 30 })
    const journal = fakeJournal()
    const clock = manualClock()
    const endpoint = endpointOf({ parts: [partOfQueue('orders', queue, systemClock)], journal, clock })
    const groups = { refused: { reason: 'refused', count: 1_100 }, over: { reason: 'window_over', count: 30 } }

    const dry = await post(endpoint, '/api/drop', { part: 'orders', dryRun: true })
    expect(dry).toEqual({ status: 200, body: { count: 1_130, reasons: [groups.refused, groups.over], dryRun: true } })
    expect(await queue.counts()).toMatchObject({ deadLetters: 1_130, waiting: 0 })
    expect(journal.noted).toEqual([])

    const redriven = await post(endpoint, '/api/redrive', { part: 'orders', group: 'refused: ', dryRun: false })
    expect(redriven).toEqual({ status: 200, body: { count: 1_100, reasons: [groups.refused], dryRun: false } })
    expect(await queue.counts()).toMatchObject({ deadLetters: 30, waiting: 1_100 })
    expect(journal.noted).toEqual(
      [500, 500, 100].map((length) => ['orders', expect.objectContaining({ length }), 'redriven', clock.now(), 1]),
    )
    expect((await deadLettersOf(endpoint, 'part=orders')).groups).toMatchObject([groups.over])

    const ids = ['00000000-0000-4000-8000-000000001100', '00000000-0000-4000-8000-000000000000']
    const dropped = await post(endpoint, '/api/drop', { part: 'orders', ids, dryRun: false })
    expect(dropped.body).toEqual({ count: 1, reasons: [{ reason: 'window_over', count: 1 }], dryRun: false })
    expect(await post(endpoint, '/api/drop', { part: 'orders', dryRun: false })).toMatchObject({ body: { count: 29 } })
    expect(await queue.counts()).toMatchObject({ deadLetters: 0, waiting: 1_100 })
  })

  it('a redrive is noted at the time before it: its job may end before the queue has answered', async () => {
    const queue = await queueWith({ refused: 1 })
    const part = partOfQueue('orders', queue, systemClock)
    const clock = manualClock()
    const [journal, before] = [fakeJournal(), clock.now()]
    const redrive = async (ids: readonly string[]): Promise<number> => {
      await clock.advance(20)
      return queue.redrive(ids)
    }
    Object.assign(part.queue as object, { redrive })
    const endpoint = endpointOf({ parts: [part], journal, clock })
    expect(await post(endpoint, '/api/redrive', { part: 'orders', dryRun: false })).toMatchObject({ status: 200 })
    expect(journal.noted).toEqual([['orders', expect.anything(), 'redriven', before, 1]])
  })

  it('says how many were changed before the queue failed', async () => {
    const queue = await queueWith({ refused: 600 })
    const part = partOfQueue('orders', queue, systemClock)
    const redrive = async (ids: readonly string[]): Promise<number> => {
      if (ids.length === 500) return queue.redrive(ids)
      throw new HooklineError('queue_full', 'The queue is full.')
    }
    Object.assign(part.queue as object, { redrive })
    const answer = await post(endpointOf({ parts: [part] }), '/api/redrive', { part: 'orders', dryRun: false })
    expect(answer).toEqual({ status: 503, body: { error: 'The queue is full. 500 of 600 were redriven before.' } })
  })

  const receiver = createReceiver({ secret: SECRET })
  const wrong: Record<string, [body: object, status: number, text: string]> = {
    'no part': [{ dryRun: true }, 404, 'Got another name'],
    'an unknown part': [{ part: '__proto__', dryRun: true }, 404, 'Got another name'],
    'a receiver without an inbox': [{ part: 'shop', dryRun: true }, 404, 'must have a queue'],
    'no dryRun': [{ part: 'orders' }, 400, '`dryRun` must be true or false'],
    'a dryRun of another type': [{ part: 'orders', dryRun: 'false' }, 400, '`dryRun` must be true or false'],
    'ids that are text': [{ part: 'orders', dryRun: false, ids: 'all' }, 400, '`ids` must be a list'],
    'no id': [{ part: 'orders', dryRun: false, ids: [] }, 400, '`ids` must be a list'],
    'ids of another type': [{ part: 'orders', dryRun: false, ids: [1] }, 400, '`ids` must be a list'],
    'ids and a group': [{ part: 'orders', dryRun: false, ids: ['a'], group: 'refused: ' }, 400, 'without `ids`'],
    'a group of another type': [{ part: 'orders', dryRun: false, group: null }, 400, '`group` must be text'],
  }
  it.each(Object.entries(wrong))('are not changed by %s', async (_name, [body, status, text]) => {
    const queue = await queueWith({ refused: 2 })
    const endpoint = endpointOf({
      parts: [partOfQueue('orders', queue, systemClock), partOfReceiver('shop', receiver)],
    })
    for (const path of ['/api/redrive', '/api/drop']) {
      expect(await post(endpoint, path, body)).toEqual({ status, body: { error: expect.stringContaining(text) } })
    }
    expect(await queue.counts()).toMatchObject({ deadLetters: 2 })
  })
})

describe('sending', () => {
  it('goes to the URLs of the sender, and answers with the attempts', async () => {
    const receiver = createReceiver({ secret: SECRET, onError: () => {} }).on('track', () => {})
    const url = await start(serve(receiver))
    const sender = createSender({
      webhooks: [{ url: `${url}/?key=hidden` }],
      sharedSecret: SECRET,
    })
    closeLater(() => sender.close())
    const endpoint = endpointOf({ senders: new Map([['shop', sender]]) })
    const message = { type: 'track', userId: 'u1', event: 'Order Completed' }

    const sent = await post(endpoint, '/api/send', { sender: 'shop', message })
    expect(sent).toMatchObject({
      status: 200,
      body: { ok: true, attempts: [{ ok: true, status: 200, url: `${url}/?…` }] },
    })
    const tampered = await post(endpoint, '/api/send', { sender: 'shop', message, tamper: 'bad-signature' })
    expect(tampered).toMatchObject({ status: 200, body: { ok: false, attempts: [{ ok: false, status: 401 }] } })
    expect(JSON.stringify([sent, tampered])).not.toMatch(/hidden|a secret/)

    for (const [body, status, text] of [
      [{ sender: 'shop', message: { type: 'track', userId: 'u1' } }, 400, '`event`'],
      [{ sender: 'shop', message: 'track' }, 400, 'message'],
      [{ sender: 'shop' }, 400, 'message'],
      [{ sender: 'shop', message, tamper: 'burn' }, 400, '`tamper` must be one of'],
      [{ sender: 'constructor', message }, 404, 'The sender must be one'],
      [{ sender: url, message }, 404, 'The sender must be one'],
    ] as const) {
      expect(await post(endpoint, '/api/send', body)).toEqual({
        status,
        body: { error: expect.stringContaining(text) },
      })
    }
  })

  it('four at a time', async () => {
    const { promise, resolve } = Promise.withResolvers<object>()
    const senders = new Map([['slow', { send: () => promise } as never]])
    const endpoint = endpointOf({ senders })
    const headers = { ...OWN_HEADERS, ...headerOf(endpoint) }
    const send = () => ask(endpoint, '/api/send', { method: 'POST', headers, body: { sender: 'slow', message: {} } })
    const four = [send(), send(), send(), send()]
    expect(await send()).toMatchObject({ status: 429, headers: { 'retry-after': '1' } })
    resolve({ ok: true, attempts: [] })
    expect((await Promise.all(four)).map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(await send()).toMatchObject({ status: 200 })
    senders.set('slow', { send: () => Promise.reject(new Error('the disk is on fire')) } as never)
    expect(await send()).toMatchObject({ status: 500, body: expect.not.stringContaining('disk') })
  })
})

describe('faults', () => {
  it('answer the next requests of a receiver, and count down', async () => {
    const handled: string[] = []
    const receiver = createReceiver({ allowUnsigned: true, onError: () => {} }).on(
      '*',
      ({ userId }) => void handled.push(String(userId)),
    )
    const inspector = createInspector({ receiver: { shop: receiver }, development: true })
    closeLater(() => inspector.close())
    const origin = await start(serve(inspector.withFaults(receiver)))
    const message = (userId: string) =>
      fetch(origin, {
        method: 'POST',
        body: JSON.stringify({ type: 'track', userId, event: 'A' }),
        headers: { 'content-type': 'application/json' },
      })

    const fault = { part: 'shop', count: 2, status: 503 }
    expect(await post(inspector, '/api/faults', fault)).toEqual({ status: 200, body: fault })
    expect([(await message('u1')).status, (await message('u2')).status, (await message('u3')).status]).toEqual([
      503, 503, 200,
    ])
    await post(inspector, '/api/faults', { ...fault, count: 5 })
    await post(inspector, '/api/faults', { part: 'shop', count: 0 })
    expect((await message('u4')).status).toBe(200)
    await post(inspector, '/api/faults', fault)
    await inspector.close()
    expect((await message('u5')).status).toBe(200)
    expect(handled).toEqual(['u3', 'u4', 'u5'])
  })

  it('delay the normal answer by the clock of the receiver', async () => {
    const clock = manualClock()
    const receiver = createReceiver({ allowUnsigned: true, clock }).on('*', () => {})
    const inspector = createInspector({ receiver, development: true, clock })
    closeLater(() => inspector.close())
    const faulty = inspector.withFaults(receiver)
    expect(faulty.background).toBe(receiver.background)
    await post(inspector, '/api/faults', { part: 'receiver', count: 1, delayMs: 60_000 })
    let status: number | undefined
    const body = { type: 'track', userId: 'u1', event: 'A' }
    const headers = { 'content-type': 'application/json' }
    const answered = ask(faulty, '/', { method: 'POST', headers, body }).then((answer) => {
      status = answer.status
    })
    await clock.advance(59_999)
    expect(status).toBeUndefined()
    await clock.advance(1)
    await answered
    expect(status).toBe(200)
  })

  it('end when the client leaves before the delay is over', async () => {
    const clock = manualClock()
    const receiver = createReceiver({ allowUnsigned: true, clock }).on('*', () => {})
    const inspector = createInspector({ receiver, development: true, clock })
    closeLater(() => inspector.close())
    const request = { method: 'POST', headers: { 'content-type': 'application/json' }, body: { type: 'nothing' } }
    const faulty = inspector.withFaults(receiver)
    await post(inspector, '/api/faults', { part: 'receiver', count: 2, delayMs: 60_000, status: 503 })
    const timers = clock.nextTimerAt
    const leaving = new AbortController()
    const answered = ask(faulty, '/', { ...request, signal: leaving.signal })
    leaving.abort()
    expect((await answered).status).toBe(503)
    expect((await ask(faulty, '/', { ...request, signal: AbortSignal.abort() })).status).toBe(503)
    expect(clock.nextTimerAt).toBe(timers)
  })

  it('need development, a receiver, and bounds', async () => {
    const receiver = createReceiver({ secret: SECRET })
    const inspector = createInspector({ receiver, development: true })
    closeLater(() => inspector.close())
    const fault = { part: 'receiver', count: 1, status: 500 }
    const answer = await post(inspector, '/api/faults', fault)
    expect(answer).toEqual({
      status: 404,
      body: { error: expect.stringContaining('`inspector.withFaults(receiver)`') },
    })
    inspector.withFaults(receiver)
    expect(() => inspector.withFaults(createReceiver({ secret: SECRET }))).toThrow(
      'must be one that the inspector watches',
    )
    for (const [fault, status] of [
      [{ part: 'other', count: 1, status: 500 }, 404],
      [{ part: 'receiver', count: -1 }, 400],
      [{ part: 'receiver', count: 1.5 }, 400],
      [{ part: 'receiver', count: 10_001 }, 400],
      [{ part: 'receiver', count: 1, status: 101 }, 400],
      [{ part: 'receiver', count: 1, status: 600 }, 400],
      [{ part: 'receiver', count: 1, delayMs: 60_001 }, 400],
    ] as const) {
      expect(await post(inspector, '/api/faults', fault)).toMatchObject({ status })
    }
    const without = createInspector({ receiver })
    closeLater(() => without.close())
    expect(without.withFaults(receiver)).toBe(receiver)
    expect(await post(without, '/api/faults', fault)).toEqual({
      status: 403,
      body: { error: expect.stringContaining('`development: true`') },
    })
  })
})

describe('time', () => {
  it('moves over the real retries of a destination, and never past an answer that is on its way', async () => {
    const clock = manualClock()
    const receiver = createReceiver({ secret: SECRET, clock, onError: () => {} }).on('*', () => {})
    const inspected = createInspector({ receiver, development: true, clock })
    const url = await start(serve(inspected.withFaults(receiver)))
    const queue = memoryQueue({ clock })
    const statuses: (number | string | undefined)[] = []
    const destination = createDestination({
      ...{ webhooks: [{ url }], sharedSecret: SECRET, clock, queue },
      onAttempt: ({ latest }) => statuses.push(...latest.map(({ status, error }) => status ?? error)),
    })
    const inspector = createInspector({ destinations: destination, development: true, clock })
    closeLater(() => Promise.all([inspector.close(), inspected.close(), destination.close({ graceMs: 0 })]))

    await post(inspected, '/api/faults', { part: 'receiver', count: 3, status: 500 })
    await destination.track({ userId: 'u1', event: 'Order Completed' })
    const before = clock.now()
    const moved = await post(inspector, '/api/time', { advanceMs: 4 * 60 * 60 * 1_000 })
    expect(moved).toEqual({ status: 200, body: { now: before + 4 * 60 * 60 * 1_000, isMoving: false } })
    expect(statuses).toEqual([500, 500, 500, 200])
    expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, deadLetters: 0 })
  })

  it('one move at a time, and only what is allowed', async () => {
    const clock = manualClock()
    const machine = manualClock()
    let isActive = true
    const health = async () => ({
      status: 'ok',
      waiting: 0,
      active: isActive ? 1 : 0,
      deadLetters: 0,
      oldestDueAgeMs: 0,
    })
    const queue = { exists: async () => true, health } as never
    const endpoint = endpointOf({ parts: [{ name: 'a', kind: 'queue', queue }], movable: clock, clock, machine })
    const started = clock.now()
    const timer = clock.setTimeout(() => {}, 5_000)

    const moving = post(endpoint, '/api/time', { advanceMs: 3_000 })
    await pass(machine, 1_900)
    expect(clock.now()).toBe(started) // An answer is on its way.
    expect(await post(endpoint, '/api/time', { advanceMs: 1 })).toMatchObject({ status: 409 })
    await pass(machine, 150)
    expect(clock.now()).toBe(started + 1_000) // It took too long.
    isActive = false
    await pass(machine, 50)
    expect(await moving).toMatchObject({ body: { now: started + 3_000, isMoving: false } })
    clock.clearTimeout(timer)

    for (const body of [{}, { advanceMs: 0 }, { advanceMs: 7 * 86_400_000 + 1 }, { advanceMs: '1' }]) {
      expect(await post(endpoint, '/api/time', body)).toMatchObject({ status: 400 })
    }
    expect(await post(endpointOf(), '/api/time', { advanceMs: 1 })).toMatchObject({ status: 403 })
  })

  it('waits for a queue that does not answer as for one that is active, and shows it all the same', async () => {
    const hang = () => new Promise(() => {})
    for (const exists of [async () => true, hang]) {
      const [clock, machine] = [manualClock(), manualClock()]
      const queue = { exists, health: hang } as never
      const endpoint = endpointOf({ parts: [{ name: 'a', kind: 'queue', queue }], movable: clock, clock, machine })
      const started = clock.now()
      clock.setTimeout(() => {}, 5_000)
      const moving = post(endpoint, '/api/time', { advanceMs: 2_000 })
      const setup = get(endpoint, '/api/setup')
      await pass(machine, 1_550)
      expect(JSON.parse((await setup).body as string).parts).toMatchObject([
        { name: 'a', kind: 'queue', hasQueue: true },
      ])
      expect(clock.now()).toBe(started)
      await pass(machine, 20_000)
      expect(await moving).toMatchObject({ body: { now: started + 2_000 } })
    }
  })
})
