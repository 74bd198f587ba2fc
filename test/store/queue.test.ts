/** What createQueue adds to a store: arguments, errors, and the end. How it works is in worker.test.ts. */

import { AsyncLocalStorage } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { HooklineError } from '../../src/protocol/error.ts'
import type { CreateQueueOptions } from '../../src/store/arguments.ts'
import { createQueue } from '../../src/store/create-queue.ts'
import { checkHealth, type QueueCounts } from '../../src/store/health.ts'
import type { QueueStore } from '../../src/store/queue-store.ts'
import type { HandleJob, Job, JobTransaction, Outcome, Queue, SaveState } from '../../src/store/queue-types.ts'
import { type ManualClock, manualClock } from '../../src/testing/manual-clock.ts'
import { testQueue } from '../contracts/queue.ts'
import { testedMemoryQueue } from '../support/memory.ts'
import { complete, jobOf, work } from '../support/queues.ts'
import { throwing } from '../support/throwing.ts'
import { until } from '../support/until.ts'
import { type Manner, setUpQueue, watchStore } from './stores.ts'

// The contract of memory has a store that is quick and not durable.
describe.each<Manner>([
  { isDurable: true, isSlow: false },
  { isDurable: false, isSlow: true },
])('over a store that is slow: $isSlow, durable: $isDurable', (manner) => {
  const open = (clock: ManualClock) => createQueue(watchStore(clock, manner).store, { name: 'orders', clock })
  testQueue('createQueue', () => testedMemoryQueue(open), { isDurable: manner.isDurable === true, isShared: false })
})

const { store } = watchStore(manualClock())

const verbs = 'push claim finish release nextDueAt counts deadLetters redrive drop jobs remove close'.split(' ')
const named = { name: 'orders' }

// Those that all engines share are tested with the engines.
it.each<[string, unknown, unknown]>([
  ['options', store, undefined],
  ['nam', store, { nam: 'orders' }],
  ['name', store, {}],
  ['pollMs', store, { ...named, pollMs: 0 }],
  ['logger.error', store, { ...named, logger: {} }],
  ['store', null, named],
  ['store', 'jobs.json', named],
  ...verbs.map((verb): [string, unknown, unknown] => [`store.${verb}`, { ...store, [verb]: undefined }, named]),
  ['store.leaseMs', { ...store, leaseMs: 2, renew() {} }, named],
  ['store.renew', { ...store, leaseMs: 3 }, named],
])('createQueue refuses a wrong %s', (name, wrong, options) => {
  const create = () => createQueue(wrong as QueueStore, options as CreateQueueOptions)
  expect(create).toThrow(TypeError)
  expect(create).toThrow(`${name}\``)
})

describe('what a store throws', () => {
  const forget = (queue: Queue) => queue.forget(() => true)

  it.each<[keyof QueueStore, (queue: Queue) => Promise<unknown>]>([
    ['push', (queue) => queue.push([jobOf()])],
    ['counts', (queue) => queue.counts()],
    ['deadLetters', (queue) => queue.deadLetters()],
    ['redrive', (queue) => queue.redrive([randomUUID()])],
    ['drop', (queue) => queue.drop([randomUUID()])],
    ['jobs', forget],
    ['remove', forget],
    ['deadLetters', forget],
  ])('%s: an error becomes queue_unavailable, with the cause', async (verb, call) => {
    const cause = new Error('the disk is full.')
    const fails = throwing(cause)
    const message = expect.stringContaining(cause.message)
    for (const fail of [fails, async () => fails()]) {
      const { queue, watched } = setUpQueue({ [verb]: verb === 'jobs' ? fails : fail })
      await watched.store.push([jobOf()])
      await expect(call(queue)).rejects.toMatchObject({ code: 'queue_unavailable', status: 503, message, cause })
    }
  })

  it('a HooklineError stays what it is', async () => {
    const full = new HooklineError('queue_full', 'Full. Got one. Wait.')
    const { queue } = setUpQueue({ push: () => Promise.reject(full) })
    await expect(queue.push([jobOf()])).rejects.toBe(full)
  })

  it('anything else is not shown', async () => {
    const { queue } = setUpQueue({ push: () => Promise.reject('a password') })
    await expect(queue.push([jobOf()])).rejects.toMatchObject({ message: expect.not.stringContaining('password') })
  })

  it('on close: close rejects, each time', async () => {
    const { queue } = setUpQueue({ close: () => Promise.reject(new Error('away')) })
    for (let call = 0; call < 2; call += 1)
      await expect(queue.close({ graceMs: 0 })).rejects.toMatchObject({ code: 'queue_unavailable' })
    await expect(queue.counts()).rejects.toMatchObject({ code: 'shutting_down' })
  })
})

