/** What forget promises: what matches and is not claimed is deleted, with its id, and nothing else. */

import { deepEqual, equal } from 'node:assert/strict'
import type { Outcome, StoredJob } from '../../queues/queue.ts'
import { bodiesOf, type Cases, complete, jobOf, text } from './context.ts'

const isOfAda = ({ body }: StoredJob): boolean => text(body)?.startsWith('ada') === true

export const forgetCases: Cases = {
  'forget: an empty queue has nothing to forget': async ({ queue }) => {
    deepEqual(await queue.forget(() => true), { deleted: 0, active: 0 }, 'forget() must return how many it deleted')
  },

  'forget: deletes what matches of the jobs that wait, due or not, and of the dead letters': async (context) => {
    const { queue, now, advance, work, drain, expectCounts } = context
    const decide = ({ body }: StoredJob): Outcome => {
      if (text(body)?.endsWith('fails')) return { deadLetter: 'no' }
      return text(body)?.endsWith('retried') ? { retryAt: new Date(now() + 5000), retryState: body } : complete
    }
    const seen = work((job) => (job.claimCount === 1 ? decide(job) : complete), 1)
    for (const body of ['ada fails', 'bob fails', 'ada retried', 'bob retried']) {
      await queue.push([jobOf(body)])
      await drain()
    }
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
    await context.until(() => seen.length >= before + 3, 'jobs that do not match must be handled')
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
    const { queue, now, work, until, drain, expectCounts } = context
    const held = Promise.withResolvers<Outcome>()
    const seen = work(() => held.promise)
    await queue.push([jobOf('ada')])
    await until(() => seen.length === 1, 'a due job must be claimed')
    const running = await queue.forget(isOfAda)
    deepEqual(running, { deleted: 0, active: 1 }, 'forget() must count a claimed job that matches as active')
    await expectCounts({ active: 1 }, 'forget() must leave a claimed job')
    held.resolve({ retryAt: new Date(now() + 60_000) })
    await drain()
    await expectCounts({ waiting: 1, active: 0 }, 'an outcome after forget() must be recorded')
    const waiting = await queue.forget(isOfAda)
    deepEqual(waiting, { deleted: 1, active: 0 }, 'forget() must delete a job that waits for its retry')
    await expectCounts({ waiting: 0, active: 0, deadLetters: 0 }, 'a forgotten job must not count')
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
    let isDrained = false
    void queue.drain().then(() => {
      isDrained = true
    })
    await advance(0)
    equal(isDrained, false, 'drain() must wait for a due job')
    await queue.forget(isOfAda)
    await until(() => isDrained, 'drain() must resolve when no job is due any more')
  },
}
