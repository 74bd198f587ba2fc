/** What a store has after random calls, compared with a model of a few lines; in a file, its counts with its rows, too. */

import { randomUUID } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createMemoryStore } from '../../src/store/memory/memory-store.ts'
import type { LogStore, QueueStore } from '../../src/store/queue-store.ts'
import type { ClaimedJob, Job, Outcome } from '../../src/store/queue-types.ts'
import { openFile } from '../../src/store/sqlite/file.ts'
import { readOptions } from '../../src/store/sqlite/sqlite-options.ts'
import { SqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { SEQS_PER_QUEUE } from '../../src/store/sqlite/sqlite-tables.ts'
import { type ManualClock, manualClock } from '../../src/testing/manual-clock.ts'
import { runs } from '../support/properties.ts'
import { newFile } from './sqlite/set-up.ts'

const settings = { dedupeWindowMs: 5_000, maxJobs: 30 }
const ALL = { limit: 1_000, maxBytes: 1e9 }
const bytes = (text: string) => new TextEncoder().encode(text)
const IDS = Array.from({ length: 40 }, () => randomUUID())

interface Modelled extends Job {
  state: 'waiting' | 'claimed' | 'dead' | 'done'
  /** When it is due, or was done. */
  at: number
  /** Its place among those of its group, or among the dead letters. */
  place: number
  claimCount: number
  retryState: Uint8Array | undefined
  claim: ClaimedJob | undefined
}

/** `which` chooses among what there is; `number` is what the step needs beside. */
interface Step {
  readonly call: 'push' | 'claim' | 'finish' | 'redrive' | 'drop' | 'remove' | 'trim' | 'removeLogged' | 'advance'
  readonly which: readonly number[]
  readonly number: number
}

const weights = { push: 6, claim: 6, finish: 7, redrive: 1, drop: 1, remove: 1, trim: 1, removeLogged: 1, advance: 1 }
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    call: fc.oneof(
      ...Object.entries(weights).map(([call, weight]) => ({ arbitrary: fc.constant(call as Step['call']), weight })),
    ),
    which: fc.array(fc.nat(IDS.length - 1), { minLength: 1, maxLength: 5 }),
    number: fc.nat(3_000),
  }),
  { maxLength: 150, size: 'max' },
)

/** With a log, and then without. */
const COMPLETED_TWICE: Step[] = [
  { call: 'push', which: [0], number: 1 },
  { call: 'claim', which: [0], number: 0 },
  { call: 'finish', which: [3], number: 2_997 },
]

/** A dead letter for which there is no room, because as many jobs as `maxJobs` wait. */
const REDRIVEN_WITHOUT_ROOM: Step[] = [
  { call: 'push', which: Array.from({ length: settings.maxJobs }, (_, index) => index), number: 0 },
  { call: 'claim', which: [0], number: 0 },
  { call: 'push', which: [settings.maxJobs], number: 0 }, // What is claimed takes its room, too.
  { call: 'finish', which: [0], number: 7 },
  { call: 'push', which: [settings.maxJobs], number: 0 },
  { call: 'redrive', which: [0], number: 0 },
]

function outcomeOf(number: number, now: number): Outcome {
  const retryState = number % 2 === 0 ? { retryState: bytes(`${number}`) } : {}
  const outcomes: Outcome[] = [
    { complete: true },
    { complete: true, log: bytes(`${number}`) },
    { retryAt: new Date(now + number - 1_000), ...retryState },
    { deadLetter: 'no', ...retryState },
  ]
  return outcomes[number % 4] as Outcome
}

