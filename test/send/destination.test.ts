import { createHmac, randomUUID } from 'node:crypto'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { getEventListeners, once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createCollector } from '../../src/collect/create-collector.ts'
import { RESPONSE_TIME_MS } from '../../src/protocol/limits.ts'
import type { Message } from '../../src/protocol/message.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { createDestination } from '../../src/send/create-destination.ts'
import { LAST_START_MS } from '../../src/send/schedule.ts'
import type { Queue, StoredDeadLetterFilter } from '../../src/store/queue-types.ts'
import { fixtures, manualClock } from '../../src/testing.ts'
import { setUp } from './set-up.ts'

const HOUR = 3_600_000

describe('a message', () => {
  it('is delivered once, signed, and reported', async () => {
    const { clock, captured, reports, destination } = setUp()
    const queued = await destination.track({ userId: 'u1', event: 'Order Completed' })
    await clock.advance(0)

    expect(queued).toEqual({ queued: true, id: expect.stringMatching(/^[0-9a-f-]{36}$/) })
    const [request] = captured.requests
    expect(captured.requests).toHaveLength(1)
    expect(request?.message).toMatchObject({ version: 1, type: 'track', userId: 'u1', event: 'Order Completed' })
    expect(request?.headers['x-signature']).toBe(
      createHmac('sha1', 'secret')
        .update(request?.bytes ?? '')
        .digest('hex'),
    )
    expect(reports).toMatchObject([{ status: 'delivered', attempts: [{ ok: true, status: 200 }] }])
    expect(reports[0]).toMatchObject({ id: (queued as { id: string }).id, message: request?.message })
  })

  it('is the same bytes on every attempt', async () => {
    const { clock, captured, destination } = setUp([500, 500, 200])
    await destination.identify({ userId: 'u', traits: { a: 1 } })
    await clock.advance(HOUR)

    expect(captured.requests).toHaveLength(3)
    expect(new Set(captured.requests.map(({ bytes }) => String(bytes))).size).toBe(1)
    expect(new Set(captured.requests.map(({ headers }) => headers['x-signature'])).size).toBe(1)
  })

  it('that deletes is a notification of its own, however soon another of the user follows', async () => {
    const { clock, captured, destination, start } = setUp()
    const collector = createCollector({
      sources: [{ name: 'shop', writeKey: 'k', destinations: [destination] }],
      clock,
    })
    await destination.delete({ userId: 'u' })
    await destination.send({ type: 'delete', userId: 'u' } as Message)
    await collector.delete('u')
    await destination.delete({ userId: 'other' })
    const timestamp = new Date(start).toISOString()
    for (let copy = 0; copy < 2; copy++) await destination.delete({ userId: 'u', timestamp })
    await clock.advance(0)

    const times = captured.messages.map(({ timestamp: time }) => Date.parse(String(time)) - start)
    expect(times).toEqual([0, 1, 2, 0, 0, 0])
  })

  it('that is invalid is refused before it is queued', async () => {
    const { destination } = setUp()
    await expect(destination.track({ userId: 'u' } as never)).rejects.toThrow(/^track: .*event/)
    await expect(destination.submit({ message: fixtures.page } as never)).rejects.toThrow('`submissions`')
    await expect(destination.submit([{ message: { type: 'x' } as never }])).rejects.toThrow('`message.type`')
    const keyed = destination.submit([{ message: fixtures.page, key: 5 as never }])
    await expect(keyed).rejects.toThrow('`key`')
  })

  it('submitted again under the same key is queued once', async () => {
    const { clock, captured, destination } = setUp()
    const [first] = await destination.submit([{ message: fixtures.track, key: 'a' }])
    const [again, other] = await destination.submit([
      { message: fixtures.track, key: 'a' },
      { message: fixtures.track, key: 'b' },
    ])
    await clock.advance(0)

    expect(again).toEqual(first)
    expect(other).not.toEqual(first)
    expect(captured.requests).toHaveLength(2)
  })
})

