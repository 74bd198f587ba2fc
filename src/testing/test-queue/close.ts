/** What close promises: running jobs get their grace, then their signal; nothing is claimed afterwards; no job is lost. */

import { deepEqual, equal, ok, rejects } from 'node:assert/strict'
import type { Outcome } from '../../queues/queue.ts'
import { bodiesOf, type Cases, complete, jobOf, never, text } from './context.ts'

export const closeCases: Cases = {
  'close: an empty queue closes at once, whatever the grace': async ({ work, close }) => {
    work(() => complete)
    const closing = close(60_000)
    deepEqual(
      await closing.end('an empty queue must close before its grace is over'),
      [],
      'an empty queue must return no jobs',
    )
  },

  'close: waits for a running job during the grace, without aborting it': async ({ advance, work, run, close }) => {
    const held = Promise.withResolvers<Outcome>()
    const signals: AbortSignal[] = []
    const seen = work((_job, signal) => {
      signals.push(signal)
      return held.promise
    })
    await run(seen)
    const closing = close(5000)
    await advance(4000)
    equal(closing.left, undefined, 'close() must wait for a running job while the grace lasts')
    equal(signals[0]?.aborted, false, 'the signal must not abort while the grace lasts')
    held.resolve(complete)
    deepEqual(
      await closing.end('close() must resolve when the running jobs are complete'),
      [],
      'a job that completed during the grace must not be returned',
    )
  },

  'close: aborts the signal when the grace is over, and records the outcome of a handler that obeys': async (
    context,
  ) => {
    const { queue, advance, isDurable, work, run, close, expectCounts } = context
    const seen = work((_job, signal) => {
      const { promise, resolve } = Promise.withResolvers<Outcome>()
      signal.addEventListener('abort', () => resolve({ deadLetter: 'aborted' }))
      return promise
    }, 1)
    await run(seen, 'obeys')
    await queue.push([jobOf('waits')])
    const closing = close(5000)
    await advance(4999)
    await expectCounts({ active: 1 }, 'the signal must not abort while the grace lasts')
    await advance(1)
    const expected = isDurable ? [] : ['waits']
    deepEqual(bodiesOf(await closing.end()), expected, 'a job whose outcome came upon the abort must not be returned')
    deepEqual(bodiesOf(seen), ['obeys'], 'nothing may be claimed when the grace is over')
  },

  'close: aborts at once without a grace': async ({ work, run, close }) => {
    let isAborted = false
    const seen = work((_job, signal) => {
      signal.addEventListener('abort', () => {
        isAborted = true
      })
      return never()
    })
    await run(seen, 'ignores its signal')
    const closing = close(0)
    await closing.end('close() must not wait for a handler that ignores its signal')
    ok(isAborted, 'the signal must abort when the grace is over')
  },

  'close: claims nothing afterwards': async ({ queue, now, advance, work }) => {
    const seen = work(() => complete)
    await queue.push([jobOf('later', { notBefore: new Date(now() + 5000) })])
    await queue.close({ graceMs: 1000 })
    await advance(10_000)
    equal(seen.length, 0, 'a closed queue must claim nothing')
  },

  'close: pushes and redrives are refused as soon as it begins': async ({ queue, advance, work, run, close }) => {
    const seen = work(never)
    await run(seen)
    const closing = close(5000)
    const expected = { code: 'shutting_down' }
    await rejects(queue.push([jobOf('late')]), expected, 'push() must be refused while the queue closes')
    await rejects(queue.redrive('all'), expected, 'redrive() must be refused while the queue closes')
    await advance(5000)
    await closing.end()
  },

  'close: a second call waits for the end of the first': async ({ advance, work, run, close }) => {
    const seen = work(never)
    await run(seen, 'ignores its signal')
    const [first, second] = [close(5000), close(0)]
    await advance(4000)
    equal(second.left, undefined, 'a second close() must not cut the grace of the first short')
    await advance(1000)
    await second.end('a second close() must resolve when the first does')
    deepEqual(second.left, first.left, 'a second close() must return the same jobs')
  },

  'close: returns exactly the jobs that would be lost with the process': async (context) => {
    const { queue, now, advance, isDurable, work, claimed, close } = context
    const seen = work((job) => (text(job.body) === 'fails' ? { deadLetter: 'no' } : never()), 2)
    const [fails, running, later] = [
      jobOf('fails'),
      jobOf('running'),
      jobOf('later', { notBefore: new Date(now() + 60_000) }),
    ]
    const due = jobOf('due')
    for (const job of [fails, running, later, jobOf('runs too'), due]) await queue.push([job])
    await claimed(seen, 3, 'due jobs must be claimed up to the concurrency')
    const closing = close(1000)
    await advance(1000)
    const left = await closing.end()
    const expected = isDurable ? [] : ['running', 'later', 'runs too', 'due']
    deepEqual(bodiesOf(left), expected, 'close() must return the jobs that would be lost, the oldest first')
    if (isDurable) return
    deepEqual([left[0], left[1], left[3]], [running, later, due], 'close() must return jobs that can be pushed again')
  },

  'close: goes on with what is due during the grace when it would be lost': async (context) => {
    const { queue, advance, isDurable, hold, run, close } = context
    const { seen, end } = hold(1)
    await run(seen, 'a')
    for (const body of ['b', 'c']) await queue.push([jobOf(body)])
    const closing = close(5000)
    await advance(0)
    end(complete)
    deepEqual(
      await closing.end('close() must resolve when nothing is left to wait for'),
      [],
      'jobs that are complete or durable must not be returned',
    )
    const rule = 'during the grace, due jobs must be claimed when they would be lost, and else left to other processes'
    deepEqual(bodiesOf(seen), isDurable ? ['a'] : ['a', 'b', 'c'], rule)
  },

  'close: an outcome after the end changes nothing': async ({ queue, advance, hold, run }) => {
    const { seen, end } = hold()
    await run(seen, 'ignores its signal')
    const left = await queue.close({ graceMs: 0 })
    end({ deadLetter: 'too late' })
    await advance(0)
    deepEqual(await queue.close({ graceMs: 0 }), left, 'an outcome after close() must change nothing')
  },
}