function createModel(store: QueueStore, clock: ManualClock) {
  const jobs = new Map<string, Modelled>()
  const log: { id: string; body: Uint8Array; note: Uint8Array; handledAt: Date }[] = []
  let places = 0
  const have = (...states: Modelled['state'][]) => [...jobs.values()].filter(({ state }) => states.includes(state))
  const letters = () => have('dead').sort((a, b) => a.place - b.place)
  const chosen = <T>(list: readonly T[], which: readonly number[]) => list.filter((_, index) => which.includes(index))
  const idsOf = (list: readonly { readonly id: string }[]) => list.map(({ id }) => id)

  async function ifRoom<T>(more: number, call: () => T | Promise<T>): Promise<T | undefined> {
    if (more === 0 || have('waiting', 'claimed').length + more <= settings.maxJobs) return call()
    await expect((async () => call())()).rejects.toMatchObject({ code: 'queue_full' })
    return undefined
  }

  /** Of each group the first one, unless it is claimed or waits for its retry; and those without a group. */
  function due(): Modelled[] {
    const live = have('waiting', 'claimed').sort((a, b) => a.place - b.place)
    const isFirst = (job: Modelled) => live.find(({ group }) => group === job.group) === job
    return live.filter((job) => {
      return job.state === 'waiting' && job.at <= clock.now() && (job.group === undefined || isFirst(job))
    })
  }

  const calls: Record<Step['call'], (which: readonly number[], number: number) => Promise<void>> = {
    async push(which, number) {
      const given = [...new Set(which)].map((index): Job => {
        const job = { id: IDS[index] as string, body: new Uint8Array(number % 50).fill(index) }
        if (index % 3 > 0) return { ...job, group: `${index % 3}` }
        return number % 2 === 0 ? job : { ...job, notBefore: new Date(clock.now() + number - 500) }
      })
      const fresh = given.filter(({ id }) => !jobs.has(id))
      const known = await ifRoom(fresh.length, () => store.push(given))
      if (known === undefined) return
      expect(known).toEqual(idsOf(given.filter(({ id }) => jobs.has(id))))
      for (const job of fresh) {
        const at = job.notBefore?.getTime() ?? clock.now()
        const begun = { state: 'waiting', claimCount: 0, retryState: undefined, claim: undefined } as const
        jobs.set(job.id, { ...job, ...begun, at, place: places++ })
      }
    },
    async claim({ length }) {
      const found = due()
      const claims = await store.claim(length)
      expect(claims.length).toBe(Math.min(length, found.length))
      for (const claim of claims) {
        const job = found.find(({ id }) => id === claim.id) as Modelled
        Object.assign(job, { state: 'claimed', claim, claimCount: job.claimCount + 1 })
        const { claimCount, retryState } = job
        expect(claim).toMatchObject({ claimCount, retryState, body: job.body })
      }
    },
    async finish([first = 0], number) {
      const claimed = have('claimed')
      const job = claimed[first % claimed.length]
      if (job?.claim === undefined) return
      const outcome = outcomeOf(number, clock.now())
      await store.finish(job.claim, outcome)
      const end = (state: Modelled['state'], at: number) => Object.assign(job, { state, at })
      if ('complete' in outcome) {
        end('done', clock.now())
        if (outcome.log !== undefined)
          log.push({ id: job.id, body: job.body, note: outcome.log, handledAt: new Date(clock.now()) })
      } else {
        if ('retryAt' in outcome) end('waiting', outcome.retryAt.getTime())
        else Object.assign(end('dead', clock.now()), { place: places++ })
        job.retryState = outcome.retryState
      }
      // The claim has ended: in a store of many processes, another outcome changes nothing.
      if (store.isDurable && number % 3 === 0) await store.finish(job.claim, outcomeOf(number + first, clock.now()))
    },
    async redrive(which) {
      const found = chosen(letters(), which)
      const count = await ifRoom(found.length, () => store.redrive(idsOf(found)))
      if (count === undefined) return
      expect(count).toBe(found.length)
      for (const job of found) Object.assign(job, { state: 'waiting', at: clock.now(), place: places++, claimCount: 0 })
    },
    async drop(which) {
      const found = chosen(letters(), which)
      const others = idsOf(have('waiting', 'claimed', 'done'))
      expect(await store.drop([...others, ...idsOf(found)])).toBe(found.length)
      for (const { id } of found) jobs.delete(id)
    },
    async remove(which) {
      const found = chosen(have('waiting'), which)
      const others = idsOf(have('claimed', 'dead', 'done'))
      expect(await store.remove([...others, ...idsOf(found)])).toBe(found.length)
      for (const { id } of found) jobs.delete(id)
    },
    async trim({ length: limit }, number) {
      const before = new Date(clock.now() - number)
      const maxBytes = number % 2 === 0 ? number : 1e9
      const isOver = () => log.reduce((sum, { body }) => sum + body.byteLength, 0) > maxBytes
      let count = 0
      for (; count < limit && log[0] !== undefined && (log[0].handledAt < before || isOver()); count += 1) log.shift()
      expect(await (store.log as LogStore).trim({ before, maxBytes, limit })).toBe(count)
    },
    async removeLogged(which) {
      const found = chosen(await (store.log as LogStore).list(ALL), which)
      expect(await (store.log as LogStore).remove(found.map(({ cursor }) => cursor))).toBe(found.length)
      for (const entry of chosen(log, which)) log.splice(log.indexOf(entry), 1)
    },
    advance: (_, number) => clock.advance(number),
  }

  return {
    async take({ call, which, number }: Step): Promise<void> {
      const isOver = ({ at }: Modelled) => at + settings.dedupeWindowMs <= clock.now()
      for (const job of have('done')) if (isOver(job)) jobs.delete(job.id)
      await calls[call](which, number)
    },
    async compare(): Promise<void> {
      const counts = {
        waiting: have('waiting').length,
        active: have('claimed').length,
        deadLetters: have('dead').length,
      }
      const { oldestDueAt, retrying, ...counted } = await store.counts()
      expect(counted).toMatchObject(counts)
      const claimedBefore = have('waiting').filter(({ claimCount }) => claimCount > 0)
      if (!store.isDurable) expect(retrying).toBe(claimedBefore.length) // A file counts only those that come due later.
      expect(oldestDueAt === undefined).toBe(due().length === 0)
      const found = await store.deadLetters({ ...ALL, after: undefined, newestFirst: false })
      expect(idsOf(found)).toEqual(idsOf(letters()))
      const logged = await (store.log as LogStore).list(ALL)
      expect(logged.map(({ cursor: _, ...entry }) => entry)).toEqual(log)
      const stored: string[] = []
      for await (const page of store.jobs()) stored.push(...page.map(({ id }) => id))
      expect(stored.sort()).toEqual(idsOf(have('waiting', 'claimed')).sort())
    },
  }
}

