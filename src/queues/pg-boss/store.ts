/** The store of a queue on PostgreSQL: pg-boss keeps the jobs, claims them, and takes them back when a lease is over. */

import { randomUUID } from 'node:crypto'
import type { Db, Job as FetchedJob, JobInsert, PgBoss } from 'pg-boss'
import { createBatcher } from '../../collections/batcher.ts'
import { systemClock } from '../../time/clock.ts'
import { TIMED_OUT, within } from '../../time/timeout.ts'
import type { DeadLetter, Job } from '../api.ts'
import { digestOf } from '../groups.ts'
import type { QueueStore, ReleaseOptions } from '../store.ts'
import { createTransactions } from './begin.ts'
import { type Connection, isFaultOfData, unavailable } from './connection.ts'
import { MIN_LEASE_MS, type Settings } from './options.ts'
import { deadQueueOf } from './prepare.ts'
import {
  createStamps,
  type Data,
  encode,
  FOREIGN_REASON,
  foreignBody,
  nextData,
  type PgBossClaim,
  readClaim,
  readDueGroups,
  readFirstDue,
  saveData,
  secondsUntil,
  stateOf,
  timestampOf,
} from './rows.ts'
import { createStored } from './stored.ts'
import { insertInOrder, insertInto } from './transaction.ts'

interface Push {
  readonly jobs: readonly JobInsert[]
  readonly bytes: number
}

const ROW_BYTES = 100

interface Rewrite {
  readonly claim: { readonly id: string; readonly retryCount: number }
  readonly data: Data | null
  readonly startAfter?: number
  readonly letter?: JobInsert
}

