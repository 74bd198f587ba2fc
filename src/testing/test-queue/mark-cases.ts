/** The rules for marks: a key stays set until its time, and each process of the queue knows it. */

import { deepEqual, equal, ok, rejects } from 'node:assert/strict'
import { inspectQueue } from '../../observe/inspect-queue.ts'
import type { Queue, QueueMarks } from '../../store/queue-types.ts'
import { type Cases, complete, jobOf } from './context.ts'

const KEYS = ['a', 'b', 'c']

export const markCases: Cases = {
  'marks: a key is set until its time, and until it is unset': async ({ queue, now, advance }) => {
    const marks = marksOf(queue)
    await marks.set(['a', 'b'], new Date(now() + 60_000))
    deepEqual(KEYS.filter(marks.has), ['a', 'b'])
    await marks.set(['a'], new Date(now() - 1))
    deepEqual(KEYS.filter(marks.has), ['b'])
    await marks.set(['b', 'c'], new Date(now() + 5_000))
    await advance(4_000)
    deepEqual(KEYS.filter(marks.has), ['b', 'c'])
    await advance(1_000)
    deepEqual(KEYS.filter(marks.has), [])
  },

  'marks: thousands of keys may be set for ever': async ({ queue }) => {
    const marks = marksOf(queue)
    const keys = Array.from({ length: 1_200 }, (_, index) => `${index}`)
    await marks.set([...keys, ...keys], new Date(8.64e15))
    equal(keys.filter(marks.has).length, keys.length)
    equal(marks.size, keys.length)
  },

  'marks: a paused queue claims nothing until it is resumed': async ({ queue, advance, work, claimed, drain }) => {
    const { pause, resume, health } = inspectQueue(queue)
    await pause()
    const seen = work()
    await queue.push([jobOf('a')])
    await advance(5_000)
    deepEqual([seen.length, (await health()).paused], [0, true])
    await resume()
    await claimed(seen, 1)
    await drain()
    equal((await health()).paused, undefined)
  },

  'marks: an invalid argument is refused': async ({ queue, now }) => {
    const marks = marksOf(queue)
    await rejects(marks.set('a' as never, new Date(now())), TypeError)
    await rejects(marks.set([''], new Date(now())), TypeError)
    await rejects(marks.set(['a'], new Date(Number.NaN)), TypeError)
  },
}

export const durableMarkCases: Cases = {
  'durable: marks outlive the process, and are known before the first claim': async (context) => {
    const { queue, now, tick, work, claimed, openAnother } = context
    await marksOf(queue).set(['a'], new Date(now() + 60_000))
    await inspectQueue(queue).pause()
    await queue.push([jobOf('job')])
    await queue.close({ graceMs: 0 })
    const next = await openAnother()
    let wasSet: boolean | undefined
    const seen = work(
      () => {
        wasSet = marksOf(next).has('a')
        return complete()
      },
      10,
      next,
    )
    for (let ticks = 0; ticks < 20; ticks += 1) await tick()
    equal(seen.length, 0)
    await inspectQueue(next).resume()
    await claimed(seen, 1, tick)
    equal(wasSet, true)
  },

  'durable: each process that works knows what others set and unset, even at the same time': async (context) => {
    const { queue, now, advance, until, work, openAnother } = context
    const others = [await openAnother(), await openAnother()]
    const marks = marksOf(queue)
    work(complete, 10, queue)
    const until1 = new Date(now() + 3_600_000)
    await Promise.all(
      others.map((other, index) =>
        marksOf(other).set(
          [...'0123456789'].map((key) => `${index}${key}`),
          until1,
        ),
      ),
    )
    const explain = () => `20 marks were expected. Got ${marks.size}.`
    await until(
      () => marks.size === 20,
      explain,
      () => advance(500),
    )
    await inspectQueue(others[0] as Queue).pause()
    await until(
      async () => (await inspectQueue(queue).health()).paused === true,
      () => 'The pause of another process must be known.',
      () => advance(500),
    )
    await marksOf(others[1] as Queue).set(['00'], new Date(now()))
    await until(
      () => !marks.has('00'),
      () => 'A key that another process unsets must be unset.',
      () => advance(500),
    )
    ok(marks.has('10'), 'The other keys must stay set.')
  },
}

function marksOf({ marks }: Queue): QueueMarks {
  ok(marks !== undefined, 'A queue with marks must have `marks`.')
  return marks
}
