/** What work promises: due jobs, about the oldest first, at most so many at a time; pause, drain, counts; and retries, of which none is lost. */

import { deepEqual, equal, ok } from 'node:assert/strict'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { inspect } from 'node:util'
import type { Outcome } from '../../queues/queue.ts'
import { bodiesOf, bytes, type Cases, complete, jobOf, type TestContext, text, watchDrain } from './context.ts'

export const workCases: Cases = {
  'work: as many jobs run at a time as the concurrency says': async (context) => {
    const { queue, work, claimed, drain, expectCounts, expectEmpty } = context
    let running = 0
    let most = 0
    const ends: (() => void)[] = []
    const seen = work(async () => {
      running += 1
      most = Math.max(most, running)
      await new Promise<void>((resolve) => ends.push(resolve))
      running -= 1
      return complete
    }, 3)
    await queue.push(Array.from({ length: 20 }, (_, index) => jobOf(`${index}`)))
    await claimed(seen, 3, 'due jobs must be claimed up to the concurrency')
    await expectCounts({ waiting: 17, active: 3, deadLetters: 0 }, 'a claimed job must count as active')
    for (let next = 4; next <= 20; next += 1) {
      ends.shift()?.()
      await claimed(seen, next, 'a job that ends must make room for the next')
    }
    for (const end of ends) end()
    await drain()
    equal(most, 3, 'never more jobs may run than the concurrency says')
    equal(seen.length, 20, 'every job must be handled once')
    await expectEmpty()
  },

  'work: jobs are claimed about the oldest first': async ({ queue, work, drain }) => {
    for (const body of ['a', 'b', 'c', 'd', 'e']) await queue.push([jobOf(body)])
    const seen = work(() => complete, 1)
    await drain()
    deepEqual(bodiesOf(seen), ['a', 'b', 'c', 'd', 'e'], 'due jobs must be claimed in the order of their pushes')
  },

  'work: an engine with an exact order claims jobs in the order in which they came due': async (context) => {
    const { queue, now, advance, exactOrder = true, work, drain } = context
    await queue.push([
      jobOf('third', { notBefore: new Date(now() + 3000) }),
      jobOf('first', { notBefore: new Date(now() + 1000) }),
    ])
    await queue.push([jobOf('second', { notBefore: new Date(now() + 2000) }), jobOf('zeroth')])
    await advance(3000)
    await queue.push([jobOf('fourth')])
    const seen = work(() => complete, 1)
    await drain()
    const expected = ['zeroth', 'first', 'second', 'third', 'fourth']
    if (exactOrder) deepEqual(bodiesOf(seen), expected, 'jobs must be claimed in the order in which they came due')
    else deepEqual(bodiesOf(seen).sort(), expected.sort(), 'each due job must be handled once')
  },

  'work: no job is claimed before its time': async ({ queue, now, advance, work, claimed }) => {
    const seen = work(() => complete)
    await queue.push([jobOf('later', { notBefore: new Date(now() + 5000) })])
    await advance(4000)
    equal(seen.length, 0, 'a job must not be claimed before notBefore')
    await advance(1000)
    await claimed(seen, 1, 'a job must be claimed when notBefore has come')
  },

  'work: a job that is due sooner is not held up by one that waits': async ({ queue, now, advance, work, claimed }) => {
    const seen = work(() => complete)
    await queue.push([jobOf('later', { notBefore: new Date(now() + 60_000) })])
    await advance(0)
    await queue.push([jobOf('sooner', { notBefore: new Date(now() + 5000) })])
    await advance(5000)
    await claimed(seen, 1, 'a job must be claimed when notBefore has come')
    deepEqual(bodiesOf(seen), ['sooner'], 'the job that is due sooner must be claimed')
  },

  'pause: nothing more is claimed until resume, running jobs go on and pushes are stored': async (context) => {
    const { queue, advance, hold, claimed, run, drain, expectCounts } = context
    const { seen, end } = hold(1)
    await run(seen)
    queue.pause()
    await queue.push([jobOf('waits')])
    end(complete)
    await advance(5000)
    deepEqual(bodiesOf(seen), ['running'], 'a paused queue must claim nothing')
    await expectCounts({ waiting: 1, active: 0 }, 'a paused queue must store pushes and record outcomes')
    queue.resume()
    await claimed(seen, 2, 'a resumed queue must claim what is due')
    await drain()
  },

  'pause: before work, nothing is claimed until resume': async ({ queue, advance, work, claimed }) => {
    queue.pause()
    const seen = work(() => complete)
    await queue.push([jobOf('waits')])
    await advance(1000)
    equal(seen.length, 0, 'a paused queue must claim nothing')
    queue.resume()
    await claimed(seen, 1, 'a resumed queue must claim what is due')
  },

  'counts: oldestDueAt is the time when the oldest due job came due': async (context) => {
    const { queue, now, advance, work, drain, counts, expectCounts } = context
    await expectCounts({ oldestDueAt: undefined }, 'an empty queue has no due job')
    const start = now()
    await queue.push([jobOf('later', { notBefore: new Date(start + 5000) })])
    await expectCounts({ waiting: 1, oldestDueAt: undefined }, 'a job that waits for its time is not due')
    await advance(5000)
    await queue.push([jobOf('now')])
    const { oldestDueAt } = await counts()
    const lateMs = (oldestDueAt?.getTime() ?? 0) - start - 5000
    ok(Math.abs(lateMs) < 1000, `oldestDueAt must be the notBefore of the oldest due job. It is ${lateMs} ms off`)
    await advance(60_000)
    deepEqual((await counts()).oldestDueAt, oldestDueAt, 'oldestDueAt must stay while its job waits')
    work(() => complete)
    await drain()
    const empty = { waiting: 0, active: 0, deadLetters: 0, oldestDueAt: undefined }
    await expectCounts(empty, 'a queue whose jobs are complete must be empty')
  },

  'counts: asOf is the time when the engine counted': async ({ now, advance, counts }) => {
    await advance(5000)
    const { asOf } = await counts()
    const ageMs = now() - asOf.getTime()
    ok(asOf instanceof Date && ageMs >= 0 && ageMs < 60_000, 'asOf must be the time of the counts')
  },

  'drain: an empty queue is drained at once, without a handler': async ({ drain }) => {
    await drain()
  },

  'drain: waits for due and for claimed jobs, not for a job that waits for its time': async (context) => {
    const { queue, now, advance, hold, claimed, until, expectCounts } = context
    await queue.push([jobOf('due'), jobOf('later', { notBefore: new Date(now() + 60_000) })])
    const drained = watchDrain(queue)
    await advance(0)
    ok(!drained.is, 'drain() must wait for a due job')
    const { seen, end } = hold()
    await claimed(seen, 1)
    await advance(0)
    ok(!drained.is, 'drain() must wait for a claimed job')
    end(complete)
    await until(() => drained.is, 'drain() must resolve when no job is due and none is claimed')
    await expectCounts({ waiting: 1, active: 0, deadLetters: 0 }, 'drain() must leave a job that waits for its time')
  },

  'drain: resolves when the queue is closed': async ({ queue, until }) => {
    await queue.push([jobOf('without a handler')])
    const drained = watchDrain(queue)
    await queue.close({ graceMs: 0 })
    await until(() => drained.is, 'drain() must resolve when the queue is closed')
  },
}

