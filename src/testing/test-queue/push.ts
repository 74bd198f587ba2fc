/** What push promises: each job reaches the handler as it was pushed, and an id within the dedupe window is stored once. */

import { deepEqual, equal, ok } from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { ClaimedJob } from '../../queues/queue.ts'
import { bodiesOf, bytes, type Cases, complete, jobOf, never, type TestContext, text } from './context.ts'

export const pushCases: Cases = {
  'push: a job reaches its handler with its id and body, claimed for the first time': async (context) => {
    const { queue, now, work, drain } = context
    const seen = work(() => complete)
    const job = jobOf('\u0000 é 🎉')
    const before = now()
    await queue.push([job])
    await drain()
    equal(seen.length, 1, 'a job that is completed must be handled once')
    const [claimed] = seen as [ClaimedJob]
    equal(claimed.id, job.id, 'the handler must be given the id of the job')
    equal(text(claimed.body), '\u0000 é 🎉', 'the handler must be given the bytes of the body')
    equal(claimed.claimCount, 1, 'the first claim must have the claimCount 1')
    equal(claimed.retryState, undefined, 'the first claim must have no retryState')
    const firstAt = claimed.firstAt.getTime()
    ok(firstAt >= before && firstAt <= now(), 'firstAt must be the time of the first claim')
    const dueAt = claimed.dueAt?.getTime() ?? 0
    ok(dueAt >= before && dueAt <= firstAt, 'dueAt of a first claim must be the time of the push')
  },

  'push: bodies may be any bytes, and empty': async ({ queue, work, drain }) => {
    const seen = work(() => complete)
    const binary = { id: randomUUID(), body: Uint8Array.from({ length: 256 }, (_, index) => index) }
    const empty = { id: randomUUID(), body: new Uint8Array() }
    await queue.push([binary, empty])
    await drain()
    for (const { id, body } of [binary, empty]) {
      const found = seen.find((job) => job.id === id)
      deepEqual(found && [...found.body], [...body], 'a body must arrive with exactly the bytes that were pushed')
    }
  },

  'push: an empty list stores nothing': async ({ queue, expectEmpty }) => {
    await queue.push([])
    await expectEmpty('an empty push must store nothing')
  },

  'push: jobs wait for a handler': async ({ queue, work, drain, expectCounts }) => {
    await queue.push([jobOf('a')])
    await queue.push([jobOf('b')])
    await expectCounts({ waiting: 2, active: 0, deadLetters: 0 }, 'jobs must wait while the queue has no handler')
    const seen = work(() => complete)
    await drain()
    deepEqual(bodiesOf(seen).sort(), ['a', 'b'], 'jobs that waited must be handled once there is a handler')
  },

  'push: an id twice in one call is stored once, the first of the two': async ({ queue, work, drain }) => {
    const job = jobOf('first')
    await queue.push([job, { ...job, body: bytes('second') }])
    const seen = work(() => complete)
    await drain()
    deepEqual(bodiesOf(seen), ['first'], 'of jobs with one id in one call, the first must be stored')
  },

  'push: new jobs beside a known id are stored': async ({ queue, expectCounts }) => {
    const job = jobOf('known')
    await queue.push([job])
    await queue.push([job, jobOf('new')])
    await expectCounts({ waiting: 2 }, 'a known id must be skipped and the other jobs of the call stored')
  },

  'push: the id of a job that waits changes nothing, whatever the dedupe window': async (context) => {
    await expectKnown(context, [])
  },

  'push: the id of a claimed job changes nothing': async (context) => {
    const { work, until } = context
    const seen = work(never)
    await expectKnown(context, seen, () => until(() => seen.length === 1, 'a due job must be claimed'), 0)
  },

  'push: the id of a completed job changes nothing within the dedupe window': async (context) => {
    const { work, drain } = context
    const seen = work(() => complete)
    await expectKnown(context, seen, drain, 0)
  },

  'push: the id of a dead letter changes nothing, whatever the dedupe window': async (context) => {
    const { work, drain } = context
    const seen = work(() => ({ deadLetter: 'no' }))
    await expectKnown(context, seen, drain)
  },

  // An engine counts the window from the push or from the completion: here a retry lies between the two.
  'push: an id is known for the dedupe window, and accepted again after it': async (context) => {
    const { queue, now, advance, dedupeWindowMs, work, claimed, drain } = context
    const seen = work((job) =>
      job.claimCount === 1 && seen.length === 1 ? { retryAt: new Date(now() + 5000) } : complete,
    )
    const job = jobOf('again')
    await queue.push([job])
    await drain()
    await advance(5000)
    await claimed(seen, 2, 'a retry must be claimed when its time has come')
    await drain()
    await advance(dedupeWindowMs - 6000) // 1 second less than the window since the push.
    await queue.push([job])
    await drain()
    equal(seen.length, 2, 'a push within the dedupe window must change nothing')
    await advance(6000)
    await queue.push([job])
    await drain()
    equal(seen.length, 3, 'a push after the dedupe window must be accepted')
    equal(seen[2]?.claimCount, 1, 'a job that is pushed after the dedupe window must begin anew')
  },
}

/** Pushes a job, lets it get where it should be, and pushes its id again: at once, and `laterMs` later. */
async function expectKnown(
  { queue, advance, counts, expectCounts, dedupeWindowMs }: TestContext,
  seen: readonly ClaimedJob[],
  become: () => Promise<void> = async () => {},
  laterMs = dedupeWindowMs + 1000,
): Promise<void> {
  const job = jobOf('first')
  await queue.push([job])
  await become()
  const { waiting, active, deadLetters } = await counts()
  for (const ms of [0, laterMs]) {
    await advance(ms)
    await queue.push([{ ...job, body: bytes('second') }])
    await advance(0)
    await expectCounts({ waiting, active, deadLetters }, 'a push of a known id must change nothing')
    ok(!bodiesOf(seen).includes('second'), 'a push of a known id must not be handled')
  }
}
