/** The marks of a queue: what a process reads of them, and when. */

import { expect, it, vi } from 'vitest'
import { inspectQueue } from '../../src/observe/inspect-queue.ts'
import { createQueue } from '../../src/store/create-queue.ts'
import { createMemoryStore } from '../../src/store/memory/memory-store.ts'
import type { MarkStore } from '../../src/store/queue-store.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { jobOf, work } from '../support/queues.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND

/** A durable store, and queues on it by one clock. The marks of the store are kept apart, and can be lost. */
function setUp() {
  const clock = manualClock()
  const errors: unknown[] = []
  let kept = createMemoryStore({ clock }).marks as MarkStore
  const marks = {
    list: vi.fn<MarkStore['list']>((...given) => kept.list(...given)),
    set: vi.fn<MarkStore['set']>((...given) => kept.set(...given)),
  }
  const store = { ...createMemoryStore({ clock }), isDurable: true, marks }
  const onError = (error: unknown) => errors.push(error)
  const open = (pollMs?: number) => createQueue(store, { name: 'shared', pollMs, clock, onError })
  const lose = () => {
    kept = createMemoryStore({ clock }).marks as MarkStore
  }
  return { clock, errors, marks, open, lose, stored: () => kept.list(0, 1_000) }
}

it('a worker reads all marks once, and then what has changed', async () => {
  const { clock, marks, open } = setUp()
  const [worker, other] = [open(SECOND), open(SECOND)]
  const keys = Array.from({ length: 1_234 }, (_, index) => `${index}`)
  await other.marks?.set(keys, new Date(clock.now() + MINUTE))
  marks.list.mockClear()

  work(worker)
  await clock.advance(5 * SECOND)

  expect(marks.list.mock.calls.map(([version]) => version)).toEqual([0, 500, 1_000, 1_234, 1_234, 1_234, 1_234, 1_234])
  await other.marks?.set(['7', 'new'], new Date(clock.now() + MINUTE))
  await clock.advance(SECOND)
  expect([worker.marks?.size, worker.marks?.has('new')]).toEqual([1_235, true])
})

it('claims nothing before the marks are known, and tries again when they cannot be read', async () => {
  const { clock, errors, marks, open } = setUp()
  const queue = open()
  const failing = marks.list.mockRejectedValue(new Error('no connection'))

  const seen = work(queue)
  await queue.push([jobOf('a')])
  await clock.advance(2_500)

  expect([seen.length, failing.mock.calls.length]).toEqual([0, 3])
  expect(errors).toMatchObject(Array(3).fill({ code: 'queue_unavailable' }))
  failing.mockReset().mockReturnValue([])
  await clock.advance(SECOND)
  expect(seen).toHaveLength(1)
  await clock.advance(MINUTE)
  expect(failing).toHaveBeenCalledTimes(1) // No other process can change them: the queue does not poll.
})

it('keeps what it knows while the marks cannot be read', async () => {
  const { clock, errors, marks, open } = setUp()
  const queue = open(SECOND)
  const seen = work(queue)
  await inspectQueue(queue).pause()
  marks.list.mockRejectedValue(new Error('no connection'))
  await queue.push([jobOf('a')])
  await clock.advance(5 * SECOND)
  expect([seen.length, queue.marks?.size]).toEqual([0, 1])
  expect(errors.length).toBeGreaterThan(0)
})

it('counts tell of a pause by another process within a second', async () => {
  const { clock, open } = setUp()
  const [queue, other] = [open(), open()]
  await queue.counts()
  await inspectQueue(other).pause()
  await clock.advance(999)
  expect(await queue.counts()).not.toHaveProperty('paused')
  await clock.advance(1)
  expect(await queue.counts()).toHaveProperty('paused', true)
})

it('reads all again every ten minutes: an engine that lost its marks counts anew', async () => {
  const { clock, open, lose } = setUp()
  const [worker, other] = [open(SECOND), open(SECOND)]
  const later = new Date(clock.now() + 60 * MINUTE)
  work(worker)
  await other.marks?.set(['a', 'b', 'c'], later)
  await clock.advance(SECOND)

  lose()
  await other.marks?.set(['d'], later)
  const known = () => ['a', 'b', 'c', 'd'].filter((key) => worker.marks?.has(key))
  await clock.advance(9 * MINUTE)
  expect(known()).toEqual(['a', 'b', 'c'])
  await clock.advance(MINUTE)
  expect(known()).toEqual(['d'])
})

it('a mark that has ended leaves the processes and, 20 minutes later, the engine, if a process works', async () => {
  const { clock, open, stored } = setUp()
  const [idle, worker] = [open(SECOND), open(SECOND)]
  await idle.marks?.set(['a', 'b'], new Date(clock.now() + MINUTE))
  await idle.marks?.set(['b'], new Date(0))
  await clock.advance(21 * MINUTE)
  await idle.counts()
  expect([idle.marks?.size, await stored()]).toMatchObject([0, { length: 2 }]) // Others have to read the end of `b`.
  work(worker)
  await clock.advance(SECOND)
  expect(await stored()).toHaveLength(1)
  await clock.advance(10 * MINUTE)
  expect(await stored()).toEqual([])
})

it('a queue that is closed reads no more, and reports nothing', async () => {
  const { clock, errors, marks, open } = setUp()
  const queue = open(SECOND)
  const gate = Promise.withResolvers<never>()
  work(queue)
  marks.list.mockReturnValue(gate.promise)
  await clock.advance(SECOND)
  const closing = queue.close({ graceMs: 0 })
  await clock.advance(SECOND)
  await closing
  gate.reject(new Error('closed'))
  marks.list.mockClear()
  await clock.advance(MINUTE)
  expect([marks.list.mock.calls.length, clock.timers, errors]).toEqual([0, 0, []])
})

it('the engine gets digests, which differ between queues', async () => {
  const { clock, marks, open } = setUp()
  await open().marks?.set(['user-1', 'user-1'], new Date(clock.now()))
  const [[mark, ...others]] = marks.set.mock.calls[0] as Parameters<MarkStore['set']>
  expect(mark?.key).toMatch(/^[\w-]{43}$/)
  expect(others).toEqual([])
  const store = { ...createMemoryStore({ clock }), marks }
  await createQueue(store, { name: 'another', clock }).marks?.set(['user-1'], new Date(clock.now()))
  expect(marks.set.mock.calls[1]?.[0][0]?.key).not.toBe(mark?.key)
})
