/** The rules for a durable queue: jobs outlive the process, and if several processes share them, only one handles each job. */

import { deepEqual, equal, ok } from 'node:assert/strict'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { ClaimedJob, Outcome } from '../../store/queue-types.ts'
import { bodiesOf, bytes, type Cases, complete, type Decide, jobOf, never, partsOf, text } from './context.ts'

export const durableCases: Cases = {
  'durable: jobs outlive their process, including those that wait for their time': async (context) => {
    const { queue, now, advance, tick, work, claimed, expectCounts, openAnother } = context
    await queue.push([jobOf('later', { notBefore: new Date(now() + 5000) })])
    await queue.push([jobOf('a')])
    await advance(1) // An engine may claim jobs that are due at the same time in any order.
    await queue.push([jobOf('b')])
    deepEqual(await queue.close({ graceMs: 0 }), [])
    const next = await openAnother()
    await expectCounts({ waiting: 3, active: 0, deadLetters: 0 }, next)
    const seen = work(complete, 1, next)
    await claimed(seen, 2, tick)
    await advance(5000)
    await claimed(seen, 3, tick)
    deepEqual(bodiesOf(seen), ['a', 'b', 'later'])
  },

  'durable: a claim that no handler saw does not count': async (context) => {
    const { queue, now, advance, tick, work, claimed, expectCounts, openAnother } = context
    const job = jobOf('job')
    await queue.push([job])
    let handled = 0
    for (let round = 0; round < 12; round += 1) {
      const closing = round === 0 ? queue : await openAnother()
      const seen = work(never, 10, closing)
      // A queue claims jobs only after it has read its marks. Each round closes the queue at a different moment: before,
      // during or after its claim.
      if (round % 4 === 3) await closing.counts()
      else for (let turns = 0; turns < 2 * round; turns += 1) await Promise.resolve()
      await closing.close({ graceMs: 0 })
      handled += seen.length
    }
    await advance(1000)
    const before = now()
    const next = await openAnother()
    await expectCounts({ waiting: 1, active: 0 }, next)
    const seen = work(complete, 10, next)
    await claimed(seen, 1, tick)
    const [{ id, claimCount, firstAt }] = seen as [ClaimedJob]
    deepEqual([id, claimCount], [job.id, handled + 1])
    ok(handled > 0 || firstAt.getTime() >= before, 'firstAt must be the time of the first claim that a handler saw.')
  },

  'durable: the claim count, the first time and the retry state outlive the process': async (context) => {
    const { queue, now, advance, tick, work, claimed, drain, openAnother } = context
    const first = work(() => ({ retryAt: new Date(now() + 5000), retryState: bytes('\u0000 kept') }))
    const job = jobOf('job')
    await queue.push([job])
    await drain()
    equal(first.length, 1)
    await queue.close({ graceMs: 0 })
    const second = work(complete, 10, await openAnother())
    await advance(4000)
    equal(second.length, 0)
    await advance(1000)
    await claimed(second, 1, tick)
    const expected = { id: job.id, body: 'job', claimCount: 2, retryState: '\u0000 kept' }
    deepEqual(second.map(partsOf), [expected])
    deepEqual(second[0]?.firstAt, first[0]?.firstAt)
  },

  'durable: another process lists, redrives and drops dead letters': async (context) => {
    const { queue, work, pushEach, drain, openAnother } = context
    work(() => ({ deadLetter: 'no \u0000 way', retryState: bytes('why') }), 1)
    await pushEach([jobOf('a'), jobOf('b')])
    const before = await queue.deadLetters()
    await queue.close({ graceMs: 0 })
    const next = await openAnother()
    const letters = await next.deadLetters()
    deepEqual(letters, before)
    deepEqual(
      letters.map(({ body, reason }) => [text(body), reason]),
      [
        ['a', 'no \u0000 way'],
        ['b', 'no \u0000 way'],
      ],
    )
    equal(await next.drop([letters[0]?.id ?? '']), 1)
    equal(await next.redrive('all'), 1)
    const seen = work(complete, 10, next)
    await drain(next)
    deepEqual(
      seen.map(({ body, claimCount }) => [text(body), claimCount]),
      [['b', 1]],
    )
  },

  'durable: the dedupe window outlives the process': async ({ queue, work, drain, expectCounts, openAnother }) => {
    work()
    const job = jobOf('once')
    await queue.push([job])
    await drain()
    await queue.close({ graceMs: 0 })
    const next = await openAnother()
    await next.push([job])
    await expectCounts(undefined, next)
  },

  'durable: a saved state outlives a claim without an outcome, and an outcome replaces it': async (context) => {
    const { queue, tick, work, claimed, now, openAnother } = context
    const isSaved = Promise.withResolvers<void>()
    await queue.push([jobOf('job')])
    const first = work(async (_job, _signal, save) => {
      await save?.(bytes('before'))
      await save?.(bytes('saved'))
      isSaved.resolve()
      return never()
    })
    await claimed(first, 1)
    await isSaved.promise
    await queue.close({ graceMs: 0 })
    const outcomes: Outcome[] = [
      { retryAt: new Date(now()), retryState: bytes('outcome') },
      { retryAt: new Date(now()) },
    ]
    const decide: Decide = (_job, _signal, save) => {
      void save?.(bytes('replaced'))
      return outcomes.shift() ?? complete()
    }
    const seen = work(decide, 10, await openAnother())
    await claimed(seen, 3, tick)
    deepEqual(
      seen.map(({ retryState }) => text(retryState)),
      ['saved', 'outcome', undefined],
    )
  },

  'durable: a queue handles what another one pushed': async ({ queue, tick, work, claimed, openAnother }) => {
    const seen = work(complete, 10, await openAnother())
    await tick() // The other queue has now looked for jobs, and found none.
    await queue.push([jobOf('a'), jobOf('b')])
    await claimed(seen, 2, tick)
  },

  'durable: only one of two queues that share jobs handles each job': async (context) => {
    const { queue, tick, work, claimed, drain, openAnother } = context
    const other = await openAnother()
    const handled: ClaimedJob[] = []
    const slowly = async (job: ClaimedJob): Promise<Outcome> => {
      handled.push(job)
      await nextTurn()
      return complete()
    }
    work(slowly)
    work(slowly, 10, other)
    const jobs = Array.from({ length: 60 }, (_, index) => jobOf(`${index}`))
    await Promise.all([queue.push(jobs.slice(0, 30)), other.push(jobs.slice(30)), queue.push(jobs.slice(15, 45))])
    await claimed(handled, 60, tick)
    await Promise.all([drain(), drain(other)])
    deepEqual(handled.map(({ id }) => id).sort(), jobs.map(({ id }) => id).sort())
  },

  'durable: only one of many copies that are pushed at once is stored': async ({
    queue,
    expectCounts,
    openAnother,
  }) => {
    const other = await openAnother()
    const job = jobOf('copy')
    await Promise.all(Array.from({ length: 100 }, (_, index) => (index % 2 === 0 ? queue : other).push([job])))
    await expectCounts({ waiting: 1 })
  },

  'durable: a queue knows the ids that another one completed': async (context) => {
    const { queue, tick, work, claimed, drain, expectCounts, openAnother } = context
    const other = await openAnother()
    const seen = work(complete, 10, other)
    const job = jobOf('once')
    await queue.push([job])
    await claimed(seen, 1, tick)
    await drain(other)
    await queue.push([job])
    await expectCounts({ waiting: 0, active: 0 })
  },

  'durable: a job that still runs when its queue closes is released, and its late outcome changes nothing': async (
    context,
  ) => {
    const { queue, tick, hold, run, claimed, drain, expectCounts, openAnother } = context
    const first = hold()
    await run(first.seen, 'ignores its signal')
    await queue.close({ graceMs: 0 })
    const other = await openAnother()
    await expectCounts({ waiting: 1, active: 0 }, other)
    const second = hold(10, other)
    await claimed(second.seen, 1, tick)
    deepEqual([second.seen[0]?.id, second.seen[0]?.claimCount], [first.seen[0]?.id, 2])
    first.end({ deadLetter: 'too late' })
    await nextTurn()
    await expectCounts({ active: 1, deadLetters: 0 }, other)
    second.end(complete())
    await drain(other)
    await expectCounts(undefined, other)
  },
}

