/** What a queue with a history promises: it keeps what its outcomes say, lists it, gives it out again, and drops what is old. */

import { deepEqual, equal, ok, rejects } from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { ClaimedJob, HandledJob, Job, Outcome, Queue, QueueHistory, WorkOptions } from '../../queues/api.ts'
import { bodiesOf, bytes, type Cases, complete, jobOf, large, partsOf, type TestContext, text } from './context.ts'

export const historyCases: Cases = {
  'history: has the jobs whose outcomes keep them, with what is kept and when, the oldest first': async (context) => {
    const { now, expectCounts } = context
    const { jobs, history } = await handleJobs(context, ['a', 'not kept', 'b'])
    const found = await history.list()
    deepEqual(
      found.map(({ id, body, kept }) => [id, text(body), text(kept)]),
      [
        [jobs[0]?.id, 'a', 'a kept'],
        [jobs[2]?.id, 'b', 'b kept'],
      ],
    )
    for (const { handledAt } of found) ok(Math.abs(now() - handledAt.getTime()) < 60_000, 'handledAt must be its time')
    await expectCounts()
  },

  'history: keeps no bytes as well as others': async (context) => {
    const { queue, work, drain } = context
    work(() => ({ complete: true, keep: new Uint8Array() }))
    await queue.push([jobOf('a')])
    await drain()
    deepEqual(
      (await historyOf(queue).list()).map(({ body, kept }) => [text(body), text(kept)]),
      [['a', '']],
    )
  },

  'history: ends a page before it has more than maxBytes, but not before its first one': async (context) => {
    const { history } = await handleJobs(context, ['a', 'b', 'c'].map(large))
    const [first, second] = await history.list({ maxBytes: 25_000 })
    deepEqual(bodiesOf([first as HandledJob, second as HandledJob]), ['a', 'b'].map(large))
    deepEqual(bodiesOf(await history.list({ maxBytes: 1 })), [large('a')])
    deepEqual(bodiesOf(await history.list({ maxBytes: 25_000, after: second?.cursor ?? '' })), [large('c')])
  },

  'history: comes in pages, also after one that is gone, and of a time': async (context) => {
    const { history } = await handleJobs(context, ['a', 'b', 'c', 'd'])
    const all = await history.list()
    const [a, b, c, d] = all as [HandledJob, HandledJob, HandledJob, HandledJob]
    const expectPage = async (page: Parameters<QueueHistory['list']>[0], expected: readonly string[]) =>
      deepEqual(bodiesOf(await history.list(page)), expected)
    await expectPage({ limit: 2 }, ['a', 'b'])
    await expectPage({ after: b.cursor, limit: 1 }, ['c'])
    await expectPage({ after: d.cursor }, [])
    await expectPage({ since: b.handledAt, until: d.handledAt }, ['b', 'c'])
    await expectPage({ since: a.handledAt, after: b.cursor }, ['c', 'd'])
    await expectPage({ since: c.handledAt, after: a.cursor }, ['c', 'd'])
    await expectPage({ until: a.handledAt }, [])
    context.queue.pause()
    await replayAll(history, [b], 'again')
    await expectPage({ after: b.cursor }, ['c', 'd'])
    await expectPage({}, ['a', 'c', 'd'])
  },

  'history: finds jobs by their ids': async (context) => {
    const { jobs, history } = await handleJobs(context, ['a', 'not kept', 'b'])
    const found = await history.find([...jobs.map(({ id }) => id), randomUUID()])
    deepEqual(bodiesOf(found).sort(), ['a', 'b'])
    deepEqual(
      found.find(({ body }) => text(body) === 'b'),
      (await history.list())[1],
    )
    deepEqual(await history.find([]), [])
  },

  'history: a job is known while it is there, however old': async (context) => {
    const { queue, advance, dedupeWindowMs, drain, expectCounts } = context
    const { jobs, seen } = await handleJobs(context, ['a', 'b'])
    await advance(dedupeWindowMs + 1_000)
    await queue.push([jobOf('another')]) // It may make the queue forget old ids.
    await queue.push(jobs)
    await drain()
    await expectCounts()
    deepEqual(bodiesOf(seen), ['a', 'b', 'another'])
  },

  'history: a replay gives a job out again with a retry state, its claims counted anew': async (context) => {
    const { queue, now, expectCounts } = context
    const { jobs, seen, history, decide } = await handleJobs(context, ['retried a', 'b'])
    queue.pause()
    const before = now()
    const [a] = jobs as [Job]
    const listed = await history.find([a.id])
    const { at } = await replayAll(history, listed, 'again')
    const counts = await queue.counts()
    equal(counts.oldestDueAt?.getTime(), at.getTime(), 'they come due at that time')
    await expectCounts({ waiting: 1, active: 0, deadLetters: 0 })
    await queue.push([a]) // It waits.
    await expectCounts({ waiting: 1 })
    deepEqual(bodiesOf(await history.list()), ['b'])
    await context.advance(1)
    decide(() => ({ complete: true, keep: bytes('kept anew') }))
    queue.resume()
    await context.drain()
    const claimed = seen.slice(3)
    deepEqual(claimed.map(partsOf), [{ id: a.id, body: 'retried a', claimCount: 1, retryState: 'again' }])
    ok((claimed[0] as ClaimedJob).firstAt.getTime() >= before, 'firstAt must begin anew')
    deepEqual(
      (await history.list()).map(({ body, kept }) => [text(body), text(kept)]),
      [
        ['b', 'b kept'],
        ['retried a', 'kept anew'],
      ],
    )
    const again = await replayAll(history, listed, 'as it was listed before')
    deepEqual(again.ids, [], 'a job that was handled again since is skipped')
    await expectCounts()
  },

  'history: a replay skips what is not there': async (context) => {
    const { queue, now, expectCounts } = context
    const { jobs, history } = await handleJobs(context, ['a', 'not kept'])
    queue.pause()
    await queue.push([jobOf('waits')])
    const [a] = (await history.list()) as [HandledJob]
    const all = [a, { ...a, id: jobs[1]?.id ?? '' }, { ...a, id: randomUUID() }]
    deepEqual((await replayAll(history, all, 'again')).ids, [a.id])
    deepEqual((await replayAll(history, all, 'again')).ids, [])
    const { ids, at } = await history.replay([])
    deepEqual(ids, [])
    ok(Math.abs(now() - at.getTime()) < 60_000, 'without jobs, `at` must be the time')
    await expectCounts({ waiting: 2 })
  },

  'history: a job that is replayed may be retried, and become a dead letter': async (context) => {
    const { queue, now } = context
    const { seen, history, decide } = await handleJobs(context, ['a'])
    decide(({ claimCount }) =>
      claimCount === 1
        ? { retryAt: new Date(now()), retryState: bytes('retried') }
        : { deadLetter: 'failed again', retryState: bytes('dead') },
    )
    await replayAll(history, await history.list(), 'again')
    await context.drain()
    deepEqual(
      seen
        .slice(1)
        .map(partsOf)
        .map(({ claimCount, retryState }) => [claimCount, retryState]),
      [
        [1, 'again'],
        [2, 'retried'],
      ],
    )
    deepEqual(
      (await queue.deadLetters()).map(({ body, reason, retryState }) => [text(body), reason, text(retryState)]),
      [['a', 'failed again', 'dead']],
    )
    deepEqual(await history.list(), [])
    decide(() => ({ complete: true, keep: bytes('at last') }))
    await queue.redrive('all')
    await context.drain()
    deepEqual(
      (await history.list()).map(({ kept }) => text(kept)),
      ['at last'],
    )
  },

  'history: what is older than its age is dropped, and its id is known in the dedupe window': async (context) => {
    const { queue, advance, until, drain, expectCounts } = context
    const { jobs, history, seen } = await handleJobs(context, ['a', 'b'], { history: { maxAgeMs: 5_000 } })
    await advance(7_000)
    await advance(0)
    await until(
      async () => (await history.list()).length === 0,
      () => 'What is older than its age must be dropped.',
      () => advance(1_000),
    )
    await queue.push(jobs)
    await drain()
    equal(seen.length, 2)
    await expectCounts()
  },

  'history: forget deletes from it, and no other job': async (context) => {
    const { queue } = context
    const { history } = await handleJobs(context, ['ada 1', 'bob 1', 'ada 2'])
    deepEqual(await queue.forget(({ body }) => text(body)?.startsWith('ada') === true), { deleted: 2, active: 0 })
    deepEqual(bodiesOf(await history.list()), ['bob 1'])
  },

  'history: a note is stored once': async (context) => {
    const history = historyOf(context.queue)
    equal(await history.note('replay fix-42', 'first'), 'first')
    equal(await history.note('replay fix-42', 'second'), 'first')
    equal(await history.note('replay fix-43', 'third'), 'third')
    equal(await history.note('replay fix-42'), 'first')
    equal(await history.note('replay fix-44'), undefined)
    equal(await history.note('replay fix-44', 'fourth'), 'fourth')
  },

  'history: a wrong argument is refused, and nothing changes': async (context) => {
    const { history } = await handleJobs(context, ['a'])
    await rejects(history.list({ after: 'what' }), TypeError)
    await rejects(history.list({ since: new Date(Number.NaN) }), TypeError)
    const [a] = (await history.list()) as [HandledJob]
    await rejects(replayAll(history, [{ ...a, id: 'what' }], 'again'), TypeError)
    await rejects(replayAll(history, [{ ...a, cursor: 'what' }], 'again'), TypeError)
    deepEqual(bodiesOf(await history.list()), ['a'])
  },
}