describe('a push in a transaction of the caller', () => {
  const db = {}

  it('goes to a store that has transactions, and wakes no worker: nothing is due before the commit', async () => {
    const push = vi.fn()
    const { clock, watched, queue } = setUpQueue({ hasTransactions: true, push })
    work(queue)
    await clock.advance(0)
    const claims = watched.claims.length
    const job = jobOf()
    await queue.push([job, job], { db })
    await clock.advance(0)
    expect(push.mock.calls).toEqual([[[job], { db }]])
    expect(watched.claims).toHaveLength(claims)
  })

  it('rejects with what the store throws, as it is', async () => {
    const cause = new Error('deadlock detected')
    const fails = throwing(cause)
    for (const push of [fails, async () => fails()]) {
      const { queue } = setUpQueue({ hasTransactions: true, push })
      await expect(queue.push([jobOf()], { db })).rejects.toBe(cause)
    }
  })
})

it('counts say why the last push failed, for a minute or until one succeeds', async () => {
  const faults = [new Error('read only'), new Error('read only')]
  const { clock, queue } = setUpQueue({ push: async () => faults[0] && Promise.reject(faults.shift()) })
  const pushError = async () => (await queue.counts()).pushError
  expect(await pushError()).toBe(undefined)
  await expect(queue.push([jobOf()])).rejects.toThrow('read only')
  await clock.advance(59_999)
  expect(await pushError()).toContain('read only')
  await clock.advance(1)
  expect(await pushError()).toBe(undefined)
  await expect(queue.push([jobOf()])).rejects.toThrow('read only')
  expect(await pushError()).toContain('read only')
  await queue.push([jobOf()])
  expect(await pushError()).toBe(undefined)
})

it.each(['inbox', 'destination'] as const)('drain of an %s waits for what comes due later', async (use) => {
  const { clock, queue } = setUpQueue()
  work(queue)
  await queue.push([jobOf('later', { notBefore: new Date(clock.now() + 1_000) })])
  await queue.drain() // It has no use yet.
  queue.reserve?.(use)
  const drained = vi.fn()
  void queue.drain().then(drained)
  await clock.advance(999)
  expect(drained).not.toHaveBeenCalled()
  await clock.advance(1)
  expect(drained).toHaveBeenCalledOnce()
})

it('a store learns how many jobs a second, and whom to wake; the handler runs in the context of `work`', async () => {
  const [limit, onChange, context] = [vi.fn(), vi.fn(), new AsyncLocalStorage<string>()]
  const { clock, queue } = setUpQueue({ limit, onChange })
  const seen: unknown[] = []
  const handle = async () => ({ complete: seen.push(context.getStore()) > 0 }) as const
  const wake = context.run('work', () => queue.work(handle as HandleJob, { concurrency: 1, maxPerSecond: 5 }))
  await clock.advance(0)
  await context.run('push', () => queue.push([jobOf()]))
  await clock.advance(0)
  expect(() => work(queue)).toThrow(/already has a handler/)
  expect([limit.mock.calls, onChange.mock.calls, seen]).toEqual([[[5]], [[wake]], ['work']])
})

it('a job that its handler completed in a transaction gets no outcome', async () => {
  const notes: unknown[] = []
  const commit: JobTransaction['commit'] = async ([completion]) => void notes.push(completion?.log)
  const { clock, queue, watched } = setUpQueue({
    begin: async () => ({ db: {}, commit, rollback: async () => {} }),
  })
  const handle: HandleJob = async (claim, _signal, _save, begin) => {
    const transaction = await begin?.(1_000)
    await transaction?.commit([{ claim, log: Buffer.from('note') }])
    return complete
  }
  queue.work(handle, { concurrency: 1 })

  await queue.push([jobOf()])
  await clock.advance(0)

  expect([notes, watched.outcomes]).toEqual([[Buffer.from('note')], []])
})

describe('a state that a handler saves', () => {
  const state = Buffer.from('saved')

  it('is stored before the outcome, in turn, and what a handler saves after its end is not', async () => {
    const calls: string[] = []
    const slow = Promise.withResolvers<void>()
    let late: SaveState | undefined
    const { clock, queue } = setUpQueue({
      async save(_claim, retryState) {
        if (calls.length === 0) await slow.promise
        calls.push(`${retryState}`)
      },
      finish: () => void calls.push('finish'),
    })
    const handle: HandleJob = async (_job, _signal, save) => {
      late = save
      for (const each of ['1', '2']) void save?.(Buffer.from(each))
      return complete
    }
    queue.work(handle, { concurrency: 1 })
    await queue.push([jobOf()])
    await clock.advance(0)
    expect(calls).toEqual([])
    slow.resolve()
    await until(() => calls.includes('finish'))
    await late?.(Buffer.from('3'))
    expect(calls).toEqual(['1', '2', 'finish'])
  })

  it('stays when the handler then rejects; an engine that fails to store it is reported', async () => {
    const fault = new Error('away')
    const { clock, queue, watched, errors } = setUpQueue({ save: () => Promise.reject(fault) })
    const handle: HandleJob = async (_job, _signal, save) => {
      await save?.(state)
      throw new Error('no')
    }
    queue.work(handle, { concurrency: 1 })
    await queue.push([jobOf()])
    await until(async () => {
      await clock.advance(0)
      return watched.outcomes.length === 1
    })
    expect(watched.outcomes).toEqual([{ retryAt: new Date(clock.now() + 1000), retryState: state }])
    expect(errors).toMatchObject([{ code: 'queue_unavailable', cause: fault }])
  })
})

