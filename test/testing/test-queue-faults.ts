/** For the tests of queues on which most depends, what an engine may do wrongly that they must notice. Each row stands alone. */

import { randomUUID } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createQueue } from '../../src/store/create-queue.ts'
import { createMemoryStore, type MemoryQueueOptions } from '../../src/store/memory/memory-store.ts'
import type { LogStore, MarkStore, QueueStore } from '../../src/store/queue-store.ts'
import type { ClaimedJob, HandleJob, Job, Outcome, Queue } from '../../src/store/queue-types.ts'
import { type ManualClock, manualClock } from '../../src/testing/manual-clock.ts'
import { bytes, complete, type TestedQueue, text } from '../../src/testing/test-queue/context.ts'

type MemoryClaim = Parameters<ReturnType<typeof createMemoryStore>['finish']>[0]
type Claim = MemoryClaim & { readonly lease: { until: number } }

interface Store extends QueueStore<Claim> {
  readonly log: LogStore
  readonly marks: MarkStore
  readonly claims: ReadonlyMap<string, Claim>
  /** The jobs that wait or are claimed. */
  all(): Claim['entry'][]
}

/** What is wrong with an engine. Each queue over the same jobs has its own of what `store` and `queue` return. */
export interface Fault {
  readonly isDurable?: boolean
  readonly pollMs?: number
  readonly memory?: MemoryQueueOptions
  store?(store: Store, clock: ManualClock): Partial<Store>
  queue?(queue: Queue, clock: ManualClock, store: Store): Partial<Queue>
}

const LEASE_MS = 9_000
const DEDUPE_WINDOW_MS = 60_000

export const PROMISED = { leaseMs: LEASE_MS, hasLog: true, hasGroups: true, hasMarks: true }

/** Creates queues that share jobs in memory, with leases. Its tests wait for some turns of the event loop, not for a time. */
export function createFaulty({ isDurable = true, pollMs = 1_000, memory, store, queue }: Fault): TestedQueue {
  const clock = manualClock()
  const shared = shareStore(clock, isDurable, memory)
  const open = (own = clock): Queue => {
    const made = createQueue({ ...shared, ...store?.(shared, clock) }, { name: 'faulty', pollMs, clock: own })
    return { ...made, ...queue?.(made, clock, shared) }
  }
  const { now, advance } = clock
  return {
    ...{ queue: open(), now, advance, dedupeWindowMs: DEDUPE_WINDOW_MS, timeoutMs: 0 },
    ...{ another: () => open(), stalled: () => open(manualClock()), tick: () => advance(1_000) },
  }
}

function shareStore(clock: ManualClock, isDurable: boolean, options?: MemoryQueueOptions): Store {
  const memory = createMemoryStore({ clock, dedupeWindowMs: DEDUPE_WINDOW_MS, ...options }) as unknown as Store
  const claims = new Map<string, Claim>()
  const isCurrent = ({ id, lease }: Claim): boolean => claims.get(id)?.lease === lease
  const store: Store = {
    ...memory,
    ...{ isDurable, leaseMs: LEASE_MS, claims },
    all: () => [...(memory.jobs() as Iterable<Claim['entry'][]>)].flat(),
    async claim(limit) {
      const lapsed = [...claims.values()].filter(({ lease }) => lease.until <= clock.now())
      await store.release(lapsed, { wereHandled: true })
      const found = (await memory.claim(limit)).map((claim) => ({ ...claim, lease: { until: clock.now() + LEASE_MS } }))
      for (const claim of found) claims.set(claim.id, claim)
      return found
    },
    renew(held) {
      for (const { lease } of held) lease.until = clock.now() + LEASE_MS
    },
    save(claim, retryState) {
      if (isCurrent(claim)) claim.entry.retryState = retryState
    },
    finish(claim, outcome) {
      if (!isCurrent(claim)) return
      claims.delete(claim.id)
      return memory.finish(claim, outcome)
    },
    release(held, { wereHandled }) {
      for (const claim of held.filter(isCurrent)) {
        if (!wereHandled) claim.entry.claimCount -= 1
        const { retryState } = claim.entry
        void store.finish(claim, { retryAt: new Date(clock.now()), ...(retryState && { retryState }) })
      }
    },
    close: () => (isDurable ? [] : memory.close()),
  }
  return store
}

/** Replaces one call. */
const inStore = <Name extends keyof Store>(
  name: Name,
  change: (call: Store[Name], store: Store, clock: ManualClock) => Store[Name],
): Fault => ({ store: (store, clock) => ({ [name]: change(store[name], store, clock) }) })

const inQueue = <Name extends keyof Queue>(
  name: Name,
  change: (call: Queue[Name], queue: Queue, clock: ManualClock, store: Store) => Queue[Name],
): Fault => ({ queue: (queue, clock, store) => ({ [name]: change(queue[name], queue, clock, store) }) })

