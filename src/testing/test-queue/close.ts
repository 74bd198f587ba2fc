/** The rules for `close`: running jobs get their grace period, then the abort signal; nothing is claimed afterwards; no job is lost. */

import { deepEqual, equal, ok, rejects, throws } from 'node:assert/strict'
import type { Outcome, Queue } from '../../store/queue-types.ts'
import { bodiesOf, type Cases, complete, jobOf, never, text } from './context.ts'

export const closeCases: Cases = {
  'close: an empty queue closes at once, whatever the grace': async ({ queue, work, begin }) => {
    work()
    deepEqual(await begin(queue.close({ graceMs: 60_000 })).waitForEnd(), [])
  },

  'close: waits for a running job during the grace, without aborting it': async (context) => {
    const { queue, advance, work, run, begin } = context
    const held = Promise.withResolvers<Outcome>()
    const signals: AbortSignal[] = []
    const seen = work((_job, signal) => {
      signals.push(signal)
      return held.promise
    })
    await run(seen)
    const closing = begin(queue.close({ graceMs: 5000 }))
    await advance(4000)
    deepEqual([closing.isOver, signals[0]?.aborted], [false, false])
    held.resolve(complete())
    deepEqual(await closing.waitForEnd(), [])
  },

  'close: aborts the signal when the grace expires, and records the outcome of a handler that obeys': async (
    context,
  ) => {
    const { queue, advance, isDurable, work, run, begin, expectCounts } = context
    const obeyed = Promise.withResolvers<Outcome>()
    const seen = work((_job, signal) => {
      signal.addEventListener('abort', () => obeyed.resolve({ deadLetter: 'aborted' }))
      return obeyed.promise
    }, 1)
    await run(seen, 'obeys')
    await queue.push([jobOf('waits')])
    const closing = begin(queue.close({ graceMs: 5000 }))
    await advance(4999)
    await expectCounts({ active: 1 })
    await advance(1)
    deepEqual(bodiesOf(await closing.waitForEnd()), isDurable ? [] : ['waits'])
    await begin(obeyed.promise).waitForEnd()
    deepEqual(bodiesOf(seen), ['obeys'])
  },

  'close: aborts at once without a grace': async ({ queue, work, run, begin }) => {
    const signals: AbortSignal[] = []
    const seen = work((_job, signal) => {
      signals.push(signal)
      return never()
    })
    await run(seen, 'ignores its signal')
    await begin(queue.close({ graceMs: 0 })).waitForEnd()
    equal(signals[0]?.aborted, true)
  },

  'close: claims nothing afterwards': async ({ queue, now, advance, work }) => {
    const seen = work()
    await queue.push([jobOf('later', { notBefore: new Date(now() + 5000) })])
    await queue.close({ graceMs: 1000 })
    await advance(10_000)
    equal(seen.length, 0)
  },

  'close: pushes and redrives are refused as soon as it begins': async ({ queue, advance, work, run, begin }) => {
    await run(work(never))
    const closing = begin(queue.close({ graceMs: 5000 }))
    await rejects(queue.push([jobOf('late')]), { code: 'shutting_down' })
    await rejects(queue.redrive('all'), { code: 'shutting_down' })
    await advance(5000)
    await closing.waitForEnd()
  },

  'close: a second call waits for the end of the first': async ({ queue, advance, work, run, begin }) => {
    await run(work(never), 'ignores its signal')
    const [first, second] = [begin(queue.close({ graceMs: 5000 })), begin(queue.close({ graceMs: 0 }))]
    await advance(4000)
    ok(!second.isOver, 'A second close() must not shorten the grace period of the first call.')
    await advance(1000)
    deepEqual(await second.waitForEnd(), await first.waitForEnd())
  },

  'close: returns exactly the jobs that would be lost with the process': async (context) => {
    const { queue, now, advance, isDurable, work, claimed, begin } = context
    const seen = work((job) => (text(job.body) === 'fails' ? { deadLetter: 'no' } : never()), 2)
    const later = { notBefore: new Date(now() + 60_000) }
    const jobs = [jobOf('fails'), jobOf('running'), jobOf('later', later), jobOf('runs too'), jobOf('due')]
    for (const job of jobs) await queue.push([job])
    await claimed(seen, 3)
    const closing = begin(queue.close({ graceMs: 1000 }))
    await advance(1000)
    deepEqual(
      await closing.waitForEnd(),
      isDurable ? [] : jobs.slice(1),
      'close() must return the jobs that would be lost, as they were pushed, oldest first.',
    )
  },

  'close: continues with due jobs during the grace if they would be lost': async (context) => {
    const { queue, advance, isDurable, hold, run, begin } = context
    const { seen, end } = hold(1)
    await run(seen, 'a')
    for (const body of ['b', 'c']) await queue.push([jobOf(body)])
    const closing = begin(queue.close({ graceMs: 5000 }))
    await advance(0)
    end(complete())
    deepEqual(await closing.waitForEnd(), [])
    deepEqual(
      bodiesOf(seen),
      isDurable ? ['a'] : ['a', 'b', 'c'],
      'close() must handle due jobs only if they would be lost.',
    )
  },

  'close: an outcome after the end changes nothing': async ({ queue, advance, isDurable, hold, run }) => {
    const { seen, end } = hold()
    await run(seen, 'ignores its signal')
    await queue.close({ graceMs: 0 })
    end({ deadLetter: 'too late' })
    await advance(0)
    deepEqual(bodiesOf(await queue.close({ graceMs: 0 })), isDurable ? [] : ['ignores its signal'])
  },

  'close: every later call except drain and close is refused with shutting_down': async ({ queue }) => {
    await queue.close({ graceMs: 0 })
    for (const call of CALLS) {
      await rejects(call(queue), { code: 'shutting_down', status: 503 }, `${call} must be refused after close().`)
    }
    throws(() => queue.work(async () => complete(), { concurrency: 1 }), TypeError)
    await queue.drain()
    await queue.close({ graceMs: 0 })
  },
}

const CALLS: readonly ((queue: Queue) => Promise<unknown>)[] = [
  (queue) => queue.push([jobOf('late')]),
  (queue) => queue.push([]),
  (queue) => queue.counts(),
  (queue) => queue.deadLetters(),
  (queue) => queue.redrive('all'),
  (queue) => queue.drop('all'),
  (queue) => queue.drop({ reason: 'no' }),
  (queue) => queue.forget(() => true),
]