describe('the schedule', () => {
  it('is exactly that of the random source', async () => {
    const shares = [0.5, 0, 0.25, 0.75]
    const { clock, destination, last, startsOf } = setUp([500], { random: () => shares.shift() ?? 0.9 })
    await destination.delete({ userId: 'u' })
    await clock.advance(60_000)

    // 10 s × 0.5, at least a second, 40 s × 0.25, 80 s × 0.75.
    expect(startsOf(last())).toEqual([0, 5_000, 6_000, 16_000])
    expect(last()).toMatchObject({ status: 'retrying', retryAt: new Date(clock.now() + 16_000) })
  })

  it('counts a delay from the end of a round, not from its beginning', async () => {
    const { clock, destination, last, startsOf } = setUp(['hang', 200])
    await destination.delete({ userId: 'u' })
    await clock.advance(60_000)

    expect(startsOf(last())).toEqual([0, RESPONSE_TIME_MS + 5_000])
  })

  it('runs to the last start within the four hours, and no longer', async () => {
    const { clock, captured, destination, last, startsOf } = setUp([503])
    await destination.delete({ userId: 'u' })
    await clock.advance(LAST_START_MS - 1)
    const before = captured.requests.length
    await clock.advance(1)

    expect(captured.requests.length).toBe(before + 1)
    expect(last()).toMatchObject({ status: 'failed', reason: 'window_over' })
    expect(startsOf(last())?.at(-1)).toBe(LAST_START_MS)
    expect(LAST_START_MS + RESPONSE_TIME_MS).toBe(4 * HOUR)

    await clock.advance(48 * HOUR)
    expect(captured.requests.length).toBe(before + 1)
    expect(clock.timers).toBe(0)
  })

  it('waits as long as Retry-After asks, within the four hours', async () => {
    const asks = { status: 429, headers: { 'retry-after': '3600' } }
    const { clock, destination, last, startsOf } = setUp([asks, { ...asks, headers: { 'retry-after': '999999' } }, 200])
    await destination.delete({ userId: 'u' })
    await clock.advance(5 * HOUR)

    expect(startsOf(last())).toEqual([0, HOUR, LAST_START_MS])
    expect(last()).toMatchObject({ status: 'delivered' })
  })
})

describe('the switch', () => {
  it('off in mid-retry: the message is held, and goes again within 10 s of being on', async () => {
    const { clock, captured, destination, last } = setUp([500, 200])
    await destination.delete({ userId: 'u' })
    await clock.advance(1_000)
    destination.disable()
    await clock.advance(3 * HOUR)
    expect(captured.requests).toHaveLength(1)
    destination.enable()
    await clock.advance(10_000)

    expect(captured.requests).toHaveLength(2)
    expect(last()).toMatchObject({ status: 'delivered', attempts: { length: 2 } })
  })

  it('off in mid-retry until the four hours are over: it has failed, switched_off', async () => {
    const { clock, captured, destination, last } = setUp([500])
    await destination.delete({ userId: 'u' })
    await clock.advance(1_000)
    destination.disable()
    await clock.advance(4 * HOUR - 1_001)
    expect(last()).toMatchObject({ status: 'retrying' })
    await clock.advance(2 * 60_000)

    expect(last()).toMatchObject({ status: 'failed', reason: 'switched_off', latest: [], attempts: { length: 1 } })
    expect(captured.requests).toHaveLength(1)
    expect(await destination.deadLetters()).toMatchObject([{ reason: 'switched_off', message: { type: 'delete' } }])
  })

  it('off with messages that wait: none is claimed, and once on, within four hours, all are sent', async () => {
    const clock = manualClock()
    const queue = memoryQueue({ clock })
    let claims = 0
    const counted: Queue = {
      ...queue,
      work: (handle, options) =>
        queue.work((job, signal) => {
          claims += 1
          return handle(job, signal)
        }, options),
    }
    const { captured, destination } = setUp([200], { enabled: false, queue: counted, clock })
    const push = (count: number) =>
      queue.push(
        Array.from({ length: count }, () => ({ id: randomUUID(), body: Buffer.from(JSON.stringify(fixtures.track)) })),
      )
    await push(50)
    await clock.advance(3.9 * HOUR)
    expect([claims, (await destination.health()).waiting]).toEqual([0, 50])
    destination.enable()
    await clock.advance(0)
    expect([claims, captured.requests.length]).toEqual([50, 50])

    destination.update({ enabled: false })
    await push(50)
    await clock.advance(3.9 * HOUR)
    expect(claims).toBe(50)
    await clock.advance(0.2 * HOUR)
    expect((await destination.deadLetters()).map(({ reason }) => reason)).toEqual(Array(50).fill('switched_off'))
    expect(claims).toBeLessThanOrEqual(50 + 2 * 50)
    expect(captured.requests).toHaveLength(50)
  })

  it('off during the last attempt: it has failed, switched_off', async () => {
    const { clock, destination, last } = setUp(['hang'])
    await destination.delete({ userId: 'u' })
    await clock.advance(LAST_START_MS + 1)
    destination.disable()
    await clock.advance(HOUR)

    expect(last()).toMatchObject({ status: 'failed', reason: 'switched_off', latest: [{ error: 'timeout' }] })
  })
})

