/** What a queue promises of what it keeps: dead letters are listed, redriven as new jobs and dropped; what matches is forgotten. */

import { deepEqual, equal, ok } from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { ClaimedJob, Outcome, StoredJob } from '../../queues/queue.ts'
import { bodiesOf, bytes, type Cases, complete, jobOf, type TestContext, text, watchDrain } from './context.ts'

export const deadLetterCases: Cases = {
  'dead letters: are listed with body, reason, retryState and time, the oldest first': async (context) => {
    const { queue, now, expectCounts } = context
    const { ids } = await failJobs(context, ['a', 'b'])
    const letters = await queue.deadLetters()
    deepEqual(
      letters.map(({ id }) => id),
      ids,
      'dead letters must be listed by id, the oldest first',
    )
    deepEqual(
      letters.map(({ body, reason, retryState }) => [text(body), reason, text(retryState)]),
      [
        ['a', 'a failed', 'why'],
        ['b', 'b failed', 'why'],
      ],
      'a dead letter must have the body of its job, and the reason and the retryState of its outcome',
    )
    for (const { failedAt } of letters) {
      ok(Math.abs(now() - failedAt.getTime()) < 60_000, 'failedAt must be the time of the outcome')
    }
    await expectCounts({ waiting: 0, active: 0, deadLetters: 2 }, 'dead letters must count as such')
  },

  'dead letters: have no retryState when their outcome had none': async ({ queue, now, work, drain }) => {
    work((job) =>
      job.claimCount === 1 ? { retryAt: new Date(now()), retryState: bytes('old') } : { deadLetter: 'no' },
    )
    await queue.push([jobOf('a')])
    await drain()
    const letters = await queue.deadLetters()
    deepEqual(bodiesOf(letters), ['a'], 'a dead letter must be listed')
    equal(letters[0]?.retryState, undefined, 'a dead letter must have the retryState of its last outcome only')
  },

  'dead letters: are not claimed again by themselves': async (context) => {
    const { advance } = context
    const { seen } = await failJobs(context, ['a'])
    await advance(2 * 60_000)
    equal(seen.length, 1, 'a dead letter must not be handled until it is redriven')
  },

  'dead letters: come in pages': async (context) => {
    const { queue } = context
    const { ids } = await failJobs(context, ['a', 'b', 'c', 'd', 'e'])
    const [, b = '', , d = '', e = ''] = ids
    const expectPage = async (page: Parameters<typeof queue.deadLetters>[0], expected: readonly string[]) =>
      deepEqual(bodiesOf(await queue.deadLetters(page)), expected, 'a page must hold the letters after `after`')
    await expectPage({ limit: 2 }, ['a', 'b'])
    await expectPage({ after: b, limit: 2 }, ['c', 'd'])
    await expectPage({ after: d, limit: 2 }, ['e'])
    await expectPage({ after: e }, [])
    await expectPage({ after: b }, ['c', 'd', 'e'])
  },

  'dead letters: a page after one that is not listed any more begins with the oldest': async (context) => {
    const { queue } = context
    const { ids } = await failJobs(context, ['a', 'b', 'c'])
    await queue.drop([ids[1] ?? ''])
    const page = bodiesOf(await queue.deadLetters({ after: ids[1] ?? '' }))
    deepEqual(page, ['a', 'c'], 'a page after an unknown id must begin with the oldest dead letter')
  },

  'dead letters: a page has a hundred when no limit is given': async ({ queue, work, drain }) => {
    work(() => ({ deadLetter: 'no' }))
    await queue.push(Array.from({ length: 101 }, (_, index) => jobOf(`${index}`)))
    await drain()
    equal((await queue.deadLetters()).length, 100, 'a page must hold 100 dead letters by default')
    equal((await queue.deadLetters({ limit: 1000 })).length, 101, 'a page must hold up to `limit` dead letters')
  },

  'redrive: a dead letter becomes a new job': async (context) => {
    const { queue, now, advance, claimed, drain, expectCounts } = context
    const { seen, decide, ids } = await failJobs(context, ['a', 'b'])
    decide(() => complete)
    await advance(5000)
    const before = now()
    const redriven = await queue.redrive([ids[1] ?? '', ids[1] ?? '', randomUUID()])
    equal(redriven, 1, 'redrive() must count the dead letters it found, each once')
    await claimed(seen, 3, 'a redriven job must be claimed')
    await drain()
    const job = seen.at(-1) as ClaimedJob
    equal(job.id, ids[1], 'a redriven job must keep its id')
    equal(text(job.body), 'b', 'a redriven job must keep its body')
    equal(job.claimCount, 1, 'a redriven job must begin with the claimCount 1')
    equal(job.retryState, undefined, 'a redriven job must begin without a retryState')
    ok(job.firstAt.getTime() >= before, 'firstAt of a redriven job must be the first claim after the redrive')
    await expectCounts({ waiting: 0, active: 0, deadLetters: 1 }, 'a redriven job must not be listed')
  },

  'redrive: takes all': async (context) => {
    const { queue, drain } = context
    const { seen, decide } = await failJobs(context, ['a', 'b', 'c'])
    decide(() => complete)
    equal(await queue.redrive('all'), 3, "redrive('all') must redrive each dead letter")
    await drain()
    deepEqual(bodiesOf(seen.slice(3)).sort(), ['a', 'b', 'c'], 'redriven jobs must be handled')
    equal(await queue.redrive('all'), 0, 'a redriven job must not be listed')
  },

  'redrive: a job that fails again is listed as the newest': async (context) => {
    const { queue, drain } = context
    const { ids } = await failJobs(context, ['a', 'b'])
    await queue.redrive([ids[0] ?? ''])
    await drain()
    deepEqual(bodiesOf(await queue.deadLetters()), ['b', 'a'], 'a job that failed again must be the newest dead letter')
  },

  'drop: takes dead letters by age, by reason, and by both': async (context) => {
    const { queue, now, advance, pushEach } = context
    const { decide } = await failJobs(context, ['a', 'b'])
    await advance(5000)
    const olderThan = new Date(now() - 2500)
    decide((job) => ({ deadLetter: `${text(job.body)} failed` }))
    await pushEach([jobOf('a'), jobOf('c')])
    const expectLeft = async (expected: readonly string[], rule: string) =>
      deepEqual(bodiesOf(await queue.deadLetters()), expected, rule)
    equal(await queue.drop({ olderThan: new Date(now() - 60 * 60_000) }), 0, 'drop() must leave what failed later')
    equal(await queue.drop({ olderThan, reason: 'a failed' }), 1, 'drop() must take what is both as old and failed so')
    await expectLeft(['b', 'a', 'c'], 'drop() must leave what does not match all that is given')
    equal(await queue.drop({ reason: 'a failed' }), 1, 'drop() must take what has the reason, whatever its age')
    await expectLeft(['b', 'c'], 'drop() must leave what has another reason')
    equal(await queue.drop({ olderThan }), 1, 'drop() must take what failed before the time, whatever its reason')
    await expectLeft(['c'], 'drop() must leave what failed later')
    equal(await queue.drop({ matches: ({ body }) => text(body) === 'b' }), 0, 'drop() must leave what does not match')
    equal(await queue.drop({ matches: ({ body }) => text(body) === 'c' }), 1, 'drop() must take what matches')
  },

  'drop: forgets a dead letter and its id': async (context) => {
    const { queue, drain, expectCounts, expectEmpty } = context
    const { ids } = await failJobs(context, ['a', 'b', 'c'])
    const dropped = await queue.drop([ids[0] ?? '', ids[0] ?? '', randomUUID()])
    equal(dropped, 1, 'drop() must count the dead letters it found, each once')
    deepEqual(bodiesOf(await queue.deadLetters()), ['b', 'c'], 'a dropped dead letter must not be listed')
    equal(await queue.drop('all'), 2, "drop('all') must drop each dead letter")
    await expectEmpty('a dropped dead letter must not count')
    await queue.push([{ id: ids[0] ?? '', body: bytes('a') }])
    await drain()
    await expectCounts({ deadLetters: 1 }, 'the id of a dropped dead letter must be accepted again')
  },

  'forget: an empty queue has nothing to forget': async ({ queue }) => {
    deepEqual(await queue.forget(() => true), { deleted: 0, active: 0 }, 'forget() must return how many it deleted')
  },

  'forget: deletes what matches of the jobs that wait, due or not, and of the dead letters': async (context) => {
    const { queue, now, advance, work, pushEach, drain, until, expectCounts } = context
    const decide = ({ body }: StoredJob): Outcome => {
      if (text(body)?.endsWith('fails')) return { deadLetter: 'no' }
      return text(body)?.endsWith('retried') ? { retryAt: new Date(now() + 5000), retryState: body } : complete
    }
    const seen = work((job) => (job.claimCount === 1 ? decide(job) : complete), 1)
    await pushEach(['ada fails', 'bob fails', 'ada retried', 'bob retried'].map((body) => jobOf(body)))
    queue.pause()
    const notBefore = new Date(now() + 5000)
    await queue.push([jobOf('ada later', { notBefore }), jobOf('bob later', { notBefore })])
    await queue.push([jobOf('ada due'), jobOf('bob due'), jobOf('ada due, too')])
    await expectCounts({ waiting: 7, active: 0, deadLetters: 2 }, 'jobs must wait while a queue is paused')
    const forgotten = await queue.forget(isOfAda)
    deepEqual(forgotten, { deleted: 5, active: 0 }, 'forget() must count the jobs and the dead letters that it deleted')
    await expectCounts({ waiting: 3, active: 0, deadLetters: 1 }, 'forget() must leave what does not match')
    deepEqual(bodiesOf(await queue.deadLetters()), ['bob fails'], 'a forgotten dead letter must not be listed')
    equal((await queue.forget(isOfAda)).deleted, 0, 'forget() must delete all that matches')
    const before = seen.length
    queue.resume()
    await advance(5000)
    await until(() => seen.length >= before + 3, 'jobs that do not match must be handled')
    await drain()
    const later = bodiesOf(seen.slice(before)).sort()
    deepEqual(later, ['bob due', 'bob later', 'bob retried'], 'a forgotten job must not be handled')
  },

  'forget: matches by id, and a forgotten id is accepted again': async ({ queue, work, drain, expectCounts }) => {
    const [job, other] = [jobOf('a'), jobOf('b')]
    await queue.push([job, other])
    const forgotten = await queue.forget(({ id }) => id === job.id)
    deepEqual(forgotten, { deleted: 1, active: 0 }, 'forget() must pass the id of each job')
    await expectCounts({ waiting: 1 }, 'forget() must delete what matches')
    await queue.push([job])
    const seen = work(() => complete)
    await drain()
    deepEqual(bodiesOf(seen).sort(), ['a', 'b'], 'the id of a forgotten job must be accepted again')
  },

  'forget: leaves a claimed job to its handler, and deletes it when it waits again': async (context) => {
    const { queue, now, hold, run, drain, expectCounts, expectEmpty } = context
    const { seen, end } = hold()
    await run(seen, 'ada')
    const running = await queue.forget(isOfAda)
    deepEqual(running, { deleted: 0, active: 1 }, 'forget() must count a claimed job that matches as active')
    await expectCounts({ active: 1 }, 'forget() must leave a claimed job')
    end({ retryAt: new Date(now() + 60_000) })
    await drain()
    await expectCounts({ waiting: 1, active: 0 }, 'an outcome after forget() must be recorded')
    const waiting = await queue.forget(isOfAda)
    deepEqual(waiting, { deleted: 1, active: 0 }, 'forget() must delete a job that waits for its retry')
    await expectEmpty('a forgotten job must not count')
  },

  'forget: finds what matches among many': async ({ queue, expectCounts }) => {
    const bodies = Array.from({ length: 1_200 }, (_, index) => (index % 400 === 399 ? `ada ${index}` : `bob ${index}`))
    await queue.push(bodies.map((body) => jobOf(body)))
    const forgotten = await queue.forget(isOfAda)
    deepEqual(forgotten, { deleted: 3, active: 0 }, 'forget() must look at every job that waits')
    await expectCounts({ waiting: 1_197 }, 'forget() must leave what does not match')
  },

  'forget: a drain does not wait for what was forgotten': async ({ queue, advance, until }) => {
    await queue.push([jobOf('ada')])
    const drained = watchDrain(queue)
    await advance(0)
    equal(drained.is, false, 'drain() must wait for a due job')
    await queue.forget(isOfAda)
    await until(() => drained.is, 'drain() must resolve when no job is due any more')
  },
}

/** Pushes jobs and makes each a dead letter, one after the other, a moment apart. `decide` replaces the handler's answer. */
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
