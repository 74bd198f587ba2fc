/** What a retry promises: not before its time, with its state, and none lost by a handler that fails. */

import { deepEqual, equal } from 'node:assert/strict'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { inspect } from 'node:util'
import type { Outcome } from '../../queues/queue.ts'
import { bodiesOf, bytes, type Cases, complete, jobOf, type TestContext, text } from './context.ts'

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
  'retry: not before its time, counted, with the first time and the state of the last outcome': async ({
    queue,
    now,
    advance,
    work,
    drain,
    until,
    expectCounts,
  }) => {
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
    await until(() => seen.length === 2, 'a retry must be claimed when its time has come')
    await advance(4000)
    await until(() => seen.length === 3, 'a retry must be claimed when its time has come')
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
    await expectCounts({ waiting: 0, active: 0, deadLetters: 0 }, 'a completed job must not count')
  },

  'retry: a time in the past means now, behind the jobs that are due': async ({
    queue,
    now,
    work,
    drain,
    exactOrder = true,
  }) => {
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

  'retry: a handler that rejects the first time is retried after a second, without a state': async ({
    queue,
    advance,
    work,
    drain,
    until,
    expectCounts,
  }) => {
    const seen = work((job) => (job.claimCount === 1 ? Promise.reject(new Error('no')) : complete))
    await queue.push([jobOf('job')])
    await drain()
    await expectCounts({ waiting: 1, active: 0, deadLetters: 0 }, 'a job whose handler failed must wait')
    await advance(1000)
    await until(() => seen.length === 2, 'a job whose handler failed must be retried after a second')
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
  { queue, now, advance, work, drain, until, expectCounts }: TestContext,
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
    await until(() => seen.length === claimCount, `a job whose handler failed must be retried after ${afterMs} ms`)
    await drain()
  }
  const states = seen.map(({ retryState }) => text(retryState))
  deepEqual(states, [undefined, 'kept', 'kept', 'kept'], 'a job whose handler failed must keep its retryState')
  await expectCounts({ waiting: 0, active: 0, deadLetters: 0 }, 'a completed job must not count')
}
