import { randomUUID } from 'node:crypto'
import { getEventListeners } from 'node:events'
import { describe, expect, it, vi } from 'vitest'
import { createCollector } from '../../src/collect/create-collector.ts'
import { RESPONSE_TIME_MS } from '../../src/protocol/limits.ts'
import type { Message } from '../../src/protocol/message.ts'
import { sign } from '../../src/protocol/signature.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import type { DestinationOptions } from '../../src/send/destination-options.ts'
import { LAST_START_MS } from '../../src/send/schedule.ts'
import type { HandleJob, StoredDeadLetterFilter } from '../../src/store/queue-types.ts'
import { fixtures, manualClock, type Script } from '../../src/testing.ts'
import { hear } from '../support/channel.ts'
import { watchWarnings } from '../support/receive.ts'
import { attemptOf, HOUR, setUp } from './set-up.ts'

type Wrap = (handle: HandleJob) => HandleJob

/** A destination on a queue of which a test sees, or changes, how jobs are handled. */
function setUpQueue(wrap: Wrap, script?: Script, options: Partial<DestinationOptions> = {}) {
  const clock = manualClock()
  const queue = memoryQueue({ clock })
  const work: typeof queue.work = (handle, how) => queue.work(wrap(handle), how)
  return { queue, ...setUp(script, { clock, queue: { ...queue, work }, ...options }) }
}