export const leaseCases: Cases = {
  'lease: a saved state is kept when the lease is over': async (context) => {
    const { queue, advance, leaseMs, work, claimed, drain, openStalled } = context
    await queue.push([jobOf('slow')])
    const isSaved = Promise.withResolvers<void>()
    const first = work(
      async ({ claimCount }, _signal, save) => {
        if (claimCount === 1) return { retryAt: new Date(0), retryState: bytes('old') }
        await save?.(bytes('saved'))
        isSaved.resolve()
        return never()
      },
      10,
      await openStalled(),
    )
    await claimed(first, 2)
    await isSaved.promise
    await advance(leaseMs)
    const second = work(complete)
    await claimed(second, 1)
    equal(text(second[0]?.retryState), 'saved')
    await drain()
  },

  'lease: an outcome after the lease is over changes nothing': async (context) => {
    const { queue, advance, leaseMs, hold, claimed, drain, expectCounts, openStalled } = context
    await queue.push([jobOf('slow')])
    const first = hold(10, await openStalled())
    await claimed(first.seen, 1)
    await advance(leaseMs)
    const second = hold()
    await claimed(second.seen, 1)
    equal(second.seen[0]?.claimCount, 2, 'A claim that lapsed must count.')
    first.end({ deadLetter: 'too late' })
    await nextTurn()
    await expectCounts({ active: 1, deadLetters: 0 })
    second.end(complete())
    await drain()
    await expectCounts()
  },
}