export function createPgBossStore(connection: Connection, settings: Settings): QueueStore<PgBossClaim> {
  const { name, schema, leaseMs, timeoutMs, observe, clock, onError } = settings
  const place = placeOf(settings)
  const { count, ...stored } = createStored(connection, settings)
  const shared = { weigh: () => 1, concurrency: 1, isFaultOfItems: isFaultOfData }
  const pushes = createBatcher<Push>({
    ...shared,
    send: (batch) => insert(batch.flatMap(({ jobs }) => jobs)),
    weigh: ({ bytes }) => bytes,
    maxWeight: 4 * 1024 * 1024,
  })
  const completions = createBatcher<PgBossClaim>({
    ...shared,
    send: (claims) => connection.call(async (boss) => void (await boss.complete(name, [...claims]))),
    maxWeight: 1_000,
  })
  const rewrites = createBatcher<Rewrite>({
    ...shared,
    send: (batch) => connection.transaction((boss, db) => rewrite(batch, boss, db)),
    maxWeight: 20, // Each takes two round trips: all of them must be over in time.
    concurrency: 2,
  })
  const transactions = createTransactions(connection, settings)
  const stamp = createStamps(clock)
  const claimLock = Number.parseInt(digestOf(`hookline ${schema} ${name}`), 16)
  let foundAll = false // The last claim came short: nothing else was due.

  async function insert(jobs: readonly JobInsert[]): Promise<void> {
    const ids = new Set<unknown>()
    const distinct = jobs.filter(({ id }) => ids.size < ids.add(id).size)
    const inGroups = distinct.filter(({ group }) => group !== undefined)
    const areInLine = new Set(inGroups.map(({ group }) => group?.id)).size < inGroups.length
    if (areInLine) await connection.transaction((boss, db) => insertInOrder(boss, settings, distinct, db))
    else await connection.call((boss) => boss.insert(name, distinct))
  }

  /**
   * Claims in order, up to the first repeated group, then looks again. A lock serializes claims, because pg-boss sees only committed
   * ones. Groups that were busy are ignored also if they are free by now: pg-boss fetches the jobs of one group in any order.
   */
  async function fetchInTurn(limit: number, boss: PgBoss, db: Db): Promise<FetchedJob<unknown>[]> {
    const limitMs = Math.ceil(timeoutMs / 2) // Before the call gives up, and with it the connections of all others.
    await db.executeSql(`SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = ${limitMs};
      SET LOCAL idle_in_transaction_session_timeout = ${limitMs}; SELECT pg_advisory_xact_lock(${claimLock})`)
    const jobs: FetchedJob<unknown>[] = []
    for (let isOver = false; !isOver; ) {
      const most = limit - jobs.length
      const { groups, busy } = await readDueGroups(db, schema, name, most)
      const repeated = groups.findIndex((group, index) => group !== null && groups.indexOf(group) < index)
      const batchSize = repeated === -1 ? groups.length : repeated
      const options = { batchSize, groupConcurrency: 1, ignoreGroups: busy, db }
      const found = batchSize === 0 ? [] : await boss.fetch<unknown>(name, options)
      jobs.push(...found)
      isOver = found.length === 0 || jobs.length === limit || (repeated === -1 && groups.length < most)
    }
    return jobs
  }

  /**
   * `fail` makes a job wait that is claimed by this attempt, and locks its row until the transaction ends; the token tells
   * such rows from those that wait for another reason.
   */
  async function rewrite(rewrites: readonly Rewrite[], boss: PgBoss, db: Db): Promise<void> {
    const token = randomUUID()
    const attempts = rewrites.map(({ claim: { id, retryCount } }) => ({ id, retryCount }))
    await boss.fail(name, attempts, { token }, { db })
    const letters: JobInsert[] = []
    for (const { claim, data, startAfter = 0, letter } of rewrites) {
      const { id } = claim
      const [row] = await boss.findJobs(name, { id, db })
      if ((row?.output as { readonly token?: unknown } | null | undefined)?.token !== token) continue
      // The row of a dead letter stays, without an end, so that its id stays known.
      await boss.update(name, data, letter === undefined ? { id, startAfter, db } : { id, deleteAfterSeconds: 0, db })
      if (letter !== undefined) letters.push(letter)
    }
    if (letters.length === 0) return
    const ids = letters.map(({ id }) => id as string) // Hookline gives every job one.
    await boss.cancel(name, ids, { db })
    await boss.insert(deadQueueOf(name), letters, { db })
  }

  function toInsert({ id, body, notBefore, group }: Job): JobInsert<Data> {
    const data = { at: stamp(), body: encode(body) }
    const startAfter = notBefore && { startAfter: secondsUntil(notBefore, clock) }
    return { id, data, ...startAfter, ...(group !== undefined && { group: { id: digestOf(group) } }) }
  }

  /** A claim that lapsed left no first time. Each took a lease at least before the job was due again. */
  async function withFirstTime(claim: PgBossClaim): Promise<PgBossClaim> {
    if (claim.claimCount === 1 || claim.data.firstAt !== undefined) return claim
    const [row] = await connection.call((boss) => boss.findJobs(name, { id: claim.id })).catch(() => [])
    if (row === undefined) return claim
    const firstAt = row.startAfter.getTime() - (claim.claimCount - 1) * leaseMs
    return { ...claim, firstAt: new Date(Math.max(firstAt, row.createdOn.getTime())) }
  }

  function makeLetter(claim: { readonly id: string; readonly retryCount: number }, letter: Omit<Data, 'at'>) {
    const at = stamp()
    const row = { id: claim.id, data: { at, ...letter }, startAfter: timestampOf(at) }
    return rewrites.add({ claim, data: null, letter: row })
  }

  async function makeUnreadable({ id, data, retryCount }: FetchedJob<unknown>): Promise<DeadLetter> {
    const body = foreignBody(data)
    await makeLetter({ id, retryCount }, { body: encode(body), reason: encode(FOREIGN_REASON) })
    return { id, body, reason: FOREIGN_REASON, retryState: undefined, failedAt: new Date(clock.now()) }
  }

  async function release(claims: readonly PgBossClaim[], { wereHandled }: ReleaseOptions): Promise<void> {
    const ends = claims.map((claim) => {
      const { firstAt, claimCount, data } = claim
      const first = wereHandled || claimCount > 1 ? { firstAt: firstAt.getTime() } : {}
      const count = wereHandled ? {} : { before: (data.before ?? 0) + 1 }
      return rewrites.add({ claim, data: nextData(claim, { ...data, ...first, ...count }) })
    })
    await Promise.all(ends)
  }

  const peek = (boss: PgBoss) => readFirstDue(boss.getDb(), schema, name)

  return {
    isDurable: true,
    leaseMs,
    renewMs: Math.floor(MIN_LEASE_MS / 3), // Another process may have given the job a shorter lease.
    ...(place !== undefined && { place }),
    reserve: connection.reserve,
    hasTransactions: true,
    hasGroups: true,
    async push(jobs, options) {
      const rows = jobs.map(toInsert)
      if (options?.db !== undefined) {
        await insertInto(options.db, rows, settings, connection)
        return undefined
      }
      const bytes = jobs.reduce((sum, { body }) => sum + body.byteLength + ROW_BYTES, 0)
      // Others may go first: what waits for them rejects in time, too.
      const pushed = await within(pushes.add({ jobs: rows, bytes }), timeoutMs, systemClock)
      if (pushed === TIMED_OUT) throw unavailable(name, new Error(`no response within ${timeoutMs} ms`))
      return undefined
    },
    async claim(limit, onUnreadable, inTurn = false) {
      const onLate = (late: readonly FetchedJob<unknown>[]): Promise<void> => {
        const claims = late.map((row) => readClaim(row, clock)).filter((claim) => claim !== undefined)
        return release(claims, { wereHandled: false }).catch(onError)
      }
      const rows = inTurn
        ? await connection.transaction((boss, db) => fetchInTurn(limit, boss, db), { onLate })
        : await connection.call((boss) => boss.fetch<unknown>(name, { batchSize: limit }), { onLate })
      foundAll = rows.length < limit
      const claims: PgBossClaim[] = []
      for (const row of rows) {
        const claim = readClaim(row, clock)
        if (claim !== undefined) claims.push(claim)
        else await makeUnreadable(row).then(onUnreadable, () => {}) // If that fails, the claim lapses and the row is claimed again.
      }
      return Promise.all(claims.sort((one, other) => one.data.at - other.data.at).map(withFirstTime))
    },
    ...(canBegin(settings) && { begin: transactions.begin }),
    async finish(claim, outcome) {
      if ('complete' in outcome) return completions.add(claim)
      const state = stateOf(outcome.retryState)
      if ('deadLetter' in outcome) {
        return makeLetter(claim, { body: claim.data.body, reason: encode(outcome.deadLetter), ...state })
      }
      const data = nextData(claim, { firstAt: claim.firstAt.getTime(), ...state })
      return rewrites.add({ claim, data, startAfter: secondsUntil(outcome.retryAt, clock) })
    },
    async save(claim, retryState) {
      claim.data = nextData(claim, { firstAt: claim.firstAt.getTime(), ...stateOf(retryState) })
      await connection.call((boss) => saveData(boss.getDb(), schema, name, claim))
    },
    release,
    renew: (claims) => connection.call(async (boss) => void (await boss.touch(name, [...claims]))),
    async nextDueAt() {
      if (observe) return (await count()).oldestDueAt
      const isKnown = foundAll
      foundAll = false // It is true of the moment only.
      return isKnown ? undefined : connection.call(peek)
    },
    async counts() {
      if (observe) return count()
      const answers = await connection.call(
        (boss) =>
          Promise.all([boss.getQueueStats(name, { force: true }), boss.previewRedrive(deadQueueOf(name)), peek(boss)]),
        { limitMs: timeoutMs * 10 },
      )
      const [[stats], { total }, oldest] = answers
      return {
        waiting: stats?.queuedCount ?? 0,
        active: stats?.activeCount ?? 0,
        deadLetters: total,
        oldestDueAt: oldest,
        asOf: stats?.capturedOn ?? NEVER, // A boss that keeps statistics, and has none yet.
      }
    },
    ...stored,
    onChange: connection.onPush,
    async close() {
      await Promise.all([connection.close(), transactions.close()])
      return []
    },
  }
}

function canBegin({ connectionString, db, observe }: Settings): boolean {
  return !observe && (connectionString !== undefined || db !== undefined)
}

function placeOf({ connectionString, schema, name }: Settings): string | undefined {
  if (connectionString === undefined) return undefined
  const { host, pathname, search } = new URL(connectionString)
  return `postgres ${host}${pathname}${search} ${schema} ${name}`
}

const NEVER = new Date(0)
