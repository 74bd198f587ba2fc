/** The rules for push and work: each job is stored once, reaches the handler as it was pushed, and is retried as its outcome says. */

import { deepEqual, equal, ok, rejects } from 'node:assert/strict'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { inspect } from 'node:util'
import type { ClaimedJob, Outcome } from '../../store/queue-types.ts'
import {
  bodiesOf,
  bytes,
  type Cases,
  complete,
  type Decide,
  jobOf,
  never,
  partsOf,
  type Seen,
  type TestContext,
  text,
} from './context.ts'

/** A state of a job in which another push with its id changes nothing. */
interface KnownState {
  readonly rule: string
  /** Brings the job, the only one in the queue, into the state. Resolves to the jobs that a handler has seen. */
  readonly reach: (context: TestContext) => Promise<Seen>
  /** Whether the id is still known after the dedupe window. */
  readonly isKnownForever: boolean
}

const KNOWN: readonly KnownState[] = [
  {
    rule: 'a job that waits changes nothing, whatever the dedupe window',
    reach: async () => [],
    isKnownForever: true,
  },
  {
    rule: 'a claimed job changes nothing',
    async reach({ work, claimed }) {
      const seen = work(never)
      await claimed(seen, 1)
      return seen
    },
    isKnownForever: false,
  },
  {
    rule: 'a completed job changes nothing within the dedupe window',
    reach: (context) => handleAll(context, complete),
    isKnownForever: false,
  },
  {
    rule: 'a dead letter changes nothing, whatever the dedupe window',
    reach: (context) => handleAll(context, () => ({ deadLetter: 'no' })),
    isKnownForever: true,
  },
]

async function handleAll({ work, drain }: TestContext, decide: Decide): Promise<Seen> {
  const seen = work(decide)
  await drain()
  return seen
}

/**
 * Pushes a job, brings it into the state, and pushes its id twice more. The second of these pushes comes after the window if the id is
 * known forever.
 */
async function expectKnown(context: TestContext, { reach, isKnownForever }: KnownState): Promise<void> {
  const { queue, advance, counts, expectCounts, dedupeWindowMs } = context
  const job = jobOf('first')
  deepEqual((await queue.push([job])) ?? [], [])
  const seen = await reach(context)
  const { waiting, active, deadLetters } = await counts()
  for (const afterMs of [0, isKnownForever ? dedupeWindowMs + 1000 : 0]) {
    await advance(afterMs)
    deepEqual((await queue.push([{ ...job, body: bytes('second') }])) ?? [job.id], [job.id])
    await advance(0)
    await expectCounts({ waiting, active, deadLetters })
    ok(!bodiesOf(seen).includes('second'), 'A push of a known id must not be handled.')
  }
}

