/** The store of a queue on PostgreSQL: pg-boss keeps the jobs, claims them, and takes them back when a lease is over. */

import type { Db, Job as FetchedJob, PgBoss } from 'pg-boss'
import { createBatcher } from '../../kit/batcher.ts'
import type { QueueCounts } from '../health.ts'
import type { QueueStore } from '../queue-store.ts'
import type { DeadLetter } from '../queue-types.ts'
import { createTransactions } from './begin.ts'
import { createNotes, type Note } from './notes.ts'
import { type Connection, isFaultOfItems, lapsed, unavailable } from './pg-boss-connection.ts'
import { laneOf, type PgBossClaim, type Pushed, secondsUntil, toClaim, toPushed } from './pg-boss-job.ts'
import { append, createLog } from './pg-boss-log.ts'
import { MIN_LEASE_MS, type Settings } from './pg-boss-options.ts'
import { addLetter, createStored } from './pg-boss-stored.ts'
import { lanesOf } from './pg-boss-tables.ts'
import { readTransaction } from './pg-boss-transaction.ts'

interface Push {
  readonly jobs: readonly Pushed[]
  readonly bytes: number
  readonly since: number
}

interface Completion {
  readonly claim: PgBossClaim
  readonly log: Uint8Array | undefined
}

/** A claim that ends in another way. */
interface End {
  readonly claim: PgBossClaim
  readonly note: Note
  readonly retryAt?: Date
  /** Why the job becomes a dead letter. */
  readonly reason?: string
}

const ROW_BYTES = 100
const BATCH_BYTES = 4 * 1024 * 1024
const FOREIGN_REASON = 'the job was not written by Hookline'
const LOOK_EVERY_MS = 1_000
const NEVER = new Date(0)

