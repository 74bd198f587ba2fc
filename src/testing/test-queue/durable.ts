/** What a durable queue promises: jobs, claims, dead letters and known ids outlive the process. */

import { deepEqual, equal, ok } from 'node:assert/strict'
import type { ClaimedJob } from '../../queues/queue.ts'
import { bodiesOf, bytes, type Cases, complete, jobOf, never, text } from './context.ts'

export const durableCases: Cases = {
  'durable: jobs outlive their process, those that wait for their time too': async (context) => {
    const { queue, openAnother, now, advance, work, expectCounts } = context
    await queue.push([jobOf('later', { notBefore: new Date(now() + 5000) })])
    await queue.push([jobOf('a')])
    await queue.push([jobOf('b')])
    deepEqual(await queue.close({ graceMs: 0 }), [], 'a durable queue must return no jobs when it is closed')
    const next = await openAnother()
    await expectCounts({ waiting: 3, active: 0, deadLetters: 0 }, 'jobs must outlive their process', next)
    const seen = work(() => complete, 1, next)
    await context.eventually(() => seen.length === 2, 'due jobs of an earlier process must be claimed')
    await advance(5000)
    await context.eventually(() => seen.length === 3, 'a job must be claimed when notBefore has come')
    deepEqual(bodiesOf(seen), ['a', 'b', 'later'], 'jobs of an earlier process must be claimed about the oldest first')
  },

  'durable: a claim that no handler saw does not count': async (context) => {
    const { queue, openAnother, now, advance, work, expectCounts } = context
    const job = jobOf('job')
    await queue.push([job])
    let handled = 0
    for (let round = 0; round < 6; round += 1) {
      const closing = round === 0 ? queue : await openAnother()
      const seen = work(never, 10, closing)
      await Promise.resolve() // Its store is asked for jobs now. One that answers at once has its job handled.
      await closing.close({ graceMs: 0 })
      handled += seen.length
    }
    await advance(1000)
    const before = now()
    const next = await openAnother()
    await expectCounts({ waiting: 1, active: 0 }, 'close() must release the jobs that it claimed', next)
    const seen = work(() => complete, 10, next)
    await context.eventually(() => seen.length === 1, 'a job that was claimed and not handled must be claimed again')
    equal(seen[0]?.id, job.id, 'a job that was claimed and not handled must keep its id')
    equal(seen[0]?.claimCount, handled + 1, 'a claim that no handler saw must not count')
    const firstAt = seen[0]?.firstAt.getTime() ?? 0
    ok(handled > 0 || firstAt >= before, 'firstAt must be the first claim that a handler saw')
  },

  'durable: the claim count, the first time and the retry state outlive the process': async (context) => {
    const { queue, openAnother, now, advance, work, drain } = context
    const first = work(() => ({ retryAt: new Date(now() + 5000), retryState: bytes('\u0000 kept') }))
    await queue.push([jobOf('job')])
    await drain()
    equal(first.length, 1, 'a retry must not be claimed before its time')
    await queue.close({ graceMs: 0 })
    const second = work(() => complete, 10, await openAnother())
    await advance(4000)
    equal(second.length, 0, 'a retry must not be claimed before its time, by another process either')
    await advance(1000)
    await context.eventually(() => second.length === 1, 'a retry must be claimed when its time has come')
    const [before, after] = [first[0], second[0]] as [ClaimedJob, ClaimedJob]
    equal(after.id, before.id, 'a retry in another process must keep the id')
    equal(after.claimCount, 2, 'claimCount must outlive the process')
    deepEqual(after.firstAt, before.firstAt, 'firstAt must outlive the process')
    equal(text(after.retryState), '\u0000 kept', 'retryState must outlive the process')
  },

  'durable: another process lists, redrives and drops dead letters': async (context) => {
    const { queue, openAnother, advance, work, drain } = context
    work(() => ({ deadLetter: 'no \u0000 way', retryState: bytes('why') }), 1)
    for (const body of ['a', 'b']) {
      await queue.push([jobOf(body)])
      await drain()
      await advance(1)
    }
    const before = await queue.deadLetters()
    await queue.close({ graceMs: 0 })
    const next = await openAnother()
    const letters = await next.deadLetters()
    deepEqual(letters, before, 'dead letters must outlive the process')
    deepEqual(bodiesOf(letters), ['a', 'b'], 'dead letters must be listed, the oldest first')
    equal(letters[0]?.reason, 'no \u0000 way', 'the reason must be kept as it was given')
    equal(await next.drop([letters[0]?.id ?? '']), 1, 'another process must be able to drop a dead letter')
    equal(await next.redrive('all'), 1, 'another process must be able to redrive dead letters')
    const seen = work(() => complete, 10, next)
    await drain(next)
    deepEqual(bodiesOf(seen), ['b'], 'a redriven job must be handled, and a dropped one must not')
    equal(seen[0]?.claimCount, 1, 'a redriven job must begin with the claimCount 1')
  },

  'durable: the dedupe window outlives the process': async ({ queue, openAnother, work, drain, expectCounts }) => {
    work(() => complete)
    const job = jobOf('once')
    await queue.push([job])
    await drain()
    await queue.close({ graceMs: 0 })
    const next = await openAnother()
    await next.push([job])
    await expectCounts(
      { waiting: 0, active: 0, deadLetters: 0 },
      'a completed id must stay known after a restart',
      next,
    )
  },
}