describe('failed messages', () => {
  it('are listed, and redriven for four new hours', async () => {
    const { clock, captured, destination, last } = setUp([404, 500, 200])
    const queued = await destination.track({ userId: 'u', event: 'E' })
    await clock.advance(0)
    const [failed] = await destination.deadLetters()
    expect(failed).toMatchObject({
      id: (queued as { id: string }).id,
      reason: 'refused',
      message: { event: 'E' },
      attempts: [{ status: 404 }],
      failedAt: new Date(clock.now()),
    })

    await clock.advance(10 * HOUR)
    expect(await destination.redrive('all')).toBe(1)
    await clock.advance(HOUR)
    expect(last()).toMatchObject({ status: 'delivered', attempts: [{ status: 500 }, { status: 200 }] })
    expect(captured.requests).toHaveLength(3)
    expect(await destination.deadLetters()).toEqual([])
  })

  it('begin anew when they are redriven, also when the process dies in the middle', async () => {
    const clock = manualClock()
    const memory = memoryQueue({ clock })
    const saved: unknown[] = []
    const save = async (state: Uint8Array) => void saved.push(JSON.parse(`${Buffer.from(state)}`))
    const work: Queue['work'] = (handle, how) => memory.work((job, signal) => handle(job, signal, save), how)
    const { destination } = setUp([404, 200], { clock, queue: { ...memory, work } })
    await destination.track({ userId: 'u', event: 'E' })
    await clock.advance(0)
    expect(saved).toEqual([])
    await destination.redrive('all')
    await clock.advance(0)
    expect(saved).toMatchObject([{ rounds: 0, kept: [], next: {} }])
    expect(await destination.deadLetters()).toEqual([])
  })

  it('that cannot be read are listed as such, and can be dropped', async () => {
    const clock = manualClock()
    const queue = memoryQueue({ clock })
    const id = '00000000-0000-4000-8000-000000000002'
    const dropped: unknown[] = []
    const { destination } = setUp([200], {
      clock,
      queue: {
        ...queue,
        deadLetters: async ({ after } = {}) => {
          const found = { body: new Uint8Array([255]), reason: 'unreadable: body', failedAt: new Date(1) }
          return after === id ? [] : [{ id, ...found, retryState: undefined }]
        },
        drop: async (ids) => dropped.push(ids),
      },
    })

    expect(await destination.deadLetters()).toEqual([
      { id, message: undefined, reason: 'unreadable', attempts: [], failedAt: new Date(1) },
    ])
    expect(await destination.drop([id])).toBe(1)
    expect(dropped).toEqual([[id]])
    await destination.drop({ reason: 'unreadable' })
    const { matches } = dropped[1] as Required<StoredDeadLetterFilter>
    expect(
      ['refused', 'unreadable: body', 'lost'].map((reason) => matches({ reason, body: new Uint8Array() } as never)),
    ).toEqual([false, true, true])
  })
})