export function createPgBossStore(connection: Connection, settings: Settings): QueueStore<PgBossClaim> {
  const { name, leaseMs, timeoutMs, clock } = settings
  const { call, transact } = connection
  const place = placeOf(settings)
  const notes = createNotes(settings)
  const held = new Set<PgBossClaim>()
  const shared = { concurrency: 2, isFaultOfItems }
  const pushes = createBatcher<Push>({
    ...shared,
    send: pushAll,
    weigh: ({ bytes }) => bytes,
    maxWeight: BATCH_BYTES,
    concurrency: 1,
  })
  const completions = createBatcher<Completion>({
    ...shared,
    send: (batch) => unlessLapsed(batch, complete),
    weigh: ({ claim }) => claim.body.byteLength + ROW_BYTES,
    maxWeight: BATCH_BYTES,
  })
  const ends = createBatcher<End>({
    ...shared,
    send: (batch) => unlessLapsed(batch, endAll),
    weigh: ({ reason }) => (reason === undefined ? 1 : 3), // Round trips of its own: all of them must be over in time.
    maxWeight: 20,
  })
  const transactions = createTransactions(connection, settings, complete)
  let lanes: readonly string[] = lanesOf(name)
  let hasGroups = false // As far as this process has seen.
  let lookedAt = Number.NEGATIVE_INFINITY
  let lost: readonly PgBossClaim[] = [] // The answer to their COMMIT was lost: nobody knows whether they are claimed.
  let foundAll = false // The last claim came short: nothing else was due.

  /** What has waited for others all its time is refused, and is not stored later. */
  async function pushAll(batch: readonly Push[]): Promise<void> {
    const now = performance.now()
    if (batch.some(({ since }) => now - since >= timeoutMs)) {
      throw unavailable(name, new Error(`no response within ${timeoutMs} ms`))
    }
    const rounds = roundsOf(batch.flatMap(({ jobs }) => jobs))
    for (const round of rounds) await transact((boss, db) => insert(round, boss, db))
    connection.notify().catch(() => {}) // The next look of the others finds the jobs.
  }

  async function insert(jobs: readonly Pushed[], boss: PgBoss, db: Db): Promise<void> {
    for (const [lane, some] of Map.groupBy(jobs, (job) => laneOf(name, job))) await boss.insert(lane, [...some], { db })
  }

  /** Looks at both lanes by turns once there was a job of a group, and until then now and then: a look takes PostgreSQL a millisecond. */
  async function fetch(limit: number, boss: PgBoss, db: Db): Promise<readonly PgBossClaim[]> {
    const looksAtBoth = hasGroups || performance.now() - lookedAt >= LOOK_EVERY_MS
    if (looksAtBoth) {
      lookedAt = performance.now()
      lanes = lanes.toReversed()
    }
    const found: { readonly lane: string; readonly job: FetchedJob<unknown> }[] = []
    for (const lane of looksAtBoth ? lanes : [name]) {
      const batchSize = limit - found.length
      if (batchSize > 0) for (const job of await boss.fetch<unknown>(lane, { batchSize, db })) found.push({ lane, job })
    }
    hasGroups ||= found.some(({ lane }) => lane !== name)
    const again = found.filter(({ job }) => job.retryCount > 0).map(({ job }) => job.id)
    const noted = await notes.read(again, db)
    const now = clock.now()
    return found.map(({ lane, job }) => toClaim(job, { lane, leaseMs, stored: noted.get(job.id), now }))
  }

  /** All or none: throws unless every claim is current. */
  async function change(
    how: 'complete' | 'fail' | 'touch',
    batch: readonly { readonly claim: PgBossClaim }[],
    boss: PgBoss,
    db: Db,
  ): Promise<void> {
    for (const [lane, some] of Map.groupBy(batch, ({ claim }) => claim.lane)) {
      const attempts = some.map(({ claim: { id, retryCount } }) => ({ id, retryCount }))
      const response =
        how === 'touch' ? boss.touch(lane, attempts, { db }) : boss[how](lane, attempts, undefined, { db })
      if (((await response) as Affected).affected < some.length) throw lapsed(name)
    }
  }

  async function complete(batch: readonly Completion[], boss: PgBoss, db: Db): Promise<void> {
    await change('complete', batch, boss, db)
    await append(db, settings, batch)
    const noted = batch.filter(({ claim }) => claim.isNoted)
    await notes.delete(idsOf(noted), db)
  }

  /** `fail` makes the jobs wait, at the head of their groups, and locks their rows until the transaction ends. */
  async function endAll(batch: readonly End[], boss: PgBoss, db: Db): Promise<void> {
    await change('fail', batch, boss, db)
    const [letters, retries] = [batch.filter(isLetter), batch.filter((end) => !isLetter(end))]
    for (const { claim, note, reason } of letters) {
      await addLetter(claim, { reason, state: note.state }, settings, boss, db)
    }
    for (const { claim, retryAt } of retries) {
      const startAfter = retryAt === undefined ? 0 : secondsUntil(retryAt, clock)
      if (startAfter > 0) await boss.update(claim.lane, undefined, { id: claim.id, startAfter, db })
    }
    await notes.write(new Map(retries.map(({ claim, note }) => [claim.id, note])), db)
    await notes.delete(idsOf(letters), db)
  }

  /** A claim that is over changes nothing. Of several, each is tried alone. */
  async function unlessLapsed<Item>(
    batch: readonly Item[],
    make: (batch: readonly Item[], boss: PgBoss, db: Db) => Promise<void>,
  ): Promise<void> {
    try {
      await transact((boss, db) => make(batch, boss, db))
    } catch (error) {
      if (batch.length > 1 || (error as { readonly code?: unknown }).code !== 'lease_lapsed') throw error
    }
  }

  async function end(claim: PgBossClaim, how: Omit<End, 'claim'>): Promise<void> {
    await ends.add({ claim, ...how })
    held.delete(claim)
  }

  async function release(claims: readonly PgBossClaim[], wereHandled: boolean): Promise<void> {
    await Promise.all(claims.map((claim) => end(claim, { note: wereHandled ? claim.note : unseen(claim) })))
  }

  async function releaseLost(): Promise<void> {
    await release(lost, false)
    lost = []
  }

  /** Makes a job that others wrote a dead letter, with its data as body. If that fails, the claim lapses and the job is claimed again. */
  async function refuse(claim: PgBossClaim, report: ((letter: DeadLetter) => void) | undefined): Promise<void> {
    const { id, body, note } = claim
    const reason = FOREIGN_REASON
    await end(claim, { note, reason }).then(
      () => report?.({ id, body, reason, retryState: undefined, failedAt: new Date(clock.now()) }),
      () => {},
    )
  }

  /** When the first of the due jobs was pushed. The fetch that finds it is undone. */
  async function firstDue(): Promise<Date | undefined> {
    const due = await transact(
      async (boss, db) => {
        const found = []
        for (const lane of lanes) found.push(...(await boss.fetch(lane, { includeMetadata: true, db })))
        return found.map(({ createdOn, startAfter }) => Math.max(createdOn.getTime(), startAfter.getTime()))
      },
      timeoutMs,
      'rollback',
    )
    return due.length === 0 ? undefined : new Date(Math.min(...due))
  }

  async function counts(): Promise<QueueCounts> {
    const [stats, deadLetters, oldestDueAt] = await Promise.all([
      call((boss) => Promise.all(lanes.map((lane) => boss.getQueueStats(lane, { force: true }))), timeoutMs * 10),
      stored.countLetters(),
      firstDue(),
    ])
    const found = stats.map(([first]) => first)
    const sum = (count: 'queuedCount' | 'activeCount') => found.reduce((all, lane) => all + (lane?.[count] ?? 0), 0)
    // A boss that keeps statistics may have none yet.
    const asOf = new Date(Math.min(...found.map((lane) => (lane?.capturedOn ?? NEVER).getTime())))
    return { waiting: sum('queuedCount'), active: sum('activeCount'), deadLetters, oldestDueAt, asOf }
  }

  const stored = createStored(connection, settings, { held, notes, insert })
  return {
    isDurable: true,
    leaseMs,
    renewMs: Math.floor(MIN_LEASE_MS / 3), // Another process may have given the job a shorter lease.
    ...(place !== undefined && { place }),
    reserve: connection.reserve,
    hasTransactions: true,
    hasGroups: true,
    async push(jobs, options) {
      const at = Math.floor(clock.now()) * 1000
      const rows = jobs.map((job, index) => toPushed(job, at + index, clock))
      hasGroups ||= jobs.some(({ group }) => group !== undefined)
      if (options?.db !== undefined) {
        const db = readTransaction(options.db)
        await insert(rows, await connection.opened(), db) // Over our own connection: the queue must exist before.
        await connection.notify(db)
      } else {
        const bytes = jobs.reduce((sum, { body }) => sum + body.byteLength + ROW_BYTES, 0)
        await pushes.add({ jobs: rows, bytes, since: performance.now() })
      }
      return undefined
    },
    /** In a transaction: of a claim whose answer does not come, nothing is claimed. */
    async claim(limit, onUnreadable) {
      await releaseLost()
      let claims: readonly PgBossClaim[] = []
      try {
        await transact(async (boss, db) => {
          claims = await fetch(limit, boss, db)
        })
      } catch (error) {
        lost = claims
        throw error
      }
      foundAll = claims.length < limit
      for (const claim of claims) held.add(claim)
      await Promise.all(claims.filter(({ isOurs }) => !isOurs).map((claim) => refuse(claim, onUnreadable)))
      return claims.filter(({ isOurs }) => isOurs).sort((one, other) => one.data.at - other.data.at)
    },
    ...(canBegin(settings) && { begin: transactions.begin }),
    async finish(claim, outcome) {
      if ('complete' in outcome) {
        await completions.add({ claim, log: outcome.log })
        held.delete(claim)
        return
      }
      const note = { ...claim.note, state: outcome.retryState ?? null }
      await end(
        claim,
        'deadLetter' in outcome ? { note, reason: outcome.deadLetter } : { note, retryAt: outcome.retryAt },
      )
    },
    save(claim, retryState) {
      claim.note = { ...claim.note, state: retryState }
      claim.isNoted = true
      return unlessLapsed([claim], async (_claims, boss, db) => {
        await change('touch', [{ claim }], boss, db)
        await notes.write(new Map([[claim.id, claim.note]]), db)
      })
    },
    release: (claims, { wereHandled }) => release(claims, wereHandled),
    renew: (claims) =>
      transact(async (boss, db) => {
        for (const [lane, some] of Map.groupBy(claims, (claim) => claim.lane)) await boss.touch(lane, [...some], { db })
      }),
    async nextDueAt() {
      const isKnown = foundAll
      foundAll = false // It is true of the moment only.
      return isKnown ? undefined : firstDue()
    },
    counts,
    deadLetters: stored.deadLetters,
    redrive: stored.redrive,
    drop: stored.drop,
    jobs: stored.jobs,
    remove: stored.remove,
    log: createLog(connection, settings),
    onChange: connection.onPush,
    async close() {
      transactions.close()
      await connection.close()
      return []
    },
  }
}