describe('a message', () => {
  it('is delivered once, signed, and reported, also on the channel hookline:attempt', async () => {
    const published = hear('hookline:attempt')
    const { clock, captured, reports, destination, start } = setUp()

    const queued = await destination.track({ userId: 'u1', event: 'Order Completed' })
    await clock.advance(0)

    const [request] = captured.requests
    expect(captured.requests).toHaveLength(1)
    expect(request?.message).toMatchObject({ version: 1, type: 'track', userId: 'u1', event: 'Order Completed' })
    expect(request?.headers['x-signature']).toBe(sign(request?.bytes ?? Buffer.of(), 'secret'))
    const { id } = queued as { id: string }
    expect(id).toMatch(/^[0-9a-f-]{36}$/)
    const latest = [attemptOf({ at: new Date(start), durationMs: 0, status: 200 })]
    expect(reports[0]?.message).toEqual(request?.message)
    expect({ ...reports[0] }).toEqual({ status: 'delivered', id, latest, attempts: latest })
    expect(published).toEqual(reports)
  })

  it('that deletes is a notification of its own, however soon another of the user follows', async () => {
    const { clock, captured, destination, start } = setUp()
    const sources = [{ name: 'shop', writeKey: 'k', destinations: [destination] }]
    const collector = createCollector({ sources, clock })

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

  it('submitted again under the same key is queued once', async () => {
    const { clock, captured, destination } = setUp()
    const submit = (...keys: readonly string[]) =>
      destination.submit(keys.map((key) => ({ message: fixtures.track, key })))

    const [first] = await submit('a')
    const [again, other] = await submit('a', 'b')
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

  it.each([Number.NaN, 2])('is kept when the random source returns %d', async (share) => {
    const { clock, destination, last, startsOf } = setUp([500, 200], { random: () => share })
    await destination.delete({ userId: 'u' })
    await clock.advance(10_000)
    expect(startsOf(last())?.[1]).toBeGreaterThanOrEqual(1_000)
  })

  const asks = (seconds: string) => ({ status: 429, headers: { 'retry-after': seconds } })
  it.each<[string, Script, number[]]>([
    ['counts a delay from the end of a round', ['hang', 200], [0, RESPONSE_TIME_MS + 5_000]],
    ['waits as Retry-After asks, within the four hours', [asks('3600'), asks('999999'), 200], [0, HOUR, LAST_START_MS]],
  ])('%s', async (_rule, script, starts) => {
    const { clock, destination, last, startsOf } = setUp(script)
    await destination.delete({ userId: 'u' })
    await clock.advance(5 * HOUR)
    expect(last()).toMatchObject({ status: 'delivered' })
    expect(startsOf(last())).toEqual(starts)
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
    let claims = 0
    const count: Wrap = (handle) => (job, signal) => {
      claims += 1
      return handle(job, signal)
    }
    const { clock, queue, captured, destination } = setUpQueue(count, [200], { enabled: false })
    const body = Buffer.from(JSON.stringify(fixtures.track))
    const push = () => queue.push(Array.from({ length: 50 }, () => ({ id: randomUUID(), body })))

    await push()
    await clock.advance(3.9 * HOUR)
    expect([claims, (await destination.health()).waiting]).toEqual([0, 50])
    destination.enable()
    await clock.advance(0)
    expect([claims, captured.requests.length]).toEqual([50, 50])

    destination.update({ enabled: false })
    await push()
    await clock.advance(4.1 * HOUR)
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
  it('are listed, and redriven for four new hours, also when the process dies in the middle', async () => {
    const saved: unknown[] = []
    const save = async (state: Uint8Array) => void saved.push(JSON.parse(`${Buffer.from(state)}`))
    const withSave: Wrap = (handle) => (job, signal) => handle(job, signal, save)
    const { clock, captured, destination, last } = setUpQueue(withSave, [404, 500, 200])
    const queued = await destination.track({ userId: 'u', event: 'E' })
    await clock.advance(0)

    const { id } = queued as { id: string }
    const letter = { id, reason: 'refused', message: { event: 'E' }, failedAt: new Date(clock.now()) }
    expect(await destination.deadLetters()).toMatchObject([{ ...letter, attempts: [{ status: 404 }] }])
    expect(saved).toEqual([])

    await clock.advance(10 * HOUR)
    expect(await destination.redrive('all')).toBe(1)
    await clock.advance(HOUR)
    expect(saved).toMatchObject([{ rounds: 0, kept: [], next: {} }])
    expect(last()).toMatchObject({ status: 'delivered', attempts: [{ status: 500 }, { status: 200 }] })
    expect(captured.requests).toHaveLength(3)
    expect(await destination.deadLetters()).toEqual([])
  })

  it('that cannot be read are listed as such, and can be dropped', async () => {
    const id = '00000000-0000-4000-8000-000000000002'
    const unreadable = { id, body: new Uint8Array([255]), reason: 'unreadable: body', retryState: undefined }
    const dropped: unknown[] = []
    const queue = {
      ...memoryQueue(),
      deadLetters: async ({ after = '' } = {}) => (after === id ? [] : [{ ...unreadable, failedAt: new Date(1) }]),
      drop: async (ids: unknown) => dropped.push(ids),
    }
    const { destination } = setUp([200], { queue })

    expect(await destination.deadLetters()).toEqual([
      { id, message: undefined, reason: 'unreadable', attempts: [], failedAt: new Date(1), error: 'unreadable: body' },
    ])
    await destination.drop([id])
    await destination.drop({ reason: 'unreadable' })

    expect(dropped[0]).toEqual([id])
    const { matches } = dropped[1] as Required<StoredDeadLetterFilter>
    const isDropped = (reason: string) => matches({ ...unreadable, reason, failedAt: new Date(1) })
    const others = ['refused', 'window_over', 'switched_off', 'circuit_open', 'transform_failed']
    const reasons = ['unreadable', 'unreadable: body', 'lost']
    expect([...others, ...reasons].filter(isDropped)).toEqual(reasons)
  })

  it('of a user are forgotten with what waits, but not the request to delete them', async () => {
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
  })
})

describe('the jobs of the queue', () => {
  it('may share one signal, which gets one listener', async () => {
    const signals = new Set<AbortSignal>()
    const { clock, destination } = setUpQueue((handle) => (job, signal) => {
      signals.add(signal)
      return handle(job, signal)
    })

    for (let i = 0; i < 20; i++) await destination.delete({ userId: 'u' })
    await clock.advance(0)

    expect([...signals].map((signal) => getEventListeners(signal, 'abort').length)).toEqual([1])
  })

  it('are saved before the first post with what functions made of them', async () => {
    const saved: unknown[] = []
    const withSave: Wrap = (handle) => (job, signal) =>
      handle(job, signal, async (state) => void saved.push(`${Buffer.from(state)}`, captured.requests.length))
    const { clock, captured, destination } = setUpQueue(withSave, [200], { transform: () => fixtures.page })
    await destination.track({ userId: 'u', event: 'E' })
    await clock.advance(0)
    expect(saved).toEqual([expect.stringContaining('\\"type\\":\\"page\\"'), 0])
  })

  it('may come after the signal aborted: nothing is posted', async () => {
    const aborted: Wrap = (handle) => (job) => handle(job, AbortSignal.abort())
    const { captured, destination, reports } = setUpQueue(aborted)
    await destination.track({ userId: 'u', event: 'E' })
    expect(await destination.close({ graceMs: 0 })).toMatchObject([{ event: 'E' }])
    expect([captured.requests.length, reports.length]).toEqual([0, 0])
  })
})

describe('close()', () => {
  it('returns what waits for its next attempt, at once', async () => {
    const { clock, destination } = setUp([500])
    await destination.alias({ userId: 'u', previousId: 'p' })
    await clock.advance(0)
    expect(await destination.close()).toMatchObject([{ type: 'alias', userId: 'u', previousId: 'p' }])
  })

  it.each([
    [1_000, { graceMs: 1_000 }, 0],
    [5_000, undefined, 1],
  ])('returns what hangs, after %i ms of grace: %j', async (graceMs, options, reported) => {
    const { clock, destination, reports } = setUp(['hang'], { concurrency: 1 })
    for (const event of ['E', 'F']) await destination.track({ userId: 'u', event })
    await clock.advance(10)

    const closed = vi.fn()
    void destination.close(options).then(closed)
    await clock.advance(graceMs - 1)
    expect(closed).not.toHaveBeenCalled()

    await clock.advance(1)
    await vi.waitFor(() => expect(closed.mock.calls).toMatchObject([[{ length: 2 }]]))
    expect(reports).toHaveLength(reported) // The first attempt ends after 5 seconds; then the other hangs.
  })

  it.each([true, false])('refuses what comes later, switched on: %s', async (enabled) => {
    const { destination } = setUp([200], { enabled })
    await destination.close()
    await expect(destination.delete({ userId: 'u' })).rejects.toMatchObject({ code: 'shutting_down' })
    expect(() => destination.update({})).toThrow(expect.objectContaining({ code: 'shutting_down' }))
  })
})

it.each([
  ['throws', () => expect.fail()],
  ['rejects', () => Promise.reject(new Error('broken'))],
])('nothing is lost when a callback %s', async (_case, callback) => {
  const warnings = watchWarnings()
  const options = { onAttempt: callback, onCircuit: callback, circuit: { failures: 1 } }
  const { clock, captured, destination } = setUp([500, 200], options)
  await destination.delete({ userId: 'u' })
  await clock.advance(HOUR)
  expect(captured.requests).toHaveLength(2)
  const codes = Array(2).fill(['HOOKLINE_ON_CIRCUIT', 'HOOKLINE_ON_ATTEMPT']).flat()
  expect(warnings.mock.calls.map(([, options]) => options)).toMatchObject(codes.map((code) => ({ code })))
})