export const durableHistoryCases: Cases = {
  'durable: history and notes outlive the process': async (context) => {
    const { queue, openAnother } = context
    const { jobs, history } = await handleJobs(context, ['a', 'b'])
    await history.note('name', 'text')
    const before = await history.list()
    await queue.close({ graceMs: 0 })
    const next = await openAnother()
    deepEqual(await historyOf(next).list(), before)
    equal(await historyOf(next).note('name', 'another text'), 'text')
    await replayAll(historyOf(next), before.slice(0, 1), 'again')
    const seen = context.work(complete, 1, next)
    await context.drain(next)
    deepEqual(seen.map(partsOf), [{ id: jobs[0]?.id, body: 'a', claimCount: 1, retryState: 'again' }])
  },

  'durable: of many replays of one job at once, one gives it out': async (context) => {
    const { queue, openAnother, expectCounts } = context
    const { history } = await handleJobs(context, ['a', 'b'])
    const other = await openAnother()
    queue.pause()
    const again = await history.list()
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        replayAll(index % 2 === 0 ? history : historyOf(other), again, `${index}`),
      ),
    )
    const taken = results.map(({ ids }) => ids)
    deepEqual(taken.flat().sort(), again.map(({ id }) => id).sort())
    await expectCounts({ waiting: 2, active: 0 })
    const worker = await openAnother()
    const seen = context.work(complete, 1, worker)
    await context.drain(worker)
    for (const { id, retryState } of seen)
      equal(
        taken.findIndex((ids) => ids.includes(id)),
        Number(text(retryState)),
      )
  },
}