/** What a handler returns that is no outcome. */
const JUNK: readonly unknown[] = [
  undefined,
  null,
  'complete',
  {},
  { complete: false },
  { retryAt: new Date(Number.NaN) },
  { retryAt: '2026-01-15' },
  { deadLetter: 5 },
  { deadLetter: '', retryState: 's' },
]

export const retryCases: Cases = {
  'retry: not before its time, counted, with the first time and the state of the last outcome': async (context) => {
    const { queue, now, advance, work, claimed, drain, expectCounts, expectEmpty } = context
    const outcomes: Outcome[] = [
      { retryAt: new Date(now() + 5000), retryState: bytes('one') },
      { retryAt: new Date(now() + 9000) },
      complete,
    ]
    const seen = work(() => outcomes.shift() as Outcome)
    await queue.push([jobOf('job')])
    await drain()
    const delayed = { ...jobOf('delayed'), notBefore: new Date(now() + 3_600_000) }
    await queue.push([delayed])
    await expectCounts({ waiting: 2, retrying: 1, active: 0, deadLetters: 0 }, 'a job that is retried later must wait')
    await queue.forget(({ id }) => id === delayed.id)
    await expectCounts({ waiting: 1, retrying: 1 }, 'a job that was forgotten must not count')
    await advance(4000)
    equal(seen.length, 1, 'a retry must not be claimed before its time')
    await advance(1000)
    await claimed(seen, 2, 'a retry must be claimed when its time has come')
    await advance(4000)
    await claimed(seen, 3, 'a retry must be claimed when its time has come')
    await drain()
    deepEqual(
      seen.map(({ claimCount }) => claimCount),
      [1, 2, 3],
      'claimCount must count the claims',
    )
    const states = seen.map(({ retryState }) => text(retryState))
    deepEqual(states, [undefined, 'one', undefined], 'retryState must be that of the last outcome')
    equal(
      new Set(seen.map(({ firstAt }) => firstAt.getTime())).size,
      1,
      'firstAt must stay the time of the first claim',
    )
    equal(new Set(seen.map(({ id }) => id)).size, 1, 'a retry must keep the id of the job')
    deepEqual(bodiesOf(seen), ['job', 'job', 'job'], 'a retry must keep the body of the job')
    await expectEmpty()
  },

  'retry: a time in the past means now, behind the jobs that are due': async (context) => {
    const { queue, now, exactOrder = true, work, drain } = context
    const seen = work((job) => {
      const isFirst = job.claimCount === 1 && text(job.body) === 'a'
      return isFirst ? { retryAt: new Date(now() - 60_000) } : complete
    }, 1)
    await queue.push([jobOf('a'), jobOf('b'), jobOf('c')])
    await drain()
    const expected = ['a', 'b', 'c', 'a']
    if (exactOrder) deepEqual(bodiesOf(seen), expected, 'a retry at once must go behind the jobs that are due')
    else deepEqual(bodiesOf(seen).sort(), expected.sort(), 'a retry at once must be claimed again')
  },

  'retry: a job that is retried at once for ever leaves the process its turn': async ({ queue, now, work, drain }) => {
    let isOver = false
    const seen = work(() => (isOver ? complete : { retryAt: new Date(now()) }))
    await queue.push([jobOf('stubborn')])
    await nextTurn()
    isOver = true
    await drain()
    equal(new Set(seen.map(({ id }) => id)).size, 1, 'a retry must keep the id of the job')
  },

  'retry: a handler that rejects is retried after a second, then two, with the state the job had': (context) =>
    expectRetried(context, () => Promise.reject(new Error('no'))),

  'retry: a handler that throws is retried after a second, then two, with the state the job had': (context) =>
    expectRetried(context, () => {
      throw new Error('no')
    }),

  'retry: a handler that rejects the first time is retried after a second, without a state': async (context) => {
    const { queue, advance, work, claimed, drain, expectCounts } = context
    const seen = work((job) => (job.claimCount === 1 ? Promise.reject(new Error('no')) : complete))
    await queue.push([jobOf('job')])
    await drain()
    await expectCounts({ waiting: 1, active: 0, deadLetters: 0 }, 'a job whose handler failed must wait')
    await advance(1000)
    await claimed(seen, 2, 'a job whose handler failed must be retried after a second')
    equal(seen[1]?.retryState, undefined, 'a job without a retryState must be retried without one')
  },

  ...Object.fromEntries(
    JUNK.map((junk) => [
      `retry: a handler that resolves to ${inspect(junk)} is retried, with the state the job had`,
      (context: TestContext) => expectRetried(context, () => junk as Outcome),
    ]),
  ),
}

/** The second and the third claim fail: a second claim's failure is retried after 2 seconds, the third after 4. */
async function expectRetried(
  { queue, now, advance, work, claimed, drain, expectEmpty }: TestContext,
  failure: () => Outcome | Promise<Outcome>,
): Promise<void> {
  const seen = work((job) => {
    if (job.claimCount === 1) return { retryAt: new Date(now()), retryState: bytes('kept') }
    return job.claimCount < 4 ? failure() : complete
  })
  await queue.push([jobOf('job')])
  await drain()
  for (const [afterMs, claimCount] of [
    [2000, 3],
    [4000, 4],
  ] as const) {
    await advance(afterMs - 1000)
    equal(seen.length, claimCount - 1, `a job whose handler failed must not be retried before ${afterMs} ms`)
    await advance(1000)
    await claimed(seen, claimCount, `a job whose handler failed must be retried after ${afterMs} ms`)
    await drain()
  }
  const states = seen.map(({ retryState }) => text(retryState))
  deepEqual(states, [undefined, 'kept', 'kept', 'kept'], 'a job whose handler failed must keep its retryState')
  await expectEmpty()
}
