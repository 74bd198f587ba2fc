/** What close promises: running jobs get their grace, then their signal; nothing is claimed afterwards; no job is lost. */

import { deepEqual, equal, ok, rejects } from 'node:assert/strict'
import type { Job, Outcome } from '../../queues/queue.ts'
import { bodiesOf, type Cases, complete, jobOf, never, text } from './context.ts'

export const closeCases: Cases = {
  'close: an empty queue closes at once, whatever the grace': async ({ queue, work, until }) => {
    work(() => complete)
    const closing = watch(queue.close({ graceMs: 60_000 }))
    await until(() => closing.left !== undefined, 'an empty queue must close before its grace is over')
    deepEqual(closing.left, [], 'an empty queue must return no jobs')
  },

  'close: waits for a running job during the grace, without aborting it': async ({ queue, work, advance, until }) => {
    const held = Promise.withResolvers<Outcome>()
    const signals: AbortSignal[] = []
    const seen = work((_job, signal) => {
      signals.push(signal)
      return held.promise
    })
    await queue.push([jobOf('running')])
    await until(() => seen.length === 1, 'a due job must be claimed')
    const closing = watch(queue.close({ graceMs: 5000 }))
    await advance(4000)
    equal(closing.left, undefined, 'close() must wait for a running job while the grace lasts')
    equal(signals[0]?.aborted, false, 'the signal must not abort while the grace lasts')
    held.resolve(complete)
    await until(() => closing.left !== undefined, 'close() must resolve when the running jobs are complete')
    deepEqual(closing.left, [], 'a job that completed during the grace must not be returned')
  },

  'close: aborts the signal when the grace is over, and records the outcome of a handler that obeys': async ({
    queue,
    work,
    advance,
    until,
    expectCounts,
    isDurable,
  }) => {
    const seen = work((_job, signal) => {
      const { promise, resolve } = Promise.withResolvers<Outcome>()
      signal.addEventListener('abort', () => resolve({ deadLetter: 'aborted' }))
      return promise
    }, 1)
    await queue.push([jobOf('obeys')])
    await until(() => seen.length === 1, 'a due job must be claimed')
    await queue.push([jobOf('waits')])
    const closing = watch(queue.close({ graceMs: 5000 }))
    await advance(4999)
    await expectCounts({ active: 1 }, 'the signal must not abort while the grace lasts')
    await advance(1)
    await until(() => closing.left !== undefined, 'close() must resolve when the grace is over')
    const expected = isDurable ? [] : ['waits']
    deepEqual(bodiesOf(closing.left ?? []), expected, 'a job whose outcome came upon the abort must not be returned')
    deepEqual(bodiesOf(seen), ['obeys'], 'nothing may be claimed when the grace is over')
  },

  'close: aborts at once without a grace': async ({ queue, work, until }) => {
    let isAborted = false
    const seen = work((_job, signal) => {
      signal.addEventListener('abort', () => {
        isAborted = true
      })
      return never()
    })
    await queue.push([jobOf('ignores its signal')])
    await until(() => seen.length === 1, 'a due job must be claimed')
    const closing = watch(queue.close({ graceMs: 0 }))
    await until(() => closing.left !== undefined, 'close() must not wait for a handler that ignores its signal')
    ok(isAborted, 'the signal must abort when the grace is over')
  },

  'close: claims nothing afterwards': async ({ queue, now, work, advance }) => {
    const seen = work(() => complete)
    await queue.push([jobOf('later', { notBefore: new Date(now() + 5000) })])
    await queue.close({ graceMs: 1000 })
    await advance(10_000)
    equal(seen.length, 0, 'a closed queue must claim nothing')
  },

  'close: pushes and redrives are refused as soon as it begins': async ({ queue, work, advance, until }) => {
    const seen = work(never)
    await queue.push([jobOf('running')])
    await until(() => seen.length === 1, 'a due job must be claimed')
    const closing = watch(queue.close({ graceMs: 5000 }))
    const expected = { code: 'shutting_down' }
    await rejects(queue.push([jobOf('late')]), expected, 'push() must be refused while the queue closes')
    await rejects(queue.redrive('all'), expected, 'redrive() must be refused while the queue closes')
    await advance(5000)
    await until(() => closing.left !== undefined, 'close() must resolve when the grace is over')
  },

  'close: a second call waits for the end of the first': async ({ queue, work, advance, until }) => {
    const seen = work(never)
    await queue.push([jobOf('ignores its signal')])
    await until(() => seen.length === 1, 'a due job must be claimed')
    const [first, second] = [watch(queue.close({ graceMs: 5000 })), watch(queue.close({ graceMs: 0 }))]
    await advance(4000)
    equal(second.left, undefined, 'a second close() must not cut the grace of the first short')
    await advance(1000)
    await until(() => second.left !== undefined, 'a second close() must resolve when the first does')
    deepEqual(second.left, first.left, 'a second close() must return the same jobs')
  },

  'close: returns exactly the jobs that would be lost with the process': async ({
    queue,
    now,
    work,
    advance,
    until,
    isDurable,
  }) => {
    const seen = work((job) => (text(job.body) === 'fails' ? { deadLetter: 'no' } : never()), 2)
    const [fails, running, later] = [
      jobOf('fails'),
      jobOf('running'),
      jobOf('later', { notBefore: new Date(now() + 60_000) }),
    ]
    const due = jobOf('due')
    for (const job of [fails, running, later, jobOf('runs too'), due]) await queue.push([job])
    await until(() => seen.length === 3, 'due jobs must be claimed up to the concurrency')
    const closing = watch(queue.close({ graceMs: 1000 }))
    await advance(1000)
    await until(() => closing.left !== undefined, 'close() must resolve when the grace is over')
    const left = closing.left ?? []
    const expected = isDurable ? [] : ['running', 'later', 'runs too', 'due']
    deepEqual(bodiesOf(left), expected, 'close() must return the jobs that would be lost, the oldest first')
    if (isDurable) return
    deepEqual([left[0], left[1], left[3]], [running, later, due], 'close() must return jobs that can be pushed again')
  },

  'close: goes on with what is due during the grace when it would be lost': async ({
    queue,
    work,
    advance,
    until,
    isDurable,
  }) => {
    const held = Promise.withResolvers<Outcome>()
    const seen = work(() => held.promise, 1)
    await queue.push([jobOf('a')])
    await until(() => seen.length === 1, 'a due job must be claimed')
    for (const body of ['b', 'c']) await queue.push([jobOf(body)])
    const closing = watch(queue.close({ graceMs: 5000 }))
    await advance(0)
    held.resolve(complete)
    await until(() => closing.left !== undefined, 'close() must resolve when nothing is left to wait for')
    deepEqual(closing.left, [], 'jobs that are complete or durable must not be returned')
    const rule = 'during the grace, due jobs must be claimed when they would be lost, and else left to other processes'
    deepEqual(bodiesOf(seen), isDurable ? ['a'] : ['a', 'b', 'c'], rule)
  },

  'close: an outcome after the end changes nothing': async ({ queue, work, advance, until }) => {
    const late = Promise.withResolvers<Outcome>()
    const seen = work(() => late.promise)
    await queue.push([jobOf('ignores its signal')])
    await until(() => seen.length === 1, 'a due job must be claimed')
    const left = await queue.close({ graceMs: 0 })
    late.resolve({ deadLetter: 'too late' })
    await advance(0)
    deepEqual(await queue.close({ graceMs: 0 }), left, 'an outcome after close() must change nothing')
  },
}

/** What a close returned, once it did. */
function watch(closing: Promise<readonly Job[]>): { left: readonly Job[] | undefined } {
  const watched: { left: readonly Job[] | undefined } = { left: undefined }
  void closing.then((left) => {
    watched.left = left
  })
  return watched
}