describe('a destination drops and forgets', () => {
  it('dead letters by their reasons as they are listed, and by their age', async () => {
    const { clock, destination } = setUp([404, 404, 500])
    for (const userId of ['a', 'b', 'c']) {
      await destination.track({ userId, event: 'E' })
      await clock.advance(4 * HOUR)
    }
    const left = async () => (await destination.deadLetters()).map(({ message }) => message?.userId)
    expect(await left()).toEqual(['a', 'b', 'c'])
    expect(await destination.drop({ reason: 'switched_off' })).toBe(0)
    expect(await destination.drop({ reason: 'window_over' })).toBe(1)
    expect(await destination.drop({ reason: 'refused', olderThan: new Date(clock.now() - 10 * HOUR) })).toBe(1)
    expect(await left()).toEqual(['b'])
    await expect(destination.drop({})).rejects.toThrow(TypeError)
    for (const reason of ['window-over', '', null, 5]) {
      await expect(destination.drop({ reason } as never)).rejects.toThrow('`drop: reason`')
    }
  })

  it('what waits and what failed of a user, but the request to delete them', async () => {
    const { clock, captured, destination } = setUp([404, 500])
    await destination.track({ userId: 'ada', event: 'Refused' })
    await clock.advance(0)
    await destination.track({ userId: 'ada', event: 'Retried' })
    await destination.alias({ previousId: 'anonymous-ada', userId: 'x' })
    await destination.track({ userId: 'bob', event: 'Retried' })
    await destination.delete({ userId: 'ada' })
    await clock.advance(0)
    expect(await destination.forget(['ada', 'anonymous-ada'])).toEqual({ deleted: 3, active: 0 })
    expect(await destination.deadLetters()).toEqual([])
    const before = captured.requests.length
    await clock.advance(4 * HOUR)
    const later = captured.messages.slice(before).map(({ type, userId }) => `${type} ${userId}`)
    expect(new Set(later)).toEqual(new Set(['track bob', 'delete ada']))
    await expect(destination.forget('')).rejects.toThrow(TypeError)
  })
})

describe('the jobs of the queue', () => {
  it('may have an unreadable retry state: the message is still delivered', async () => {
    const clock = manualClock()
    const queue = memoryQueue({ clock })
    const broken = { ...queue, work: broke(queue.work) }
    const { captured, destination } = setUp([500, 200], { queue: broken, clock })
    await destination.delete({ userId: 'u' })
    await clock.advance(HOUR)

    expect(captured.requests).toHaveLength(2)
  })

  function broke(work: ReturnType<typeof memoryQueue>['work']): typeof work {
    return (handle, options) =>
      work(
        (job, signal) => handle({ ...job, retryState: job.retryState && Buffer.from('{"rounds":') }, signal),
        options,
      )
  }

  it('may share one signal, which gets one listener', async () => {
    const clock = manualClock()
    const queue = memoryQueue({ clock })
    const signals = new Set<AbortSignal>()
    const work: typeof queue.work = (handle, options) =>
      queue.work((job, signal) => {
        signals.add(signal)
        return handle(job, signal)
      }, options)
    const { destination } = setUp([200], { queue: { ...queue, work }, clock })
    for (let i = 0; i < 20; i++) await destination.delete({ userId: 'u' })
    await clock.advance(0)

    expect(signals.size).toBe(1)
    for (const signal of signals) expect(getEventListeners(signal, 'abort')).toHaveLength(1)
  })

  it('may come after the signal aborted: nothing is posted', async () => {
    const clock = manualClock()
    const queue = memoryQueue({ clock })
    const work: typeof queue.work = (handle, options) => queue.work((job) => handle(job, AbortSignal.abort()), options)
    const { captured, destination, reports } = setUp([200], { queue: { ...queue, work }, clock })
    await destination.track({ userId: 'u', event: 'E' })
    const left = destination.close({ graceMs: 0 })

    expect(await left).toMatchObject([{ event: 'E' }])
    expect([captured.requests.length, reports.length]).toEqual([0, 0])
  })
})

