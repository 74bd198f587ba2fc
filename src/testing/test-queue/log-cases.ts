/** The rules for a log: it contains, in sequence, the jobs whose outcomes have a note, and loses only old entries. */

import { deepEqual, equal, ok, rejects } from 'node:assert/strict'
import type { ClaimedJob, LogEntry, LogPage, Outcome, Queue, QueueLog, WorkOptions } from '../../store/queue-types.ts'
import { bodiesOf, bytes, type Cases, complete, jobOf, large, type TestContext, text } from './context.ts'

export const logCases: Cases = {
  'log: has the jobs whose outcomes say so, with their notes and when they were handled': async (context) => {
    const { now, expectCounts } = context
    const { jobs, log } = await handleJobs(context, ['a', 'not logged', 'retried b'])
    const found = await log.list()
    deepEqual(
      found.map(({ id, body, note }) => [id, text(body), text(note)]),
      [
        [jobs[0]?.id, 'a', 'a noted'],
        [jobs[2]?.id, 'retried b', 'retried b noted'],
      ],
    )
    for (const { handledAt } of found)
      ok(Math.abs(now() - handledAt.getTime()) < 60_000, 'handledAt must be the time at which the job was handled.')
    await expectCounts()
  },

  'log: an empty note counts as a note': async (context) => {
    const { queue, work, drain } = context
    work(() => ({ complete: true, log: new Uint8Array() }))
    await queue.push([jobOf('a')])
    await drain()
    deepEqual(
      (await logOf(queue).list()).map(({ body, note }) => [text(body), text(note)]),
      [['a', '']],
    )
  },

  'log: has each of many jobs that are completed at once exactly once': async (context) => {
    const { queue, work, drain } = context
    work(() => ({ complete: true, log: bytes('noted') }), 50)
    const bodies = Array.from({ length: 120 }, (_, index) => `${index}`)
    await queue.push(bodies.map((body) => jobOf(body)))
    await drain()
    deepEqual(
      bodiesOf(await logOf(queue).list({ limit: 200 })).sort((one, other) => Number(one) - Number(other)),
      bodies,
    )
  },

  'log: a page ends before it exceeds maxBytes, but has at least one entry': async (context) => {
    const { log } = await handleJobs(context, ['a', 'b', 'c'].map(large))
    const page = await log.list({ maxBytes: 25_000 })
    deepEqual(bodiesOf(page.slice(0, 2)), ['a', 'b'].map(large))
    deepEqual(bodiesOf(await log.list({ maxBytes: 1 })), [large('a')])
    deepEqual(bodiesOf(await log.list({ maxBytes: 25_000, after: page[1]?.cursor })), [large('c')])
  },

  'log: comes in pages, including after an entry that is gone, and for a span of time': async (context) => {
    const { queue } = context
    const { log } = await handleJobs(context, ['a', 'b', 'c', 'd'])
    const [a, b, c, d] = (await log.list()) as [LogEntry, LogEntry, LogEntry, LogEntry]
    const expectPage = async (page: LogPage, expected: readonly string[]) =>
      deepEqual(bodiesOf(await log.list(page)), expected)
    await expectPage({ limit: 2 }, ['a', 'b'])
    await expectPage({ after: b.cursor, limit: 1 }, ['c'])
    await expectPage({ after: d.cursor }, [])
    await expectPage({ since: b.handledAt, until: d.handledAt }, ['b', 'c'])
    await expectPage({ since: a.handledAt, after: b.cursor }, ['c', 'd'])
    await expectPage({ since: c.handledAt, after: a.cursor }, ['c', 'd'])
    await expectPage({ until: a.handledAt }, [])
    equal((await queue.forget(({ body }) => text(body) === 'b')).deleted, 1)
    await expectPage({ after: b.cursor }, ['c', 'd'])
    await expectPage({}, ['a', 'c', 'd'])
  },

  'log: an id is known for the dedupe window, and no longer': async (context) => {
    const { queue, advance, dedupeWindowMs, drain } = context
    const { jobs, seen, log } = await handleJobs(context, ['a'])
    await queue.push(jobs)
    await drain()
    equal(seen.length, 1)
    await advance(dedupeWindowMs + 1_000)
    await queue.push(jobs)
    await drain()
    deepEqual(bodiesOf(seen), ['a', 'a'])
    deepEqual(bodiesOf(await log.list()), ['a', 'a'])
  },

  'log: entries beyond the maximum age are dropped, and their ids stay known for the dedupe window': async (
    context,
  ) => {
    const { queue, advance, until, drain, expectCounts } = context
    const { jobs, log, seen } = await handleJobs(context, ['a', 'b'], { history: { maxAgeMs: 5_000 } })
    await advance(7_000)
    await advance(0)
    await until(
      async () => (await log.list()).length === 0,
      () => 'Entries beyond the maximum age must be dropped.',
      () => advance(1_000),
    )
    await queue.push(jobs)
    await drain()
    equal(seen.length, 2)
    await expectCounts()
  },

  'log: the oldest entries are dropped while it exceeds maxBytes': async (context) => {
    const { advance, until } = context
    const history = { maxAgeMs: 3_600_000, maxBytes: 25_000 }
    const { log } = await handleJobs(context, ['a', 'b', 'c', 'd'].map(large), { history })
    await until(
      async () => (await log.list()).length < 4,
      () => 'Entries beyond maxBytes must be dropped.',
      () => advance(60_000),
    )
    deepEqual(bodiesOf(await log.list()), ['c', 'd'].map(large))
  },

  'log: forget deletes matching entries, and no others': async (context) => {
    const { queue } = context
    const { log } = await handleJobs(context, ['ada 1', 'bob 1', 'ada 2'])
    deepEqual(await queue.forget(({ body }) => text(body)?.startsWith('ada') === true), { deleted: 2, active: 0 })
    deepEqual(bodiesOf(await log.list()), ['bob 1'])
  },

  'log: an invalid argument is refused': async (context) => {
    const { log } = await handleJobs(context, ['a'])
    await rejects(log.list({ after: 'what' }), TypeError)
    await rejects(log.list({ since: new Date(Number.NaN) }), TypeError)
  },
}

