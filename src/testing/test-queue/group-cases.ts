/** The rules for a queue with groups: only one job of each group is claimed at a time, in the order of the pushes. */

import { deepEqual, equal, ok } from 'node:assert/strict'
import type { ClaimedJob, Job, Outcome, Queue } from '../../store/queue-types.ts'
import { bodiesOf, bytes, type Cases, complete, jobOf, type TestContext, text } from './context.ts'

const LATER_MS = 5_000

export const groupCases: Cases = {
  'groups: one job of each group is claimed at a time, in the order of the pushes': async (context) => {
    const { queue, drain, expectCounts } = context
    const { seen, running, endJob: end } = handleByHand(context)
    await queue.push(jobsOf('a1 a2 b1 a3 c1 b2 - -'))
    await context.claimed(seen, 5)
    deepEqual(running(), ['-', '-', 'a1', 'b1', 'c1'])
    await expectCounts({ waiting: 3, active: 5, deadLetters: 0 })
    await context.advance(1) // An engine may claim jobs that are due at the same time in any order.
    await queue.push(jobsOf('a4'))
    for (const [body, count] of [
      ['b1', 6],
      ['a1', 7],
      ['a2', 8],
      ['a3', 9],
    ] as const) {
      await end(body, count)
    }
    deepEqual(running(), ['-', '-', 'a4', 'b2', 'c1'])
    for (const body of running()) await end(body, 9)
    await drain()
    deepEqual(
      bodiesOf(seen).filter((body) => body?.startsWith('a')),
      ['a1', 'a2', 'a3', 'a4'],
    )
    await expectCounts()
  },

  'groups: the next job keeps its place among the others': async (context) => {
    const { queue, advance, drain, exactOrder } = context
    const seen: (string | undefined)[] = []
    void queue.pause()
    queue.work(
      async ({ body }) => {
        seen.push(text(body))
        return complete()
      },
      { concurrency: 1 },
    )
    for (const body of ['a1', 'a2', '-', 'a3']) {
      await queue.push(jobsOf(body))
      await advance(1)
    }
    queue.resume()
    await drain()
    const isCompared = (body: string | undefined) => exactOrder || body !== '-'
    deepEqual(seen.filter(isCompared), ['a1', 'a2', '-', 'a3'].filter(isCompared))
  },

  'groups: a retry holds the other jobs of its group, but not those of another group': async (context) => {
    const { queue, now, advance, expectCounts } = context
    const { seen, running, endJob: end } = handleByHand(context)
    await queue.push(jobsOf('a1 a2'))
    await context.claimed(seen, 1)
    const retryAt = new Date(now() + LATER_MS)
    await end('a1', 1, { retryAt, retryState: bytes('again') })
    await queue.push(jobsOf('b1 a3'))
    await context.claimed(seen, 2)
    deepEqual(running(), ['b1'])
    await expectCounts({ waiting: 3, retrying: 1, active: 1 })
    await advance(LATER_MS)
    await context.claimed(seen, 3)
    deepEqual(running(), ['a1', 'b1'])
    deepEqual([seen[2]?.claimCount, text(seen[2]?.retryState)], [2, 'again'])
    await end('a1', 4)
    deepEqual(running(), ['a2', 'b1'])
  },

  'groups: the next job is claimed when the one that is retried is forgotten': async (context) => {
    const { queue, now } = context
    const { seen, running, endJob: end } = handleByHand(context)
    await queue.push(jobsOf('a1 a2'))
    await context.claimed(seen, 1)
    await end('a1', 1, { retryAt: new Date(now() + LATER_MS) })
    await queue.push(jobsOf('b1'))
    await context.claimed(seen, 2) // When `b1` has been claimed, the outcome of `a1` has been recorded.
    equal((await queue.forget(({ body }) => text(body) === 'a1')).deleted, 1)
    await context.claimed(seen, 3)
    deepEqual(running(), ['a2', 'b1'])
  },

  'groups: a job that is retried at once stays first': async (context) => {
    const { queue, now } = context
    const { seen, running, endJob: end } = handleByHand(context)
    await queue.push(jobsOf('a1 a2'))
    await context.claimed(seen, 1)
    await end('a1', 2, { retryAt: new Date(now()) })
    deepEqual(running(), ['a1'])
    await end('a1', 3)
    deepEqual(running(), ['a2'])
  },

  'groups: a job for later comes when its group is free': async (context) => {
    const { queue, now, advance } = context
    const { seen, running, endJob: end } = handleByHand(context)
    await queue.push([jobOf('a1', { group: 'a', notBefore: new Date(now() + LATER_MS) }), ...jobsOf('a2')])
    await context.claimed(seen, 1)
    await advance(LATER_MS)
    deepEqual(running(), ['a2'])
    await end('a2', 2)
    deepEqual(running(), ['a1'])
  },

  'groups: a dead letter lets the next job go, and is redriven in turn': async (context) => {
    const { queue, expectCounts } = context
    const { seen, running, endJob: end } = handleByHand(context)
    await queue.push(jobsOf('a1 a2 a3'))
    await context.claimed(seen, 1)
    await end('a1', 2, { deadLetter: 'no' })
    await context.advance(1)
    equal(await queue.redrive('all'), 1)
    await expectCounts({ waiting: 2, active: 1 })
    deepEqual(running(), ['a2'])
    await end('a2', 3)
    deepEqual(running(), ['a3'])
    await end('a3', 4)
    deepEqual(running(), ['a1'])
  },

  'groups: the next job is claimed when the first one is forgotten': async (context) => {
    const { queue } = context
    const { seen, running, endJob: end } = handleByHand(context)
    void queue.pause()
    await queue.push(jobsOf('a1 a2 a3'))
    equal((await queue.forget(({ body }) => text(body) === 'a1')).deleted, 1)
    queue.resume()
    await context.claimed(seen, 1)
    deepEqual(running(), ['a2'])
    equal((await queue.forget(({ body }) => text(body) === 'a3')).deleted, 1)
    await end('a2', 1)
    await context.drain()
    await context.expectCounts()
  },
}