const inMarks = (change: (marks: MarkStore) => Partial<MarkStore>): Fault => ({
  store: ({ marks }) => ({ marks: { ...marks, ...change(marks) } }),
})

const inLog = (change: (log: LogStore) => Partial<LogStore>): Fault =>
  inStore('log', (log) => ({ ...log, ...change(log) }))

const handles = (change: (handle: HandleJob, given: Parameters<HandleJob>) => ReturnType<HandleJob>): Fault =>
  inQueue('work', (work) => (handle, how) => work((...given) => change(handle, given), how))

const doesNothing = (name: 'pause' | 'drain') => inQueue(name, () => async () => {})

const pushes = (change: (job: Job) => Job): Fault => inStore('push', (push) => (jobs) => push(jobs.map(change)))

const claimsAs = (change: (claim: Claim) => Partial<ClaimedJob>): Fault =>
  inStore('claim', (claim) => async (limit) => (await claim(limit)).map((each) => ({ ...each, ...change(each) })))

type Kind<Name extends string> = Extract<Outcome, { readonly [name in Name]: unknown }>

const outcomes = (change: (outcome: Outcome, claim: Claim, now: number) => Outcome): Fault => ({
  store: ({ finish }, { now }) => ({ finish: (claim, outcome) => finish(claim, change(outcome, claim, now())) }),
})

/** Records such an outcome in another way. */
const finishes = <Name extends 'complete' | 'retryAt' | 'deadLetter'>(
  name: Name,
  change: (outcome: Kind<Name>, claim: Claim, now: number) => Outcome,
): Fault => outcomes((outcome, claim, now) => (name in outcome ? change(outcome as Kind<Name>, claim, now) : outcome))

const completes = (change: (outcome: Kind<'complete'>) => Outcome) => finishes('complete', change)
const retries = (change: (outcome: Kind<'retryAt'>) => Outcome) => finishes('retryAt', change)

/** `forget` does not see the others. */
const sees = (isSeen: (job: Claim['entry'], index: number, now: number) => boolean): Fault =>
  inStore('jobs', (_, { all }, { now }) => () => [all().filter((job, index) => isSeen(job, index, now()))])

/** Makes room for an id that is there. */
const replaces = (call: 'remove' | 'drop'): Fault =>
  inStore('push', (push, store) => async (jobs) => {
    await store[call](jobs.map(({ id }) => id))
    return push(jobs)
  })

/** Has ids of its own in each process. */
const remembers = (change: (store: Store, ids: Set<string>) => Partial<Store>): Fault => ({
  store: (store) => change(store, new Set()),
})

/** The same for those that this process finished. No other ids are known once a job is complete. */
const remembersFinished = (change: (store: Store, ids: Set<string>) => Partial<Store>): Fault => ({
  memory: { dedupeWindowMs: 0 },
  ...remembers((store, own) => ({
    ...change(store, own),
    finish(claim, outcome) {
      own.add(claim.id)
      return store.finish(claim, outcome)
    },
  })),
})

const IGNORES_GROUPS = pushes(({ group, ...job }) => job)
const SAVES_NOTHING = inStore('save', () => () => {})
const REJECTED_IS_DEAD = handles((handle, given) => handle(...given).catch(() => ({ deadLetter: 'no' })))
const NEVER_ABORTS = handles((handle, [job, _, ...rest]) => handle(job, new AbortController().signal, ...rest))
const KNOWS_ITS_OWN = remembersFinished((store, own) => ({
  push: (jobs) => store.push(jobs.filter(({ id }) => !own.has(id))),
}))