describe('close()', () => {
  it('ends the connections also when the queue cannot be closed', async () => {
    const server = createServer((_request, response) => void response.end()).listen(0, '127.0.0.1')
    await once(server, 'listening')
    server.keepAliveTimeout = 60_000 // Longer than the test.
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    const queue = memoryQueue()
    const close = () => Promise.reject(new Error('no'))
    const destination = createDestination({
      webhooks: [{ url: `http://127.0.0.1:${port}/` }],
      queue: { ...queue, close },
      onAttempt: () => {},
    })
    const ended = once(server, 'connection').then(([socket]) => once(socket, 'close'))
    await destination.delete({ userId: 'u' })
    await queue.drain()
    await expect(destination.close()).rejects.toThrow('no')
    await ended
    await queue.close({ graceMs: 0 })
  })

  it.each([-1, 0.5, '5', Number.NaN])('graceMs: %s is a TypeError, and nothing is closed', async (graceMs) => {
    const { destination } = setUp()

    await expect(destination.close({ graceMs } as never)).rejects.toThrow('`graceMs`')
    await expect(destination.close({ grace: 1 } as never)).rejects.toThrow('`grace`')
    expect(await destination.delete({ userId: 'u' })).toMatchObject({ queued: true })
  })

  it('delivers what is due', async () => {
    const { clock, captured, destination } = setUp()
    await Promise.all(Array.from({ length: 200 }, () => destination.delete({ userId: 'u' })))
    const closing = destination.close()
    await clock.advance(0)

    expect(await closing).toEqual([])
    expect(captured.requests).toHaveLength(200)
    expect(await destination.close()).toEqual([])
  })

  it('returns what waits for its next attempt, at once', async () => {
    const { clock, destination } = setUp([500])
    await destination.track({ userId: 'u', event: 'E' })
    await clock.advance(0)

    expect(await destination.close()).toMatchObject([{ type: 'track', event: 'E' }])
  })

  it('returns what hangs, after the grace', async () => {
    const { clock, destination, reports } = setUp(['hang'])
    await destination.track({ userId: 'u', event: 'E' })
    let left: unknown
    void destination.close({ graceMs: 1_000 }).then((value) => {
      left = value
    })
    await clock.advance(999)
    expect(left).toBeUndefined()
    await clock.advance(1)
    await vi.waitFor(() => expect(left).toMatchObject([{ event: 'E' }]))
    expect(reports).toEqual([])
  })

  it.each([true, false])('refuses what comes later, switched on: %s', async (enabled) => {
    const { destination } = setUp([200], { enabled })
    await destination.close()

    await expect(destination.delete({ userId: 'u' })).rejects.toMatchObject({ code: 'shutting_down' })
  })
})

describe('reports', () => {
  it('are published on the diagnostics channel hookline:attempt', async () => {
    const published: unknown[] = []
    const listener = (report: unknown) => void published.push(report)
    subscribe('hookline:attempt', listener)
    onTestFinished(() => void unsubscribe('hookline:attempt', listener))
    const { clock, destination, reports } = setUp()
    await destination.delete({ userId: 'u' })
    await clock.advance(0)

    expect(published).toEqual(reports)
    expect(published).toHaveLength(1)
  })

  it.each([
    [
      'throws',
      () => {
        throw new Error('broken')
      },
    ],
    ['rejects', () => Promise.reject(new Error('broken'))],
  ])('lose nothing when onAttempt %s', async (_case, onAttempt) => {
    const warnings = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    onTestFinished(() => warnings.mockRestore())
    const { clock, captured, destination } = setUp([500, 200], { onAttempt })
    await destination.delete({ userId: 'u' })
    await clock.advance(HOUR)

    expect(captured.requests).toHaveLength(2)
    expect(warnings).toHaveBeenCalledWith('onAttempt failed', expect.objectContaining({ code: 'HOOKLINE_ON_ATTEMPT' }))
  })
})

describe('options', () => {
  const webhooks = [{ url: 'https://shop.example/' }]

  it.each([
    ['an unknown name', { webhooks, onattempt: () => {} }, '`onattempt`'],
    ['enabled', { webhooks, enabled: 1 }, '`enabled`'],
    ['queue', { webhooks, queue: [] }, '`queue`'],
    ['concurrency', { webhooks, concurrency: 0 }, '`concurrency`'],
  ])('%s is a TypeError', (_case, options, message) => {
    expect(() => createDestination(options as never)).toThrow(TypeError)
    expect(() => createDestination(options as never)).toThrow(message)
  })

  it('queue: one that serves another destination is a TypeError', () => {
    const queue = memoryQueue()
    createDestination({ webhooks, queue })
    expect(() => createDestination({ webhooks, queue })).toThrow(TypeError)
  })

  it('concurrency: so many at a time', async () => {
    const { clock, captured, destination } = setUp(['hang'], { concurrency: 3 })
    await Promise.all(Array.from({ length: 9 }, () => destination.delete({ userId: 'u' })))
    await clock.advance(0)
    expect(captured.requests).toHaveLength(3)
    await clock.advance(RESPONSE_TIME_MS)
    expect(captured.requests).toHaveLength(6)
  })
})
