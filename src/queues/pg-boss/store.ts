/** The store of a queue on PostgreSQL: pg-boss keeps the jobs, claims them, and takes them back when a lease is over. */

import { setTimeout as wait } from 'node:timers/promises'
import type { Db, Job as FetchedJob, PgBoss } from 'pg-boss'
import { createBatcher } from '../../collections/batcher.ts'
import { backoff } from '../../time/backoff.ts'
import { systemClock } from '../../time/clock.ts'
import { TIMED_OUT, within } from '../../time/timeout.ts'
import type { DeadLetter, Outcome } from '../api.ts'
import type { QueueCounts } from '../health.ts'
import type { QueueStore } from '../store.ts'
import { createTransactions } from './begin.ts'
import { type Connection, isFaultOfItems, lapsed, unavailable } from './connection.ts'
import {
  type Attempt,
  createStamps,
  encode,
  isOurs,
  laneOf,
  type Note,
  type PgBossClaim,
  type Pushed,
  secondsUntil,
  toClaim,
  toPushed,
} from './job.ts'
import { append, createLog } from './log.ts'
import { MIN_LEASE_MS, type Settings } from './options.ts'
import { addLetters, createStored, type NewLetter } from './stored.ts'
import { lanesOf } from './tables.ts'
import { readTransaction, requireSeen } from './transaction.ts'

interface Push {
  readonly jobs: readonly Pushed[]
  readonly bytes: number
  isSent: boolean
  isGivenUp: boolean
}

interface Completion {
  readonly claim: PgBossClaim
  readonly log: Uint8Array | undefined
}

/** A claim that ends in another way. */
interface End {
  readonly attempt: Attempt
  readonly retry?: Note & { readonly at?: Date }
  readonly letter?: NewLetter
}

const ROW_BYTES = 100
const GROUPS_EVERY_MS = 1_000
const FOREIGN_REASON = 'the job was not written by Hookline'
const NEVER = new Date(0)