export const FAULTS: Readonly<Record<string, Fault>> = {
  'push: a job reaches': pushes((job) => ({ ...job, body: bytes(text(job.body) ?? '') })),
  'push: the id of': replaces('remove'),
  'push: the id of a completed': { memory: { dedupeWindowMs: 0 } },
  'push: the id of a dead': replaces('drop'),
  'push: an id is': { memory: { dedupeWindowMs: 1e9 } },
  'work: as many jobs': inStore('claim', (claim) => (limit) => claim(limit + 1)),
  'work: no job is': pushes(({ notBefore, ...job }) => job),
  'pause: nothing more is': doesNothing('pause'),
  'drain: waits for due': doesNothing('drain'),
  'retry: not before its': retries(({ retryAt }) => ({ retryAt })),
  'retry: a handler that': REJECTED_IS_DEAD,
  'retry: a handler that resolves': handles(async (handle, given) => (await handle(...given)) ?? complete()),
  'dead letters: are listed': finishes('deadLetter', ({ deadLetter }) => ({ deadLetter })),
  'dead letters: a page': inStore('deadLetters', (list) => (page) => list({ ...page, maxBytes: 1e9 })),
  'redrive: a dead letter': claimsAs(({ claimCount, retryState }) => ({
    retryState: claimCount === 1 ? undefined : retryState,
  })),
  'redrive: a dead letter becomes': claimsAs(() => ({ firstAt: new Date(0) })),
  'forget: deletes matching': sees(({ dueAt }, _, now) => dueAt <= now),
  'forget: leaves a claimed': inStore('remove', (remove, { claims, finish }) => async (ids) => {
    const held = ids.flatMap((id) => claims.get(id) ?? [])
    for (const claim of held) await finish(claim, complete())
    return held.length + (await remove(ids))
  }),
  'forget: finds matching': sees((_, index) => index < 1_000),
  'close: waits for a': inQueue('close', (close) => () => close({ graceMs: 0 })),
  'close: aborts the signal': NEVER_ABORTS,
  'close: aborts at once': NEVER_ABORTS,
  'close: claims nothing afterwards': inQueue('close', () => async () => []),
  'close: returns exactly': inStore('close', (_, { all }) => all),
  'close: continues with due': inStore('isDurable', () => false),
  'durable: jobs outlive their': inStore('close', (_, { all, remove }, { now }) => async () => {
    await remove(all().flatMap(({ id, dueAt }) => (dueAt > now() ? id : [])))
    return []
  }),
  'durable: a claim that': inStore('release', (release) => (claims) => release(claims, { wereHandled: true })),
  'durable: the claim count': claimsAs(() => ({ claimCount: 1 })),
  'durable: another process': remembersFinished(({ deadLetters }, own) => ({
    deadLetters: async (page) => (await deadLetters(page)).filter(({ id }) => own.has(id)),
  })),
  'durable: the dedupe window': KNOWS_ITS_OWN,
  'durable: a saved state': SAVES_NOTHING,
  'durable: a queue handles': { pollMs: 1e9 },
  'durable: only one of': remembers(({ claim, release }, seen) => ({
    async claim(limit) {
      const claims = await claim(limit)
      const fresh = claims.filter(({ id }) => seen.size < seen.add(id).size)
      await release(fresh, { wereHandled: true })
      return claims
    },
  })),
  'durable: only one of many': inStore('push', (push, { all }) => async (jobs) => {
    const stored = all().map(({ body }) => text(body))
    await nextTurn()
    return push(jobs.flatMap((job) => (stored.includes(text(job.body)) ? [] : { ...job, id: randomUUID() })))
  }),
  'durable: a queue knows': KNOWS_ITS_OWN,
  'durable: a job that': inStore('release', () => () => {}),
  'lease: a saved state': SAVES_NOTHING,
  'lease: an outcome after': {
    store: ({ claims, finish }) => ({ finish: (claim, outcome) => finish(claims.get(claim.id) ?? claim, outcome) }),
  },
  'log: has the jobs': completes((outcome) => ({ log: bytes('noted'), ...outcome })),
  'log: an empty note': completes((outcome) => (outcome.log?.length === 0 ? complete() : outcome)),
  'log: has each of': finishes('complete', (outcome, { body }) => (text(body) === '7' ? complete() : outcome)),
  'log: a page ends': inLog(({ list }) => ({ list: (page) => list({ ...page, maxBytes: 1e9 }) })),
  'log: entries beyond the': { memory: { dedupeWindowMs: 0 } },
  'log: the oldest entries': inLog(({ trim }) => ({ trim: (which) => trim({ ...which, maxBytes: 1e9 }) })),
  'log: forget deletes matching': inLog(({ remove }) => ({ remove: (cursors) => remove(cursors.slice(1)) })),
  'durable: a log outlives': inStore('close', (close, { log }) => async () => {
    await log.trim({ before: new Date(8e15), maxBytes: 0, limit: 1e6 })
    return close()
  }),
  'durable: whoever follows': inLog(({ list }) => ({
    list: async (page) => (await list(page)).filter(({ body }) => text(body) !== '7'),
  })),
  'groups: one job of': IGNORES_GROUPS,
  'groups: a job that': retries((outcome) => ({ ...outcome, retryAt: new Date(Number(outcome.retryAt) + 1) })),
  'groups: a dead letter': inStore('redrive', (_, store) => async () => {
    const found = await store.deadLetters({ after: undefined, limit: 1e6, maxBytes: 1e9, newestFirst: false })
    await store.drop(found.map(({ id }) => id))
    await store.push(found.map(({ id, body }) => ({ id, body })))
    return found.length
  }),
  'groups: a retry holds': IGNORES_GROUPS,
  'durable: groups: processes': IGNORES_GROUPS,
  'durable: groups: a job': inStore('release', (_, { finish }) => async (claims) => {
    for (const claim of claims) await finish(claim, { deadLetter: 'left' })
  }),
  'marks: thousands of keys': inMarks(({ list }) => ({ list: (version) => list(version, 499) })),
  'marks: a paused queue': inMarks(() => ({ list: () => [] })),
  'durable: marks outlive': inStore('close', (close, { marks }) => async () => {
    await marks.set([], new Date(8e15))
    return close()
  }),
  'durable: each process that': inMarks(({ list }) => ({
    list: async (version, limit) => (await list(version, limit)).slice(1),
  })),
}