/** The typings of pg-boss leave out what it documents. */
interface Affected {
  readonly affected: number
}

function idsOf(batch: readonly { readonly claim: PgBossClaim }[]): string[] {
  return batch.map(({ claim }) => claim.id)
}

function isLetter(end: End): end is End & { readonly reason: string } {
  return end.reason !== undefined
}

/** No handler saw it: its claim does not count, and is not the first one. */
function unseen({ note, claimCount }: PgBossClaim): Note {
  return { ...note, uncounted: note.uncounted + 1, first: claimCount === 1 ? null : note.first }
}

/**
 * Splits jobs so that each part has at most one job of a group, and of an id. Each part needs a transaction of its own: pg-boss orders the
 * jobs of a group by the time of their transaction, and those of one by their ids.
 */
function roundsOf(jobs: readonly Pushed[]): Iterable<readonly Pushed[]> {
  const counts = new Map<string, number>()
  const jobsByRound = Map.groupBy(new Map(jobs.map((job) => [job.id, job])).values(), ({ id, singletonKey = id }) => {
    const round = counts.get(singletonKey) ?? 0
    counts.set(singletonKey, round + 1)
    return round
  })
  return jobsByRound.values()
}

function canBegin({ connectionString, db, observe }: Settings): boolean {
  return !observe && (connectionString !== undefined || db !== undefined)
}

function placeOf({ connectionString, schema, name }: Settings): string | undefined {
  if (connectionString === undefined) return undefined
  const { host, pathname, search } = new URL(connectionString)
  return `postgres ${host}${pathname}${search} ${schema} ${name}`
}
