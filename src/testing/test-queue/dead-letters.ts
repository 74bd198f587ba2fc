/** The rules for stored jobs: dead letters are listed, redriven as new jobs and dropped; jobs that match are forgotten. */

import { deepEqual, equal, ok } from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { ClaimedJob, Outcome, StoredJob } from '../../store/queue-types.ts'
import { bodiesOf, bytes, type Cases, complete, jobOf, large, partsOf, type TestContext, text } from './context.ts'

export const deadLetterCases: Cases = {
  'dead letters: are listed with body, reason, retryState and time, oldest first': async (context) => {
    const { queue, now, expectCounts } = context
    const { ids } = await failJobs(context, ['a', 'b'])
    const letters = await queue.deadLetters()
    deepEqual(
      letters.map(({ id, body, reason, retryState }) => [id, text(body), reason, text(retryState)]),
      [
        [ids[0], 'a', 'a failed', 'why'],
        [ids[1], 'b', 'b failed', 'why'],
      ],
    )
    for (const { failedAt } of letters)
      ok(Math.abs(now() - failedAt.getTime()) < 60_000, 'failedAt must be the time of the failure.')
    await expectCounts({ waiting: 0, active: 0, deadLetters: 2 })
  },

  'dead letters: have no retryState when their outcome had none': async ({ queue, now, work, drain }) => {
    work((job) =>
      job.claimCount === 1 ? { retryAt: new Date(now()), retryState: bytes('old') } : { deadLetter: 'no' },
    )
    await queue.push([jobOf('a')])
    await drain()
    deepEqual(
      (await queue.deadLetters()).map(({ body, retryState }) => [text(body), retryState]),
      [['a', undefined]],
    )
  },

  'dead letters: are not claimed again on their own': async (context) => {
    const { seen } = await failJobs(context, ['a'])
    await context.advance(2 * 60_000)
    equal(seen.length, 1)
  },

  'dead letters: come in pages; after one that is no longer listed, a page begins with the oldest': async (context) => {
    const { queue } = context
    const { ids } = await failJobs(context, ['a', 'b', 'c', 'd', 'e'])
    const [, b = '', , d = '', e = ''] = ids
    const expectPage = async (page: Parameters<typeof queue.deadLetters>[0], expected: readonly string[]) =>
      deepEqual(bodiesOf(await queue.deadLetters(page)), expected)
    await expectPage({ limit: 2 }, ['a', 'b'])
    await expectPage({ after: b, limit: 2 }, ['c', 'd'])
    await expectPage({ after: d, limit: 2 }, ['e'])
    await expectPage({ after: e }, [])
    await expectPage({ after: b }, ['c', 'd', 'e'])
    await queue.drop([b])
    await expectPage({ after: b }, ['a', 'c', 'd', 'e'])
  },

  'dead letters: a page ends before it exceeds maxBytes, but has at least one': async (context) => {
    const { queue } = context
    const { ids } = await failJobs(context, ['a', 'b', 'c'].map(large))
    const expectPage = async (page: Parameters<typeof queue.deadLetters>[0], expected: readonly string[]) =>
      deepEqual(bodiesOf(await queue.deadLetters(page)), expected.map(large))
    await expectPage({ maxBytes: 25_000 }, ['a', 'b'])
    await expectPage({ maxBytes: 1 }, ['a'])
    await expectPage({ maxBytes: 25_000, after: ids[1] ?? '' }, ['c'])
    await expectPage({ maxBytes: 25_000, newestFirst: true }, ['c', 'b'])
  },

  'dead letters: come newest first on request': async (context) => {
    const { queue } = context
    const { ids } = await failJobs(context, ['a', 'b', 'c'])
    const [, b = '', c = ''] = ids
    const expectPage = async (page: Parameters<typeof queue.deadLetters>[0], expected: readonly string[]) =>
      deepEqual(bodiesOf(await queue.deadLetters({ ...page, newestFirst: true })), expected)
    await expectPage({ limit: 2 }, ['c', 'b'])
    await expectPage({ after: c }, ['b', 'a'])
    await expectPage({ after: b, limit: 5 }, ['a'])
    await queue.drop([b])
    await expectPage({ after: b }, ['c', 'a'])
  },

  'dead letters: a page has a hundred when no limit is given': async ({ queue, work, drain }) => {
    work(() => ({ deadLetter: 'no' }))
    await queue.push(Array.from({ length: 101 }, (_, index) => jobOf(`${index}`)))
    await drain()
    equal((await queue.deadLetters()).length, 100)
    equal((await queue.deadLetters({ limit: 1000 })).length, 101)
  },

  'redrive: a dead letter becomes a new job, with its retry state': async (context) => {
    const { queue, now, advance, claimed, drain, expectCounts } = context
    const { seen, decide, ids } = await failJobs(context, ['a', 'b'])
    const [, id = ''] = ids
    decide(complete)
    await advance(5000)
    const before = now()
    equal(await queue.redrive([id, id, randomUUID()]), 1, 'redrive() must count each dead letter that it found once.')
    await claimed(seen, 3)
    await drain()
    const job = seen.at(-1) as ClaimedJob
    deepEqual(partsOf(job), { id, body: 'b', claimCount: 1, retryState: 'why' })
    ok(
      job.firstAt.getTime() >= before,
      'firstAt of a redriven job must be the time of the first claim after the redrive.',
    )
    await expectCounts({ waiting: 0, active: 0, deadLetters: 1 })
  },

  'redrive: takes all dead letters': async (context) => {
    const { queue, drain } = context
    const { seen, decide } = await failJobs(context, ['a', 'b', 'c'])
    decide(complete)
    equal(await queue.redrive('all'), 3)
    await drain()
    deepEqual(bodiesOf(seen.slice(3)).sort(), ['a', 'b', 'c'])
    equal(await queue.redrive('all'), 0)
  },

  'redrive: a job that fails again is listed as the newest': async (context) => {
    const { queue, drain } = context
    const { ids } = await failJobs(context, ['a', 'b'])
    await queue.redrive([ids[0] ?? ''])
    await drain()
    deepEqual(bodiesOf(await queue.deadLetters()), ['b', 'a'])
  },

  'drop: takes dead letters by age, by reason or by both': async (context) => {
    const { queue, now, advance, pushEach } = context
    const { decide } = await failJobs(context, ['a', 'b'])
    await advance(5000)
    const olderThan = new Date(now() - 2500)
    decide((job) => ({ deadLetter: `${text(job.body)} failed` }))
    await pushEach([jobOf('a'), jobOf('c')])
    const expectDropped = async (filter: Parameters<typeof queue.drop>[0], count: number, left: readonly string[]) => {
      equal(await queue.drop(filter), count)
      deepEqual(bodiesOf(await queue.deadLetters()), left)
    }
    await expectDropped({ olderThan: new Date(now() - 60 * 60_000) }, 0, ['a', 'b', 'a', 'c'])
    await expectDropped({ olderThan, reason: 'a failed' }, 1, ['b', 'a', 'c'])
    await expectDropped({ reason: 'a failed' }, 1, ['b', 'c'])
    await expectDropped({ olderThan }, 1, ['c'])
    await expectDropped({ matches: ({ body }) => text(body) === 'b' }, 0, ['c'])
    await expectDropped({ matches: ({ body }) => text(body) === 'c' }, 1, [])
  },

  'drop: forgets a dead letter and its id': async (context) => {
    const { queue, drain, expectCounts } = context
    const { ids } = await failJobs(context, ['a', 'b', 'c'])
    const [id = ''] = ids
    equal(await queue.drop([id, id, randomUUID()]), 1, 'drop() must count each dead letter that it found once.')
    deepEqual(bodiesOf(await queue.deadLetters()), ['b', 'c'])
    equal(await queue.drop('all'), 2)
    await expectCounts()
    await queue.push([{ id, body: bytes('a') }])
    await drain()
    await expectCounts({ deadLetters: 1 })
  },

  'forget: an empty queue has nothing to forget': async ({ queue }) => {
    deepEqual(await queue.forget(() => true), { deleted: 0, active: 0 })
  },

  'forget: deletes matching dead letters and waiting jobs, due or not': async (context) => {
    const { queue, now, advance, work, pushEach, claimed, drain, expectCounts } = context
    const decide = ({ body }: StoredJob): Outcome => {
      if (text(body)?.endsWith('fails')) return { deadLetter: 'no' }
      return text(body)?.endsWith('retried') ? { retryAt: new Date(now() + 5000), retryState: body } : complete()
    }
    const seen = work((job) => (job.claimCount === 1 ? decide(job) : complete()), 1)
    await pushEach(['ada fails', 'bob fails', 'ada retried', 'bob retried'].map((body) => jobOf(body)))
    void queue.pause()
    const notBefore = new Date(now() + 5000)
    await queue.push([jobOf('ada later', { notBefore }), jobOf('bob later', { notBefore })])
    await queue.push([jobOf('ada due'), jobOf('bob due'), jobOf('ada due, too')])
    await expectCounts({ waiting: 7, active: 0, deadLetters: 2 })
    deepEqual(await queue.forget(isOfAda), { deleted: 5, active: 0 })
    await expectCounts({ waiting: 3, active: 0, deadLetters: 1 })
    deepEqual(bodiesOf(await queue.deadLetters()), ['bob fails'])
    equal((await queue.forget(isOfAda)).deleted, 0)
    const before = seen.length
    queue.resume()
    await advance(5000)
    await claimed(seen, before + 3)
    await drain()
    deepEqual(bodiesOf(seen.slice(before)).sort(), ['bob due', 'bob later', 'bob retried'])
  },

  'forget: matches by id, and a forgotten id is accepted again': async ({ queue, work, drain, expectCounts }) => {
    const [job, other] = [jobOf('a'), jobOf('b')]
    await queue.push([job, other])
    deepEqual(await queue.forget(({ id }) => id === job.id), { deleted: 1, active: 0 })
    await expectCounts({ waiting: 1 })
    await queue.push([job])
    const seen = work()
    await drain()
    deepEqual(bodiesOf(seen).sort(), ['a', 'b'])
  },

  'forget: leaves a claimed job to its handler, and deletes it when it waits again': async (context) => {
    const { queue, now, hold, run, drain, expectCounts } = context
    const { seen, end } = hold()
    await run(seen, 'ada')
    deepEqual(await queue.forget(isOfAda), { deleted: 0, active: 1 })
    await expectCounts({ active: 1 })
    end({ retryAt: new Date(now() + 60_000) })
    await drain()
    await expectCounts({ waiting: 1, active: 0 })
    deepEqual(await queue.forget(isOfAda), { deleted: 1, active: 0 })
    await expectCounts()
  },

  'forget: finds matching jobs among many': async ({ queue, expectCounts }) => {
    const bodies = Array.from({ length: 1_200 }, (_, index) => (index % 400 === 399 ? `ada ${index}` : `bob ${index}`))
    await queue.push(bodies.map((body) => jobOf(body)))
    deepEqual(await queue.forget(isOfAda), { deleted: 3, active: 0 })
    await expectCounts({ waiting: 1_197 })
  },

  'forget: a drain does not wait for forgotten jobs': async ({ queue, advance, begin }) => {
    await queue.push([jobOf('ada')])
    const draining = begin(queue.drain())
    await advance(0)
    ok(!draining.isOver, 'drain() must wait for a due job.')
    await queue.forget(isOfAda)
    await draining.waitForEnd()
  },
}

/** Pushes jobs one after the other, a moment apart, and makes each a dead letter. Call `decide` to give later claims another outcome. */
async function failJobs({ work, pushEach }: TestContext, bodies: readonly string[]) {
  let outcome = (job: ClaimedJob): Outcome => ({ deadLetter: `${text(job.body)} failed`, retryState: bytes('why') })
  const seen = work((job) => outcome(job), 1)
  const jobs = bodies.map((body) => jobOf(body))
  await pushEach(jobs)
  const decide = (next: typeof outcome): void => {
    outcome = next
  }
  return { seen, ids: jobs.map(({ id }) => id), decide }
}

const isOfAda = ({ body }: StoredJob): boolean => text(body)?.startsWith('ada') === true
