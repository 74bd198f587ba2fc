/** What a queue promises of its dead letters: they are listed, redriven as new jobs, and dropped. */

import { deepEqual, equal, ok } from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { ClaimedJob, Outcome } from '../../queues/queue.ts'
import { bodiesOf, bytes, type Cases, complete, jobOf, type TestContext, text } from './context.ts'

export const deadLetterCases: Cases = {
  'dead letters: are listed with body, reason, retryState and time, the oldest first': async (context) => {
    const { ids } = await failJobs(context, ['a', 'b'])
    const letters = await context.queue.deadLetters()
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
      ok(Math.abs(context.now() - failedAt.getTime()) < 60_000, 'failedAt must be the time of the outcome')
    }
    await context.expectCounts({ waiting: 0, active: 0, deadLetters: 2 }, 'dead letters must count as such')
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
    const { seen } = await failJobs(context, ['a'])
    await context.advance(2 * 60_000)
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
    const { ids } = await failJobs(context, ['a', 'b', 'c'])
    await context.queue.drop([ids[1] ?? ''])
    const page = bodiesOf(await context.queue.deadLetters({ after: ids[1] ?? '' }))
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
    const { queue, advance, now, until, drain, expectCounts } = context
    const { seen, decide, ids } = await failJobs(context, ['a', 'b'])
    decide(() => complete)
    await advance(5000)
    const before = now()
    const redriven = await queue.redrive([ids[1] ?? '', ids[1] ?? '', randomUUID()])
    equal(redriven, 1, 'redrive() must count the dead letters it found, each once')
    await until(() => seen.length === 3, 'a redriven job must be claimed')
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
    const { queue, advance, now, drain } = context
    const { decide } = await failJobs(context, ['a', 'b'])
    await advance(5000)
    const olderThan = new Date(now() - 2500)
    decide((job) => ({ deadLetter: `${text(job.body)} failed` }))
    for (const body of ['a', 'c']) {
      await queue.push([jobOf(body)])
      await drain()
      await advance(1)
    }
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
    const { queue, drain, expectCounts } = context
    const { ids } = await failJobs(context, ['a', 'b', 'c'])
    const dropped = await queue.drop([ids[0] ?? '', ids[0] ?? '', randomUUID()])
    equal(dropped, 1, 'drop() must count the dead letters it found, each once')
    deepEqual(bodiesOf(await queue.deadLetters()), ['b', 'c'], 'a dropped dead letter must not be listed')
    equal(await queue.drop('all'), 2, "drop('all') must drop each dead letter")
    await expectCounts({ waiting: 0, active: 0, deadLetters: 0 }, 'a dropped dead letter must not count')
    await queue.push([{ id: ids[0] ?? '', body: bytes('a') }])
    await drain()
    await expectCounts({ deadLetters: 1 }, 'the id of a dropped dead letter must be accepted again')
  },
}

/** Pushes jobs and makes each a dead letter, one after the other, a moment apart. `decide` replaces the handler's answer. */
async function failJobs({ queue, work, drain, advance }: TestContext, bodies: readonly string[]) {
  let outcome = (job: ClaimedJob): Outcome => ({ deadLetter: `${text(job.body)} failed`, retryState: bytes('why') })
  const seen = work((job) => outcome(job), 1)
  const ids: string[] = []
  for (const body of bodies) {
    const job = jobOf(body)
    ids.push(job.id)
    await queue.push([job])
    await drain()
    await advance(1)
  }
  const decide = (next: typeof outcome): void => {
    outcome = next
  }
  return { seen, ids, decide }
}