export const durableLogCases: Cases = {
  'durable: a log outlives the process': async (context) => {
    const { queue, openAnother } = context
    const { log } = await handleJobs(context, ['a', 'b'])
    const before = await log.list()
    await queue.close({ graceMs: 0 })
    deepEqual(await logOf(await openAnother()).list(), before)
  },

  'durable: whoever follows a log sees each entry once, while processes append': async (context) => {
    const { queue, work, drain, openAnother, tick, until } = context
    const others = [queue, await openAnother(), await openAnother()]
    const bodies = Array.from({ length: 300 }, (_, index) => `${index}`)
    await queue.push(bodies.map((body) => jobOf(body)))
    for (const other of others) work(() => ({ complete: true, log: bytes('noted') }), 5, other)
    const followed: (string | undefined)[] = []
    let after: string | undefined
    await until(
      async () => {
        const page = await logOf(queue).list({ after, limit: 7 })
        followed.push(...bodiesOf(page))
        after = page.at(-1)?.cursor ?? after
        if (page.length === 0) await Promise.all([...others.map((other) => drain(other)), tick()])
        return followed.length >= bodies.length
      },
      () => `300 entries were expected. Got ${followed.length}.`,
    )
    deepEqual(
      followed.sort((one, other) => Number(one) - Number(other)),
      bodies,
    )
  },
}

function logOf({ log }: Queue): QueueLog {
  ok(log !== undefined, 'A queue with a log must have `log`.')
  return log
}

/**
 * Handles jobs one after the other, a moment apart. Jobs whose body begins with `retried` are handled twice; jobs whose body begins with
 * `not` are not logged.
 */
async function handleJobs(context: TestContext, bodies: readonly string[], options: Partial<WorkOptions> = {}) {
  const { queue, pushEach } = context
  const seen: ClaimedJob[] = []
  const handle = async (job: ClaimedJob): Promise<Outcome> => {
    seen.push(job)
    const { body, claimCount } = job
    if (text(body)?.startsWith('not')) return complete()
    if (text(body)?.startsWith('retried') && claimCount === 1) return { retryAt: new Date(context.now()) }
    return { complete: true, log: bytes(`${text(body)} noted`) }
  }
  queue.work(handle, { concurrency: 10, ...options })
  const jobs = bodies.map((body) => jobOf(body))
  await pushEach(jobs)
  return { seen, jobs, log: logOf(queue) }
}
