/** What a durable queue promises: jobs outlive the process, and of processes that share them, one handles each. */

import { deepEqual, equal, ok } from 'node:assert/strict'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { ClaimedJob, Outcome } from '../../queues/queue.ts'
import { bodiesOf, bytes, type Cases, complete, jobOf, never, text } from './context.ts'

export const durableCases: Cases = {
  'durable: jobs outlive their process, those that wait for their time too': async (context) => {
    const { queue, now, advance, work, eventually, expectCounts, openAnother } = context
    await queue.push([jobOf('later', { notBefore: new Date(now() + 5000) })])
    await queue.push([jobOf('a')])
    await queue.push([jobOf('b')])
    deepEqual(await queue.close({ graceMs: 0 }), [], 'a durable queue must return no jobs when it is closed')
    const next = await openAnother()
    await expectCounts({ waiting: 3, active: 0, deadLetters: 0 }, 'jobs must outlive their process', next)
    const seen = work(() => complete, 1, next)
    await eventually(() => seen.length === 2, 'due jobs of an earlier process must be claimed')
    await advance(5000)
    await eventually(() => seen.length === 3, 'a job must be claimed when notBefore has come')
    deepEqual(bodiesOf(seen), ['a', 'b', 'later'], 'jobs of an earlier process must be claimed about the oldest first')
  },

  'durable: a claim that no handler saw does not count': async (context) => {
    const { queue, now, advance, work, eventually, expectCounts, openAnother } = context
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
    await eventually(() => seen.length === 1, 'a job that was claimed and not handled must be claimed again')
    const [{ id, claimCount, firstAt }] = seen as [ClaimedJob]
    equal(id, job.id, 'a job that was claimed and not handled must keep its id')
    equal(claimCount, handled + 1, 'a claim that no handler saw must not count')
    ok(handled > 0 || firstAt.getTime() >= before, 'firstAt must be the first claim that a handler saw')
  },

  'durable: the claim count, the first time and the retry state outlive the process': async (context) => {
    const { queue, now, advance, work, drain, eventually, openAnother } = context
    const first = work(() => ({ retryAt: new Date(now() + 5000), retryState: bytes('\u0000 kept') }))
    await queue.push([jobOf('job')])
    await drain()
    equal(first.length, 1, 'a retry must not be claimed before its time')
    await queue.close({ graceMs: 0 })
    const second = work(() => complete, 10, await openAnother())
    await advance(4000)
    equal(second.length, 0, 'a retry must not be claimed before its time, by another process either')
    await advance(1000)
    await eventually(() => second.length === 1, 'a retry must be claimed when its time has come')
    const [before, after] = [first[0], second[0]] as [ClaimedJob, ClaimedJob]
    equal(after.id, before.id, 'a retry in another process must keep the id')
    equal(after.claimCount, 2, 'claimCount must outlive the process')
    deepEqual(after.firstAt, before.firstAt, 'firstAt must outlive the process')
    equal(text(after.retryState), '\u0000 kept', 'retryState must outlive the process')
  },

  'durable: another process lists, redrives and drops dead letters': async (context) => {
    const { queue, work, pushEach, drain, openAnother } = context
    work(() => ({ deadLetter: 'no \u0000 way', retryState: bytes('why') }), 1)
    await pushEach([jobOf('a'), jobOf('b')])
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

  'durable: the dedupe window outlives the process': async ({ queue, work, drain, expectEmpty, openAnother }) => {
    work(() => complete)
    const job = jobOf('once')
    await queue.push([job])
    await drain()
    await queue.close({ graceMs: 0 })
    const next = await openAnother()
    await next.push([job])
    await expectEmpty('a completed id must stay known after a restart', next)
  },

  'durable: a queue handles what another one pushed': async ({ queue, work, eventually, openAnother }) => {
    const seen = work(() => complete, 10, await openAnother())
    await queue.push([jobOf('a'), jobOf('b')])
    await eventually(() => seen.length === 2, 'jobs that another process pushed must be claimed')
  },

  'durable: of two queues that share jobs, one handles each job': async (context) => {
    const { queue, work, drain, eventually, openAnother } = context
    const other = await openAnother()
    const slowly = async (): Promise<Outcome> => {
      await nextTurn()
      return complete
    }
    const [here, there] = [work(slowly), work(slowly, 10, other)]
    const jobs = Array.from({ length: 60 }, (_, index) => jobOf(`${index}`))
    await Promise.all([queue.push(jobs.slice(0, 30)), other.push(jobs.slice(30)), queue.push(jobs.slice(15, 45))])
    await eventually(() => here.length + there.length >= 60, 'each pushed job must be handled')
    await Promise.all([drain(), drain(other)])
    const handled = [...here, ...there].map(({ id }) => id).sort()
    deepEqual(handled, jobs.map(({ id }) => id).sort(), 'each job must be handled by one queue, and once')
  },

  'durable: of many copies that are pushed at once, one is stored': async ({ queue, expectCounts, openAnother }) => {
    const other = await openAnother()
    const job = jobOf('copy')
    await Promise.all(Array.from({ length: 100 }, (_, index) => (index % 2 === 0 ? queue : other).push([job])))
    await expectCounts({ waiting: 1 }, 'of copies that two queues push at once, one must be stored')
  },

  'durable: a queue knows the ids that another one completed': async (context) => {
    const { queue, tick, work, counts, expectCounts, openAnother } = context
    work(() => complete, 10, await openAnother())
    const job = jobOf('once')
    await queue.push([job])
    for (let left = 1; left > 0; ) {
      const { waiting, active } = await counts()
      left = waiting + active
      await tick?.()
    }
    await queue.push([job])
    await expectCounts({ waiting: 0, active: 0 }, 'an id that another queue completed must be known')
  },

  'durable: a job that still runs when its queue closes is released, and its late outcome changes nothing': async (
    context,
  ) => {
    const { queue, hold, claimed, drain, eventually, expectCounts, expectEmpty, openAnother } = context
    const rule = 'close() must release the jobs that still run'
    const first = hold()
    await queue.push([jobOf('ignores its signal')])
    await claimed(first.seen, 1)
    await queue.close({ graceMs: 0 })
    const other = await openAnother()
    await expectCounts({ waiting: 1, active: 0 }, rule, other)
    const second = hold(10, other)
    await eventually(() => second.seen.length === 1, rule)
    equal(second.seen[0]?.id, first.seen[0]?.id, 'a released job must keep its id')
    equal(second.seen[0]?.claimCount, 2, 'a released claim that a handler saw must count')
    first.end({ deadLetter: 'too late' })
    await nextTurn()
    await expectCounts({ active: 1, deadLetters: 0 }, 'an outcome after close() must change nothing', other)
    second.end(complete)
    await drain(other)
    await expectEmpty('a completed job must not count', other)
  },
}

/** What a queue with leases promises, too. */
export const leaseCases: Cases = {
  'lease: an outcome after the lease is over changes nothing': async (context) => {
    const { queue, advance, leaseMs, hold, claimed, drain, expectCounts, expectEmpty, openStalled } = context
    await queue.push([jobOf('slow')])
    const first = hold(10, await openStalled())
    await claimed(first.seen, 1, 'jobs that another process pushed must be claimed')
    await advance(leaseMs)
    const second = hold()
    await claimed(second.seen, 1, 'a job whose lease is over must be claimed again')
    equal(second.seen[0]?.claimCount, 2, 'a claim that lapsed must count')
    first.end({ deadLetter: 'too late' })
    await nextTurn()
    await expectCounts({ active: 1, deadLetters: 0 }, 'an outcome after the lease must change nothing')
    second.end(complete)
    await drain()
    await expectEmpty()
  },
}
