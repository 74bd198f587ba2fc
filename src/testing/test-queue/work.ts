/** What work promises: due jobs, about the oldest first, at most so many at a time; pause and resume; what drain and counts say. */

import { deepEqual, equal, ok } from 'node:assert/strict'
import type { Outcome } from '../../queues/queue.ts'
import { bodiesOf, type Cases, complete, jobOf } from './context.ts'

export const workCases: Cases = {
  'work: as many jobs run at a time as the concurrency says': async ({ queue, work, until, drain, expectCounts }) => {
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
    await until(() => seen.length === 3, 'due jobs must be claimed up to the concurrency')
    await expectCounts({ waiting: 17, active: 3, deadLetters: 0 }, 'a claimed job must count as active')
    for (let next = 4; next <= 20; next += 1) {
      ends.shift()?.()
      await until(() => seen.length === next, 'a job that ends must make room for the next')
    }
    for (const end of ends) end()
    await drain()
    equal(most, 3, 'never more jobs may run than the concurrency says')
    equal(seen.length, 20, 'every job must be handled once')
    await expectCounts({ waiting: 0, active: 0, deadLetters: 0 }, 'a completed job must not count')
  },

  'work: jobs are claimed about the oldest first': async ({ queue, work, drain }) => {
    for (const body of ['a', 'b', 'c', 'd', 'e']) await queue.push([jobOf(body)])
    const seen = work(() => complete, 1)
    await drain()
    deepEqual(bodiesOf(seen), ['a', 'b', 'c', 'd', 'e'], 'due jobs must be claimed in the order of their pushes')
  },

  'work: an engine with an exact order claims jobs in the order in which they came due': async ({
    queue,
    now,
    advance,
    work,
    drain,
    exactOrder = true,
  }) => {
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

  'work: no job is claimed before its time': async ({ queue, now, advance, work, until }) => {
    const seen = work(() => complete)
    await queue.push([jobOf('later', { notBefore: new Date(now() + 5000) })])
    await advance(4000)
    equal(seen.length, 0, 'a job must not be claimed before notBefore')
    await advance(1000)
    await until(() => seen.length === 1, 'a job must be claimed when notBefore has come')
  },

  'work: a job that is due sooner is not held up by one that waits': async ({ queue, now, advance, work, until }) => {
    const seen = work(() => complete)
    await queue.push([jobOf('later', { notBefore: new Date(now() + 60_000) })])
    await advance(0)
    await queue.push([jobOf('sooner', { notBefore: new Date(now() + 5000) })])
    await advance(5000)
    await until(() => seen.length === 1, 'a job must be claimed when notBefore has come')
    deepEqual(bodiesOf(seen), ['sooner'], 'the job that is due sooner must be claimed')
  },

  'pause: nothing more is claimed until resume, running jobs go on and pushes are stored': async ({
    queue,
    work,
    advance,
    until,
    drain,
    expectCounts,
  }) => {
    const held = Promise.withResolvers<Outcome>()
    const seen = work(() => held.promise, 1)
    await queue.push([jobOf('running')])
    await until(() => seen.length === 1, 'a due job must be claimed')
    queue.pause()
    await queue.push([jobOf('waits')])
    held.resolve(complete)
    await advance(5000)
    deepEqual(bodiesOf(seen), ['running'], 'a paused queue must claim nothing')
    await expectCounts({ waiting: 1, active: 0 }, 'a paused queue must store pushes and record outcomes')
    queue.resume()
    await until(() => seen.length === 2, 'a resumed queue must claim what is due')
    await drain()
  },

  'pause: before work, nothing is claimed until resume': async ({ queue, work, advance, until }) => {
    queue.pause()
    const seen = work(() => complete)
    await queue.push([jobOf('waits')])
    await advance(1000)
    equal(seen.length, 0, 'a paused queue must claim nothing')
    queue.resume()
    await until(() => seen.length === 1, 'a resumed queue must claim what is due')
  },

  'counts: oldestDueAt is the time when the oldest due job came due': async ({
    queue,
    now,
    advance,
    work,
    drain,
    counts,
    expectCounts,
  }) => {
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

  'counts: asOf is the time when the engine counted': async ({ counts, now, advance }) => {
    await advance(5000)
    const { asOf } = await counts()
    const ageMs = now() - asOf.getTime()
    ok(asOf instanceof Date && ageMs >= 0 && ageMs < 60_000, 'asOf must be the time of the counts')
  },

  'drain: an empty queue is drained at once, without a handler': async ({ drain }) => {
    await drain()
  },

  'drain: waits for due and for claimed jobs, not for a job that waits for its time': async ({
    queue,
    now,
    advance,
    work,
    until,
    expectCounts,
  }) => {
    const held = Promise.withResolvers<Outcome>()
    let isDrained = false
    await queue.push([jobOf('due'), jobOf('later', { notBefore: new Date(now() + 60_000) })])
    void queue.drain().then(() => {
      isDrained = true
    })
    await advance(0)
    ok(!isDrained, 'drain() must wait for a due job')
    const seen = work(() => held.promise)
    await until(() => seen.length === 1, 'a due job must be claimed')
    await advance(0)
    ok(!isDrained, 'drain() must wait for a claimed job')
    held.resolve(complete)
    await until(() => isDrained, 'drain() must resolve when no job is due and none is claimed')
    await expectCounts({ waiting: 1, active: 0, deadLetters: 0 }, 'drain() must leave a job that waits for its time')
  },

  'drain: resolves when the queue is closed': async ({ queue, until }) => {
    await queue.push([jobOf('without a handler')])
    let isDrained = false
    void queue.drain().then(() => {
      isDrained = true
    })
    await queue.close({ graceMs: 0 })
    await until(() => isDrained, 'drain() must resolve when the queue is closed')
  },
}
