/** What a durable queue promises to processes that share it: each job is handled by one, and none is stuck with another. */

import { deepEqual, equal } from 'node:assert/strict'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Outcome } from '../../queues/queue.ts'
import { type Cases, complete, jobOf } from './context.ts'

export const sharedCases: Cases = {
  'durable: a queue handles what another one pushed': async (context) => {
    const seen = context.work(() => complete, 10, await context.openAnother())
    await context.queue.push([jobOf('a'), jobOf('b')])
    await context.eventually(() => seen.length === 2, 'jobs that another process pushed must be claimed')
  },

  'durable: of two queues that share jobs, one handles each job': async (context) => {
    const { queue, openAnother, work, drain } = context
    const other = await openAnother()
    const slowly = async (): Promise<Outcome> => {
      await nextTurn()
      return complete
    }
    const [here, there] = [work(slowly), work(slowly, 10, other)]
    const jobs = Array.from({ length: 60 }, (_, index) => jobOf(`${index}`))
    await Promise.all([queue.push(jobs.slice(0, 30)), other.push(jobs.slice(30)), queue.push(jobs.slice(15, 45))])
    await context.eventually(() => here.length + there.length >= 60, 'each pushed job must be handled')
    await Promise.all([drain(), drain(other)])
    const handled = [...here, ...there].map(({ id }) => id).sort()
    deepEqual(handled, jobs.map(({ id }) => id).sort(), 'each job must be handled by one queue, and once')
  },

  'durable: of many copies that are pushed at once, one is stored': async ({ queue, openAnother, expectCounts }) => {
    const other = await openAnother()
    const job = jobOf('copy')
    const copies = Array.from({ length: 100 }, (_, index) => (index % 2 === 0 ? queue : other).push([job]))
    await Promise.all(copies)
    await expectCounts({ waiting: 1 }, 'of copies that two queues push at once, one must be stored')
  },

  'durable: a queue knows the ids that another one completed': async (context) => {
    const { queue, openAnother, work, tick, counts, expectCounts } = context
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
    const { queue, openAnother, work, until, drain, expectCounts } = context
    const late = Promise.withResolvers<Outcome>()
    const first = work(() => late.promise)
    await queue.push([jobOf('ignores its signal')])
    await until(() => first.length === 1, 'a due job must be claimed')
    await queue.close({ graceMs: 0 })
    const other = await openAnother()
    await expectCounts({ waiting: 1, active: 0 }, 'close() must release the jobs that still run', other)
    const held = Promise.withResolvers<Outcome>()
    const second = work(() => held.promise, 10, other)
    await context.eventually(() => second.length === 1, 'close() must release the jobs that still run')
    equal(second[0]?.id, first[0]?.id, 'a released job must keep its id')
    equal(second[0]?.claimCount, 2, 'a released claim that a handler saw must count')
    late.resolve({ deadLetter: 'too late' })
    await nextTurn()
    await expectCounts({ active: 1, deadLetters: 0 }, 'an outcome after close() must change nothing', other)
    held.resolve(complete)
    await drain(other)
    await expectCounts({ waiting: 0, active: 0, deadLetters: 0 }, 'a completed job must not count', other)
  },
}

/** What a queue with leases promises, too. */
export const leaseCases: Cases = {
  'lease: an outcome after the lease is over changes nothing': async (context) => {
    const { queue, leaseMs, openStalled, advance, work, until, drain, expectCounts } = context
    const late = Promise.withResolvers<Outcome>()
    await queue.push([jobOf('slow')])
    const first = work(() => late.promise, 10, await openStalled())
    await until(() => first.length === 1, 'jobs that another process pushed must be claimed')
    await advance(leaseMs)
    const held = Promise.withResolvers<Outcome>()
    const second = work(() => held.promise)
    await until(() => second.length === 1, 'a job whose lease is over must be claimed again')
    equal(second[0]?.claimCount, 2, 'a claim that lapsed must count')
    late.resolve({ deadLetter: 'too late' })
    await nextTurn()
    await expectCounts({ active: 1, deadLetters: 0 }, 'an outcome after the lease must change nothing')
    held.resolve(complete)
    await drain()
    await expectCounts({ waiting: 0, active: 0, deadLetters: 0 }, 'a completed job must not count')
  },
}