function historyOf({ history }: Queue): QueueHistory {
  ok(history !== undefined, 'a queue with a history must have `history`')
  return history
}

function replayAll(history: QueueHistory, jobs: readonly HandledJob[], retryState: string) {
  return history.replay(jobs.map(({ id, cursor }) => ({ id, cursor, retryState: bytes(retryState) })))
}

/** Handles jobs one after the other, a moment apart: those that begin with `retried` twice. Those that begin with `not` are not kept. */
async function handleJobs(context: TestContext, bodies: readonly string[], options: Partial<WorkOptions> = {}) {
  const { queue, pushEach } = context
  let outcome = ({ body, claimCount }: ClaimedJob): Outcome => {
    if (text(body)?.startsWith('not')) return complete()
    if (text(body)?.startsWith('retried') && claimCount === 1) {
      return { retryAt: new Date(context.now()), retryState: bytes('of the first time') }
    }
    return { complete: true, keep: bytes(`${text(body)} kept`) }
  }
  const seen: ClaimedJob[] = []
  const handle = async (job: ClaimedJob): Promise<Outcome> => {
    seen.push(job)
    return outcome(job)
  }
  queue.work(handle, { concurrency: 10, ...options })
  const jobs = bodies.map((body) => jobOf(body))
  await pushEach(jobs)
  const decide = (next: typeof outcome): void => {
    outcome = next
  }
  return { seen, jobs, history: historyOf(queue), decide }
}