export const pushCases: Cases = {
  'push: a job reaches its handler with its id and its exact bytes, claimed for the first time': async (context) => {
    const { queue, now, work, drain } = context
    const seen = work()
    const bodies = [bytes('\u0000 é 🎉'), new Uint8Array(), Uint8Array.from({ length: 256 }, (_, index) => index)]
    const before = now()
    const jobs = bodies.map((body) => ({ ...jobOf(''), body }))
    await queue.push(jobs)
    await drain()
    equal(seen.length, jobs.length)
    for (const { id, body } of jobs) {
      const { firstAt, dueAt, ...claimed } = seen.find((job) => job.id === id) as ClaimedJob
      deepEqual([...claimed.body], [...body])
      deepEqual([claimed.claimCount, claimed.retryState], [1, undefined])
      const times = [before, dueAt?.getTime() ?? 0, firstAt.getTime(), now()]
      deepEqual(
        times,
        times.toSorted(),
        'A job must be due at its push, and firstAt must be the time of its first claim.',
      )
    }
  },

  'push: an empty list stores nothing': async ({ queue, expectCounts }) => {
    await queue.push([])
    await expectCounts()
  },

  'push: anything that is not a transaction is refused with a TypeError, and nothing is stored': async (context) => {
    for (const db of [undefined, null, 'postgres://localhost', {}]) {
      await rejects(
        context.queue.push([jobOf('outside')], { db } as never),
        (error) => error instanceof TypeError && error.message.includes('db'),
      )
    }
    await context.expectCounts()
  },

  'push: jobs wait for a handler': async ({ queue, work, drain, expectCounts }) => {
    await queue.push([jobOf('a')])
    await queue.push([jobOf('b')])
    await expectCounts({ waiting: 2, active: 0, deadLetters: 0 })
    const seen = work()
    await drain()
    deepEqual(bodiesOf(seen).sort(), ['a', 'b'])
  },

  'push: when an id occurs twice in one call, only the first job is stored': async ({ queue, work, drain }) => {
    const job = jobOf('first')
    await queue.push([job, { ...job, body: bytes('second') }])
    const seen = work()
    await drain()
    deepEqual(bodiesOf(seen), ['first'])
  },

  'push: new jobs beside a known id are stored': async ({ queue, expectCounts }) => {
    const job = jobOf('known')
    await queue.push([job])
    await queue.push([job, jobOf('new')])
    await expectCounts({ waiting: 2 })
  },

  ...Object.fromEntries(
    KNOWN.map((state) => [`push: the id of ${state.rule}`, (context: TestContext) => expectKnown(context, state)]),
  ),

  // Engines may count the window from the push or from the completion. Here, a retry lies between the two.
  'push: an id is known for the dedupe window, and accepted again after it': async (context) => {
    const { queue, now, advance, dedupeWindowMs, work, claimed, drain } = context
    const seen = work((job) =>
      job.claimCount === 1 && seen.length === 1 ? { retryAt: new Date(now() + 5000) } : complete(),
    )
    const job = jobOf('again')
    await queue.push([job])
    await drain()
    await advance(5000)
    await claimed(seen, 2)
    await drain()
    await advance(dedupeWindowMs - 6000) // Since the push, 1 second less than the window has passed.
    await queue.push([job])
    await drain()
    equal(seen.length, 2, 'A push within the dedupe window must change nothing.')
    await advance(6000)
    await queue.push([job])
    await drain()
    equal(seen.length, 3, 'A push after the dedupe window must be accepted.')
    equal(seen[2]?.claimCount, 1)
  },
}