export function createPgBossStore(connection: Connection, settings: Settings): QueueStore<PgBossClaim> {
  const { name, schema, leaseMs, timeoutMs, clock } = settings
  const { call, transact } = connection
  const place = placeOf(settings)
  const lanes = lanesOf(name)
  const stamp = createStamps(clock)
  const held = new Set<PgBossClaim>()
  const shared = { weigh: () => 1, concurrency: 1, isFaultOfItems }
  const pushes = createBatcher<Push>({
    ...shared,
    send: pushAll,
    weigh: ({ bytes }) => bytes,
    maxWeight: 4 * 1024 * 1024,
  })
  const news = createBatcher<void>({ ...shared, send: () => connection.notify(), maxWeight: Number.POSITIVE_INFINITY })
  const completions = createBatcher<Completion>({
    ...shared,
    send: (batch) => ignoringLapsed(batch, () => transact((boss, db) => complete(batch, boss, db))),
    weigh: ({ claim }) => claim.body.byteLength + ROW_BYTES,
    maxWeight: 4 * 1024 * 1024,
    concurrency: 2,
  })
  const ends = createBatcher<End>({
    ...shared,
    send: (batch) => ignoringLapsed(batch, () => transact((boss, db) => endAll(batch, boss, db))),
    maxWeight: 20, // Most take a round trip of their own: all of them must be over in time.
    concurrency: 2,
  })
  const transactions = createTransactions(connection, settings, complete)
  let turn = 0
  let lookedAt = Number.NEGATIVE_INFINITY
  let foundAll = false // The last claim came short: nothing else was due.

  async function pushAll(batch: readonly Push[]): Promise<void> {
    const awaited = batch.filter(({ isGivenUp }) => !isGivenUp)
    for (const push of awaited) push.isSent = true
    const ids = new Set<string>()
    const jobs = awaited.flatMap((push) => push.jobs).filter(({ id }) => ids.size < ids.add(id).size)
    for (const round of roundsOf(jobs)) await transact(async (boss, db) => void (await insert(round, boss, db)))
    news.add().catch(() => {}) // Their next look finds the jobs.
  }

  /** Returns whether it is known that some are new. */
  async function insert(jobs: readonly Pushed[], boss: PgBoss, db: Db, returnId = false): Promise<boolean> {
    let areNew = false
    for (const [lane, some] of Map.groupBy(jobs, (job) => laneOf(name, job))) {
      if ((await boss.insert(lane, [...some], { db, returnId })) !== null) areNew = true
    }
    return areNew
  }

  /** Each lane has its half, and what the other one leaves. Without groups, what is left of some is looked for now and then. */
  async function fetch(limit: number, inTurn: boolean, boss: PgBoss, db: Db) {
    const now = clock.monotonic()
    const looksAtGroups = inTurn || now - lookedAt >= GROUPS_EVERY_MS
    if (looksAtGroups) lookedAt = now
    turn += 1
    const looked = looksAtGroups ? (turn % 2 === 0 ? lanes : lanes.toReversed()) : lanes.slice(0, 1)
    const found: { readonly lane: string; readonly row: FetchedJob<unknown> }[] = []
    for (const [index, lane] of looked.entries()) {
      const room = limit - found.length
      const batchSize = Math.ceil(room / (looked.length - index))
      if (batchSize > 0) for (const row of await boss.fetch<unknown>(lane, { batchSize, db })) found.push({ lane, row })
    }
    const again = found.filter(({ row }) => row.retryCount > 0).map(({ row }) => row.id)
    return { found, notes: again.length === 0 ? new Map<string, Note>() : await readNotes(again, db) }
  }

  async function readNotes(ids: readonly string[], db: Db): Promise<Map<string, Note>> {
    const { rows } = await db.executeSql(
      `SELECT id::text, first_at AS first, uncounted, state FROM ${schema}.hookline_retry WHERE queue = $1 AND id = ANY($2::uuid[])`,
      [name, ids],
    )
    return new Map(rows.map(({ id, ...note }) => [id, note]))
  }

  async function writeNotes(notes: readonly (Note & { readonly id: string })[], db: Db): Promise<void> {
    const rows = notes.map(({ state, ...note }) => ({ ...note, state: state && encode(state) }))
    await db.executeSql(
      `INSERT INTO ${schema}.hookline_retry (queue, id, first_at, uncounted, state)
      SELECT $1, id, first, uncounted, decode(state, 'base64')
      FROM json_to_recordset($2) AS note (id uuid, first timestamptz, uncounted int, state text)
      ON CONFLICT (queue, id) DO UPDATE SET first_at = excluded.first_at, uncounted = excluded.uncounted, state = excluded.state`,
      [name, JSON.stringify(rows)],
    )
  }

  async function deleteNotes(ids: readonly string[], db: Db): Promise<void> {
    if (ids.length === 0) return
    await db.executeSql(`DELETE FROM ${schema}.hookline_retry WHERE queue = $1 AND id = ANY($2::uuid[])`, [name, ids])
  }

  /** All or none: throws unless every claim is current. */
  async function change(
    how: 'complete' | 'fail',
    attempts: readonly Attempt[],
    boss: PgBoss,
    db: Db,
  ): Promise<Map<string, readonly string[]>> {
    const idsByLane = new Map<string, readonly string[]>()
    for (const [lane, some] of Map.groupBy(attempts, (attempt) => attempt.lane)) {
      const answer = await boss[how](lane, [...some], undefined, { db })
      if (affectedBy(answer) < some.length) throw lapsed(name)
      idsByLane.set(
        lane,
        some.map(({ id }) => id),
      )
    }
    return idsByLane
  }

  async function complete(batch: readonly Completion[], boss: PgBoss, db: Db): Promise<void> {
    await change(
      'complete',
      batch.map(({ claim }) => claim),
      boss,
      db,
    )
    const entries = batch.flatMap(({ claim: { id, data }, log }) =>
      log === undefined ? [] : [{ id, body: data.body, note: log }],
    )
    if (entries.length > 0) await append(db, settings, entries)
    await deleteNotes(
      batch.flatMap(({ claim }) => (claim.hasNote ? [claim.id] : [])),
      db,
    )
  }

  /** `fail` makes the jobs wait, at the head of their groups, and locks their rows until the transaction ends. */
  async function endAll(batch: readonly End[], boss: PgBoss, db: Db): Promise<void> {
    await change(
      'fail',
      batch.map(({ attempt }) => attempt),
      boss,
      db,
    )
    const notes: (Note & { readonly id: string })[] = []
    const letters: NewLetter[] = []
    for (const {
      attempt: { id, lane },
      retry,
      letter,
    } of batch) {
      if (letter !== undefined) letters.push(letter)
      if (retry === undefined) continue
      const { at, ...note } = retry
      notes.push({ id, ...note })
      const startAfter = at === undefined ? 0 : secondsUntil(at, clock)
      if (startAfter > 0) await boss.update(lane, undefined, { id, startAfter, db })
    }
    if (notes.length > 0) await writeNotes(notes, db)
    if (letters.length === 0) return
    for (const { id, lane } of letters) await boss.update(lane, null, { id, deleteAfterSeconds: 0, db }) // The id stays known.
    for (const [lane, some] of Map.groupBy(letters, (letter) => letter.lane)) {
      await boss.cancel(
        lane,
        some.map(({ id }) => id),
        { db },
      )
    }
    await addLetters(letters, settings, db)
    await deleteNotes(
      letters.map(({ id }) => id),
      db,
    )
  }

  /** One claim that is over changes nothing. Of several, each is tried alone. */
  async function ignoringLapsed(batch: readonly unknown[], make: () => Promise<void>): Promise<void> {
    try {
      await make()
    } catch (error) {
      if (batch.length > 1 || (error as { readonly code?: unknown }).code !== 'lease_lapsed') throw error
    }
  }

  function noteOf({ firstAt, uncounted, retryState, saved }: PgBossClaim, more: Partial<Note> = {}): Note {
    return { first: firstAt, uncounted, state: saved ?? retryState ?? null, ...more }
  }

  function letterOf(claim: PgBossClaim, reason: string, state: Uint8Array | undefined): NewLetter {
    const { id, lane, group, data } = claim
    return { id, lane, group, body: data.body, reason, state }
  }

  /** Makes a job that others wrote a dead letter, with its data as body. */
  async function refuse({ lane, row }: { lane: string; row: FetchedJob<unknown> }): Promise<DeadLetter> {
    const { id, data, retryCount, groupId } = row
    const body = Buffer.from(JSON.stringify(data ?? null))
    const group = groupId ?? undefined
    const letter = { id, lane, group, body: encode(body), reason: FOREIGN_REASON, state: undefined }
    await ends.add({ attempt: { id, retryCount, lane }, letter })
    return { id, body, reason: FOREIGN_REASON, retryState: undefined, failedAt: new Date(clock.now()) }
  }

  async function release(claims: readonly PgBossClaim[], wereHandled: boolean): Promise<void> {
    for (const claim of claims) held.delete(claim)
    const unseen = (claim: PgBossClaim) => ({
      uncounted: claim.uncounted + 1,
      ...(claim.claimCount === 1 && { first: null }),
    })
    const make = (claim: PgBossClaim) => noteOf(claim, wereHandled ? {} : unseen(claim))
    await Promise.all(claims.map((claim) => ends.add({ attempt: claim, retry: make(claim) })))
  }

  /** The answer to a COMMIT was lost: nobody knows whether they are claimed. */
  async function releaseLost(claims: readonly PgBossClaim[]): Promise<void> {
    for (let failures = 1; failures <= 10; failures += 1) {
      await wait(backoff(failures, { firstMs: 200, maxMs: 5_000 }), undefined, { ref: false })
      if (
        await release(claims, false).then(
          () => true,
          () => false,
        )
      )
        return
    }
  }

  /** When the first of the due jobs was pushed. The fetch that finds it is undone. */
  async function firstDue(): Promise<Date | undefined> {
    const due = await transact(
      async (boss, db) => {
        const fetched = []
        for (const lane of lanes) fetched.push(...(await boss.fetch(lane, { includeMetadata: true, db })))
        return fetched.map(({ createdOn, startAfter }) => Math.max(createdOn.getTime(), startAfter.getTime()))
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

  const stored = createStored(connection, settings, { held, deleteNotes, insert })
  return {
    isDurable: true,
    leaseMs,
    renewMs: Math.floor(MIN_LEASE_MS / 3), // Another process may have given the job a shorter lease.
    ...(place !== undefined && { place }),
    reserve: connection.reserve,
    hasTransactions: true,
    hasGroups: true,
    async push(jobs, options) {
      const rows = jobs.map((job) => toPushed(job, stamp(), clock))
      if (options?.db !== undefined) {
        const db = readTransaction(options.db)
        const boss = await call(async (opened) => opened) // Over our own connection: the queue must exist before.
        if (!(await insert(rows, boss, db, true))) await requireSeen(rows, boss, db, name)
        await connection.notify(db)
        return undefined
      }
      const bytes = jobs.reduce((sum, { body }) => sum + body.byteLength + ROW_BYTES, 0)
      const push = { jobs: rows, bytes, isSent: false, isGivenUp: false }
      const pushing = pushes.add(push)
      // What is sent ends in time. What waits for others is given up, and is not sent later.
      if ((await within(pushing, timeoutMs, systemClock)) === TIMED_OUT && !push.isSent) {
        push.isGivenUp = true
        throw unavailable(name, new Error(`no response within ${timeoutMs} ms`))
      }
      await pushing
      return undefined
    },
    /** In a transaction: of a claim whose answer does not come, nothing is claimed. */
    async claim(limit, onUnreadable, inTurn = false) {
      let fetched: Awaited<ReturnType<typeof fetch>> | undefined
      const read = ({ found, notes }: NonNullable<typeof fetched>) =>
        found
          .filter(({ row }) => isOurs(row))
          .map(({ lane, row }) => toClaim(row, { lane, leaseMs, note: notes.get(row.id), now: clock.now() }))
      try {
        await transact(async (boss, db) => {
          fetched = await fetch(limit, inTurn, boss, db)
        })
      } catch (error) {
        if (fetched !== undefined) void releaseLost(read(fetched))
        throw error
      }
      const claimed = fetched as NonNullable<typeof fetched>
      foundAll = claimed.found.length < limit
      for (const foreign of claimed.found.filter(({ row }) => !isOurs(row))) {
        // If that fails, the claim lapses and the job is claimed again.
        await refuse(foreign).then(onUnreadable, () => {})
      }
      const claims = read(claimed).sort((one, other) => one.data.at - other.data.at)
      for (const claim of claims) held.add(claim)
      return claims
    },
    ...(canBegin(settings) && { begin: transactions.begin }),
    async finish(claim, outcome: Outcome) {
      if ('complete' in outcome) await completions.add({ claim, log: outcome.log })
      else if ('deadLetter' in outcome) {
        await ends.add({ attempt: claim, letter: letterOf(claim, outcome.deadLetter, outcome.retryState) })
      } else {
        const { retryAt, retryState } = outcome
        await ends.add({ attempt: claim, retry: { ...noteOf(claim, { state: retryState ?? null }), at: retryAt } })
      }
      held.delete(claim)
    },
    async save(claim, retryState) {
      await transact(async (boss, db) => {
        if (affectedBy(await boss.touch(claim.lane, claim, { db })) === 0) return
        claim.hasNote = true
        claim.saved = retryState
        await writeNotes([{ id: claim.id, ...noteOf(claim, { state: retryState }) }], db)
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
      await Promise.all([connection.close(), transactions.close()])
      return []
    },
  }
}

/**
 * Splits jobs so that each part has at most one job of a group. Each part needs a transaction of its own: pg-boss orders the jobs of a
 * group by the time of their transaction, and those of one by their ids.
 */
function roundsOf(jobs: readonly Pushed[]): Pushed[][] {
  const rounds: Pushed[][] = []
  const counts = new Map<string, number>()
  for (const job of jobs) {
    const { singletonKey: group } = job
    const round = group === undefined ? 0 : (counts.get(group) ?? 0)
    if (group !== undefined) counts.set(group, round + 1)
    rounds[round] ??= []
    rounds[round].push(job)
  }
  return rounds
}

/** Its typings leave out what it documents. */
function affectedBy(response: object): number {
  return (response as { readonly affected: number }).affected
}

function canBegin({ connectionString, db, observe }: Settings): boolean {
  return !observe && (connectionString !== undefined || db !== undefined)
}

function placeOf({ connectionString, schema, name }: Settings): string | undefined {
  if (connectionString === undefined) return undefined
  const { host, pathname, search } = new URL(connectionString)
  return `postgres ${host}${pathname}${search} ${schema} ${name}`
}