async function compareWithModel(given: readonly Step[], open: (clock: ManualClock) => QueueStore, check = () => {}) {
  const clock = manualClock()
  const store = open(clock)
  const model = createModel(store, clock)
  try {
    for (const step of given) {
      await model.take(step)
      await model.compare()
      check()
    }
  } finally {
    await store.close()
  }
}

it('in memory', async () => {
  const open = (clock: ManualClock) => createMemoryStore({ ...settings, clock }) as QueueStore
  await fc.assert(
    fc.asyncProperty(steps, (given) => compareWithModel(given, open)),
    { numRuns: runs(51), examples: [[REDRIVEN_WITHOUT_ROOM]] },
  )
})

it('in a file, whose counts are those of its rows', async () => {
  const path = newFile()
  let name = 0
  const run = async (given: readonly Step[]): Promise<void> => {
    name += 1
    const open = (clock: ManualClock) => {
      const all = { ...readOptions({ path, name: `${name}`, clock }), ...settings }
      return new SqliteStore(all, openFile(path, all)) as QueueStore
    }
    const database = new DatabaseSync(path)
    await compareWithModel(given, open, () =>
      expect(rowsIn(database, `${name}`)).toEqual(countsIn(database, `${name}`)),
    )
    database.close()
  }
  await fc.assert(fc.asyncProperty(steps, run), {
    numRuns: runs(7),
    examples: [[COMPLETED_TWICE], [REDRIVEN_WITHOUT_ROOM]],
  })
})

function countsIn(database: DatabaseSync, name: string): object {
  const row = database.prepare(
    'SELECT waiting, active, dead_letters, log_bytes, log_bytes AS bodies, 0 AS stray FROM hookline_queues WHERE name = ?',
  )
  return { ...row.get(name) }
}

/** Each group has one job that is due, claimed or held. No body is there without its job or its entry. */
function rowsIn(database: DatabaseSync, name: string): object {
  const counted = database.prepare(`
    WITH jobs AS (SELECT j.* FROM hookline_queue_jobs AS j JOIN hookline_queues USING (queue) WHERE name = ?1),
      entries AS (SELECT l.* FROM hookline_log AS l JOIN hookline_queues ON seq > queue * ${SEQS_PER_QUEUE} AND seq < (queue + 1) * ${SEQS_PER_QUEUE} WHERE name = ?1),
      lines AS (SELECT count(*) FILTER (WHERE state IN (0, 2, 5)) AS firsts FROM jobs WHERE line IS NOT NULL GROUP BY line),
      bodies AS (SELECT b.* FROM hookline_queue_bodies AS b JOIN hookline_queues ON seq > queue * ${SEQS_PER_QUEUE} AND seq < (queue + 1) * ${SEQS_PER_QUEUE} WHERE name = ?1)
    SELECT count(*) FILTER (WHERE state IN (0, 1, 4, 5)) AS waiting,
      count(*) FILTER (WHERE state = 2) AS active,
      count(*) FILTER (WHERE state = 3) AS dead_letters,
      (SELECT coalesce(sum(bytes), 0) FROM entries) AS log_bytes,
      (SELECT coalesce(sum(length(body)), 0) FROM entries JOIN bodies ON bodies.seq = job) AS bodies,
      (SELECT count(*) FROM lines WHERE firsts <> 1) + (SELECT count(*) FROM bodies WHERE seq NOT IN
        (SELECT seq FROM jobs WHERE state <> 6 UNION SELECT job FROM entries)) AS stray
    FROM jobs`)
  return { ...counted.get(name) }
}