export const workCases: Cases = {
  'work: as many jobs run at a time as the concurrency says': async (context) => {
    const { queue, work, claimed, drain, expectCounts } = context
    let [running, mostRunning] = [0, 0]
    const ends: (() => void)[] = []
    const seen = work(async () => {
      running += 1
      mostRunning = Math.max(mostRunning, running)
      await new Promise<void>((resolve) => ends.push(resolve))
      running -= 1
      return complete()
    }, 3)
    await queue.push(Array.from({ length: 20 }, (_, index) => jobOf(`${index}`)))
    await claimed(seen, 3)
    await expectCounts({ waiting: 17, active: 3, deadLetters: 0 })
    for (let next = 4; next <= 20; next += 1) {
      ends.shift()?.()
      await claimed(seen, next)
    }
    for (const end of ends) end()
    await drain()
    deepEqual([mostRunning, seen.length], [3, 20])
    await expectCounts()
  },

  'work: jobs are claimed roughly oldest first': async ({ queue, work, drain }) => {
    for (const body of ['a', 'b', 'c', 'd', 'e']) await queue.push([jobOf(body)])
    const seen = work(complete, 1)
    await drain()
    deepEqual(bodiesOf(seen), ['a', 'b', 'c', 'd', 'e'])
  },

  'work: an engine with an exact order claims jobs in the order in which they came due': async (context) => {
    const { queue, now, advance, work, drain } = context
    const dueIn = (body: string, ms: number) => jobOf(body, { notBefore: new Date(now() + ms) })
    await queue.push([dueIn('third', 3000), dueIn('first', 1000)])
    await queue.push([dueIn('second', 2000), jobOf('zeroth')])
    await advance(3000)
    await queue.push([jobOf('fourth')])
    const seen = work(complete, 1)
    await drain()
    expectOrder(context, seen, ['zeroth', 'first', 'second', 'third', 'fourth'])
  },

  'work: no job is claimed before its time, nor held up by one that waits': async (context) => {
    const { queue, now, advance, work, claimed } = context
    const seen = work()
    await queue.push([jobOf('later', { notBefore: new Date(now() + 60_000) })])
    await advance(0)
    await queue.push([jobOf('sooner', { notBefore: new Date(now() + 5000) })])
    await advance(4000)
    equal(seen.length, 0)
    await advance(1000)
    await claimed(seen, 1)
    deepEqual(bodiesOf(seen), ['sooner'])
  },

  'pause: nothing more is claimed until resume, running jobs go on and pushes are stored': async (context) => {
    const { queue, advance, hold, claimed, run, drain, expectCounts } = context
    const { seen, end } = hold(1)
    await run(seen)
    let isOver = false
    const pausing = queue.pause().then(() => {
      isOver = true
    })
    await queue.push([jobOf('waits')])
    await advance(1000)
    ok(!isOver, 'pause() must resolve only when no job is claimed any more.')
    end(complete())
    await pausing
    await expectCounts({ waiting: 1, active: 0 })
    await advance(5000)
    deepEqual(bodiesOf(seen), ['running'])
    await expectCounts({ waiting: 1, active: 0 })
    queue.resume()
    await claimed(seen, 2)
    await drain()
  },

  'pause: before work, nothing is claimed until resume': async ({ queue, advance, work, claimed }) => {
    void queue.pause()
    const seen = work()
    await queue.push([jobOf('waits')])
    await advance(1000)
    equal(seen.length, 0)
    queue.resume()
    await claimed(seen, 1)
  },

  'counts: oldestDueAt is the time when the oldest due job came due': async (context) => {
    const { queue, now, advance, work, drain, counts, expectCounts } = context
    await expectCounts({ oldestDueAt: undefined })
    const start = now()
    await queue.push([jobOf('later', { notBefore: new Date(start + 5000) })])
    await expectCounts({ waiting: 1, oldestDueAt: undefined })
    await advance(5000)
    await queue.push([jobOf('now')])
    const { oldestDueAt } = await counts()
    const lateMs = (oldestDueAt?.getTime() ?? 0) - start - 5000
    ok(Math.abs(lateMs) < 1000, `oldestDueAt must be the notBefore of the oldest due job. It differs by ${lateMs} ms.`)
    await advance(60_000)
    deepEqual((await counts()).oldestDueAt, oldestDueAt, 'oldestDueAt must stay the same while its job waits.')
    work()
    await drain()
    await expectCounts({ waiting: 0, active: 0, deadLetters: 0, oldestDueAt: undefined })
  },

  'counts: asOf is the time when the engine counted': async ({ now, advance, counts }) => {
    await advance(5000)
    const { asOf } = await counts()
    const ageMs = now() - asOf.getTime()
    ok(ageMs >= 0 && ageMs < 60_000, `asOf must be the time of the counts. It is ${ageMs} ms ago.`)
  },

  'drain: an empty queue is drained at once, without a handler': ({ drain }) => drain(),

  'drain: waits for due and for claimed jobs, not for a job that waits for its time': async (context) => {
    const { queue, now, advance, hold, claimed, begin, expectCounts } = context
    await queue.push([jobOf('due'), jobOf('later', { notBefore: new Date(now() + 60_000) })])
    const draining = begin(queue.drain())
    await advance(0)
    ok(!draining.isOver, 'drain() must wait for a due job.')
    const { seen, end } = hold()
    await claimed(seen, 1)
    await advance(0)
    ok(!draining.isOver, 'drain() must wait for a claimed job.')
    end(complete())
    await draining.waitForEnd()
    await expectCounts({ waiting: 1, active: 0, deadLetters: 0 })
  },

  'drain: resolves when the queue is closed': async ({ queue, begin }) => {
    await queue.push([jobOf('without a handler')])
    const draining = begin(queue.drain())
    await queue.close({ graceMs: 0 })
    await draining.waitForEnd()
  },
}

function expectOrder({ exactOrder }: TestContext, seen: Seen, bodies: readonly string[]): void {
  const found = bodiesOf(seen)
  deepEqual(exactOrder ? found : found.sort(), exactOrder ? bodies : bodies.toSorted())
}

/** A job that is claimed this many times in one turn of the event loop is taken to be claimed endlessly. */
const MANY = 10_000

/** Handlers that fail to return an outcome. */
const FAILURES: readonly (readonly [name: string, fail: () => Outcome | Promise<Outcome>])[] = [
  ['rejects', () => Promise.reject(new Error('This handler rejects on purpose.'))],
  [
    'throws',
    () => {
      throw new Error('This handler throws on purpose.')
    },
  ],
  ...[
    undefined,
    null,
    'complete',
    {},
    { complete: false },
    { retryAt: new Date(Number.NaN) },
    { retryAt: '2026-01-15' },
    { deadLetter: 5 },
    { deadLetter: '', retryState: 's' },
  ].map((junk) => [`resolves to ${inspect(junk)}`, () => junk as Outcome] as const),
]