export const durableGroupCases: Cases = {
  'durable: groups: processes handle one job of each group at a time': async (context) => {
    const { queue, tick, until, openAnother } = context
    const groups = ['a', 'b', 'c', 'd', 'e', 'f']
    const names = groups.flatMap((group) => Array.from({ length: 8 }, (_, index) => `${group}${index}`))
    const running = new Set<string>()
    const handled: string[] = []
    let overlaps = 0
    const work = (of: Queue): void =>
      void of.work(
        async ({ body }) => {
          const [name, group] = [text(body) ?? '', text(body)?.[0] ?? '']
          if (running.has(group)) overlaps += 1
          running.add(group)
          for (let turns = name.charCodeAt(1) % 3; turns >= 0; turns -= 1) await tick()
          running.delete(group)
          handled.push(name)
          return complete()
        },
        { concurrency: 4 },
      )
    await queue.push(jobsOf(names.join(' ')))
    const other = await openAnother()
    work(queue)
    work(other)
    await until(
      () => handled.length >= names.length,
      () => `${names.length} jobs were expected. Got ${handled.length}.`,
      tick,
    )
    equal(overlaps, 0)
    deepEqual(handled.toSorted(), names)
    for (const group of groups) {
      const inOrder = handled.filter((name) => name.startsWith(group))
      deepEqual(inOrder, inOrder.toSorted())
    }
  },

  'durable: groups: a job that a process leaves unfinished comes first': async (context) => {
    const { queue, advance, tick, openAnother } = context
    const { seen } = handleByHand(context)
    await queue.push(jobsOf('a1 a2'))
    await context.claimed(seen, 1)
    await queue.close({ graceMs: 0 })
    await advance(1_000)
    const next = handleByHand(context, await openAnother())
    await context.claimed(next.seen, 1, tick)
    deepEqual(next.running(), ['a1'])
    ok((next.seen[0]?.claimCount ?? 0) > 1)
  },
}

/** Makes a job from each word. The first letter of the word names the group of the job; the job `-` has no group. */
function jobsOf(bodies: string): Job[] {
  return bodies.split(' ').map((body) => jobOf(body, { group: body === '-' ? undefined : body[0] }))
}

/** Gives a queue a handler that holds each job until `endJob` ends it. */
function handleByHand(context: TestContext, queue = context.queue) {
  const seen: ClaimedJob[] = []
  const held: { readonly body: string; readonly resolve: (outcome: Outcome) => void }[] = []
  queue.work(
    (job) => {
      seen.push(job)
      return new Promise((resolve) => held.push({ body: text(job.body) ?? '', resolve }))
    },
    { concurrency: 10 },
  )
  return {
    seen,
    running: () => held.map(({ body }) => body).sort(),
    /** Ends a job, and waits until `count` jobs have been claimed. */
    async endJob(body: string, count: number, outcome = complete()): Promise<void> {
      const index = held.findIndex((each) => each.body === body)
      held.splice(index, 1)[0]?.resolve(outcome)
      await context.claimed(seen, count)
    },
  }
}