it('onError is given errors of the background, and one fault once', async () => {
  const fault = new Error('away')
  const { clock, queue, errors } = setUpQueue({ claim: () => Promise.reject(fault) })
  work(queue)
  await clock.advance(10_000)
  expect(errors).toMatchObject([{ code: 'queue_unavailable', cause: fault }])
})

describe('closing', () => {
  it('calls the store no more, and closes it once', async () => {
    const close = vi.fn(() => [])
    const { clock, watched, queue } = setUpQueue({ close })
    const held = Promise.withResolvers<Outcome>()
    work(queue, () => held.promise)
    await queue.push([jobOf()])
    await clock.advance(0)
    const pausing = queue.pause()
    await Promise.all([queue.close({ graceMs: 0 }), queue.close({ graceMs: 5 }), pausing])
    const before = watched.claims.length
    held.resolve(complete)
    queue.resume()
    await queue.drain()
    await clock.advance(60_000)
    expect([close.mock.calls.length, watched.claims.length - before, watched.outcomes]).toEqual([1, 0, []])
  })

  it('of a store that answers nothing any more ends 700 ms after the grace, which is 10 s by default', async () => {
    const answer = Promise.withResolvers<never>()
    const silent = () => answer.promise
    const { clock, queue, errors } = setUpQueue({ claim: silent, counts: silent, close: silent })
    work(queue)
    await clock.advance(0)
    queue.counts().catch(() => {})
    const closed = vi.fn()
    void queue.close().then(closed)
    await clock.advance(10_699)
    expect(closed).not.toHaveBeenCalled()
    await clock.advance(1)
    answer.reject(new Error('late'))
    await nextTurn()
    expect([closed.mock.calls, clock.timers, errors]).toEqual([[[[]]], 0, []])
  })

  it.each([
    [true, 299, 1],
    [true, 300, 0],
    [false, 60_000, 1],
  ])('returns what the store does, which has 300 ms if it is durable: %s, %d ms', async (isDurable, ms, count) => {
    const answer = Promise.withResolvers<Job[]>()
    const { clock, queue } = setUpQueue({ isDurable, close: () => answer.promise })
    const closing = queue.close({ graceMs: 0 })
    await clock.advance(ms)
    answer.resolve([jobOf()])
    expect(await closing).toHaveLength(count)
  })

  it.each<[string, unknown, (queue: Queue) => Promise<unknown>]>([
    ['drop, of all pages', 14, (queue) => queue.drop(Array.from({ length: 501 }, () => randomUUID()))],
    ['push in a transaction', undefined, (queue) => queue.push([jobOf()], { db: {} })],
  ])('gives a call under way the grace: %s', async (_what, result, call) => {
    const answer = Promise.withResolvers<never>()
    const close = vi.fn(() => [])
    const wait = async () => {
      const answered = await answer.promise
      await nextTurn()
      expect(close).not.toHaveBeenCalled()
      return answered
    }
    const { clock, queue } = setUpQueue({ hasTransactions: true, push: wait, drop: wait, close })
    const called = call(queue)
    const closing = queue.close({ graceMs: 5000 })
    await clock.advance(4999)
    answer.resolve((result && 7) as never)
    expect(await called).toBe(result)
    await closing
    expect([close.mock.calls.length, clock.timers]).toEqual([1, 0])
  })
})

it('health shows all counts, no age below 0, and no error that is not of Hookline', async () => {
  const clock = manualClock()
  const shown = { waiting: 1, retrying: 2, active: 3, deadLetters: 4, asOf: new Date(5), paused: true }
  const check = (read: () => Promise<QueueCounts>) => checkHealth(read, false, clock)
  const health = await check(async () => ({ ...shown, oldestDueAt: new Date(clock.now() + 5), pushError: 'full' }))
  expect(health).toEqual({ ...shown, ready: false, status: 'degraded', reason: 'full', oldestDueAgeMs: 0 })
  expect((await check(throwing(new HooklineError('queue_full', 'Full.')))).reason).toBe('Full.')
  expect((await check(throwing(new Error('a password')))).reason).not.toContain('password')
})

it('refuses a group where the store has none', async () => {
  const { hasGroups, ...store } = watchStore(manualClock()).store
  const queue = createQueue(store, { name: 'orders' })
  await expect(queue.push([{ ...jobOf(), group: 'ada' }])).rejects.toThrow('`group`')
})