export const retryCases: Cases = {
  'retry: not before its time, counted, with the first time and the state of the last outcome': async (context) => {
    const { queue, now, advance, work, claimed, drain, expectCounts } = context
    const outcomes: Outcome[] = [
      { retryAt: new Date(now() + 5000), retryState: bytes('one') },
      { retryAt: new Date(now() + 9000) },
    ]
    const seen = work(() => outcomes.shift() ?? complete())
    const job = jobOf('job')
    await queue.push([job])
    await drain()
    const delayed = jobOf('delayed', { notBefore: new Date(now() + 3_600_000) })
    await queue.push([delayed])
    await expectCounts({ waiting: 2, retrying: 1, active: 0, deadLetters: 0 })
    await queue.forget(({ id }) => id === delayed.id)
    await expectCounts({ waiting: 1, retrying: 1 })
    for (const [claimsBefore, afterMs] of [
      [1, 5000],
      [2, 4000],
    ] as const) {
      await advance(afterMs - 1000)
      equal(seen.length, claimsBefore, 'A retry must not be claimed before its time.')
      await advance(1000)
      await claimed(seen, claimsBefore + 1)
    }
    await drain()
    const states = [undefined, 'one', undefined]
    deepEqual(
      seen.map(partsOf),
      states.map((retryState, index) => ({ id: job.id, body: 'job', claimCount: index + 1, retryState })),
    )
    equal(
      new Set(seen.map(({ firstAt }) => firstAt.getTime())).size,
      1,
      'firstAt must stay the time of the first claim.',
    )
    await expectCounts()
  },

  'retry: a time in the past means now, behind the jobs that are due': async (context) => {
    const { queue, now, work, drain } = context
    const seen = work((job) => {
      const isFirst = job.claimCount === 1 && text(job.body) === 'a'
      return isFirst ? { retryAt: new Date(now() - 60_000) } : complete()
    }, 1)
    await queue.push([jobOf('a'), jobOf('b'), jobOf('c')])
    await drain()
    expectOrder(context, seen, ['a', 'b', 'c', 'a'])
  },

  'retry: a job that is retried at once for ever leaves the process its turns': async ({ queue, now, work, drain }) => {
    let isOver = false
    const seen = work(() => (isOver || seen.length === MANY ? complete() : { retryAt: new Date(now()) }))
    await queue.push([jobOf('stubborn')])
    await nextTurn()
    isOver = true
    await drain()
    ok(seen.length < MANY, 'Other code must run between two retries.')
    equal(new Set(seen.map(({ id }) => id)).size, 1)
  },

  'retry: a handler that rejects the first time is retried after a second, without a state': async (context) => {
    const { queue, advance, work, claimed, drain, expectCounts } = context
    const seen = work((job) =>
      job.claimCount === 1 ? Promise.reject(new Error('This handler rejects on purpose.')) : complete(),
    )
    await queue.push([jobOf('job')])
    await drain()
    await expectCounts({ waiting: 1, active: 0, deadLetters: 0 })
    await advance(1000)
    await claimed(seen, 2)
    equal(seen[1]?.retryState, undefined)
  },

  ...Object.fromEntries(
    FAILURES.map(([what, fail]) => [
      `retry: a handler that ${what} is retried after two seconds, then four, with the state the job had`,
      (context: TestContext) => expectRetried(context, fail),
    ]),
  ),
}

/** Checks the claims of one job: claim 1 stores a state; claims 2 and 3 fail; claim 4 completes the job. */
async function expectRetried(
  { queue, now, advance, work, claimed, drain, expectCounts }: TestContext,
  fail: () => Outcome | Promise<Outcome>,
): Promise<void> {
  const seen = work((job) => {
    if (job.claimCount === 1) return { retryAt: new Date(now()), retryState: bytes('kept') }
    return job.claimCount < 4 ? fail() : complete()
  })
  await queue.push([jobOf('job')])
  await drain()
  for (const [claimsBefore, afterMs] of [
    [2, 2000],
    [3, 4000],
  ] as const) {
    await advance(afterMs - 1000)
    equal(seen.length, claimsBefore, `The job must not be retried before ${afterMs} ms have passed.`)
    await advance(1000)
    await claimed(seen, claimsBefore + 1)
    await drain()
  }
  deepEqual(
    seen.map(({ retryState }) => text(retryState)),
    [undefined, 'kept', 'kept', 'kept'],
  )
  await expectCounts()
}
