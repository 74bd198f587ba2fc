/** The store of a queue in PostgreSQL. pg-boss keeps the jobs, claims them, and makes them wait again when their leases expire. */

import type { Db, Job as FetchedJob, PgBoss } from 'pg-boss'
import { createBatcher } from '../../kit/batcher.ts'
import type { QueueCounts } from '../health.ts'
import type { CheckedPage, LogStore, MarkStore, QueueStore, ReleaseOptions } from '../queue-store.ts'
import type { Completion, DeadLetter, Job, Outcome, PushOptions, QueueUse, StoredJob } from '../queue-types.ts'
import { Transactions } from './begin.ts'
import { createNotes, type Note, type Notes } from './notes.ts'
import { type Connection, codeOf, isFaultOfItems, lapsed, unavailable } from './pg-boss-connection.ts'
import { type PgBossClaim, type Pushed, secondsUntil, toClaim, toPushed } from './pg-boss-job.ts'
import { append, createLog } from './pg-boss-log.ts'
import { createMarks } from './pg-boss-marks.ts'
import { LISTING_FACTOR, MIN_LEASE_MS, type Settings } from './pg-boss-options.ts'
import { addLetter, insert, StoredJobs } from './pg-boss-stored.ts'
import { lanesOf } from './pg-boss-tables.ts'
import { readTransaction } from './pg-boss-transaction.ts'

interface Push {
  readonly jobs: readonly Pushed[]
  readonly bytes: number
  readonly since: number
}

/** The end of a claim whose job is not complete. */
interface End {
  readonly claim: PgBossClaim
  readonly note: Note
  readonly retryAt?: Date
  /** Why the job becomes a dead letter; undefined if the job waits again. */
  readonly reason?: string
}

/** About how many bytes a job takes in addition to its body. */
const ROW_BYTES = 100
const BATCH_BYTES = 4 * 1024 * 1024
const FOREIGN_REASON = 'the job was not written by Hookline'
/** How often to look for jobs with a group while this process has seen none, in milliseconds. */
const LOOK_FOR_GROUPS_MS = 1_000
const EPOCH = new Date(0)

/** Changes either all claims of a batch or none, in a transaction. */
type Change<Item> = (batch: readonly Item[], boss: PgBoss, db: Db) => Promise<void>

export class PgBossStore implements QueueStore<PgBossClaim> {
  readonly isDurable = true
  readonly hasTransactions = true
  readonly hasGroups = true
  readonly leaseMs: number
  // This is a third of the shortest possible lease, because another process may have set that lease for the job.
  readonly renewMs: number = Math.floor(MIN_LEASE_MS / 3)
  readonly place?: string
  readonly begin?: Transactions['begin']
  readonly log: LogStore
  readonly marks: MarkStore
  readonly #connection: Connection
  readonly #settings: Settings
  readonly #notes: Notes
  readonly #stored: StoredJobs
  readonly #transactions: Transactions
  readonly #held = new Set<PgBossClaim>()
  readonly #pushes = createBatcher<Push>({
    send: (batch) => this.#pushAll(batch),
    weigh: ({ bytes }) => bytes,
    maxWeight: BATCH_BYTES,
    concurrency: 1,
    isFaultOfItems,
  })
  readonly #completions = createBatcher<Completion<PgBossClaim>>({
    send: (batch) => this.#unlessLapsed(batch, this.#complete),
    weigh: ({ claim }) => claim.body.byteLength + ROW_BYTES,
    maxWeight: BATCH_BYTES,
    concurrency: 2,
    isFaultOfItems,
  })
  readonly #ends = createBatcher<End>({
    send: (batch) => this.#unlessLapsed(batch, this.#endAll),
    // The weight of an end is the number of its round trips. All round trips of a batch must fit in the time limit.
    weigh: ({ reason }) => (reason === undefined ? 1 : 3),
    maxWeight: 20,
    concurrency: 2,
    isFaultOfItems,
  })
  /** The names of the two pg-boss queues. Each claim that looks at both of them first reverses their order. */
  #lanes: readonly string[]
  /** Whether this process has seen a job with a group. */
  #sawGroups = false
  #lookedForGroupsAt = Number.NEGATIVE_INFINITY
  /** The claims for which the answer to COMMIT was lost. They may or may not have been made. */
  #lostClaims: readonly PgBossClaim[] = []
  /** Whether the last claim got all jobs that were due. */
  #claimedAllDue = false

  constructor(connection: Connection, settings: Settings) {
    const place = placeOf(settings)
    if (place !== undefined) this.place = place
    this.leaseMs = settings.leaseMs
    this.log = createLog(connection, settings)
    this.marks = createMarks(connection, settings)
    this.#connection = connection
    this.#settings = settings
    this.#notes = createNotes(settings)
    this.#stored = new StoredJobs(connection, settings, this.#held, this.#notes)
    this.#transactions = new Transactions(connection, settings, this.#complete)
    this.#lanes = lanesOf(settings.name)
    const hasPool = settings.connectionString !== undefined || settings.db !== undefined
    if (hasPool && !settings.observe) this.begin = (limitMs) => this.#transactions.begin(limitMs)
  }

  reserve(use: QueueUse): void {
    this.#connection.reserve(use)
  }

  async push(jobs: readonly Job[], options?: PushOptions): Promise<undefined> {
    const { name, clock } = this.#settings
    const at = Math.floor(clock.now()) * 1000
    const rows = jobs.map((job, index) => toPushed(job, at + index, clock))
    this.#sawGroups ||= jobs.some(({ group }) => group !== undefined)
    if (options?.db !== undefined) {
      const db = readTransaction(options.db)
      await insert(name, rows, await this.#connection.opened(), db) // `opened` first creates the queue, over the queue's own connection.
      await this.#connection.notify(db)
    } else {
      const bytes = jobs.reduce((sum, { body }) => sum + body.byteLength + ROW_BYTES, 0)
      await this.#pushes.add({ jobs: rows, bytes, since: performance.now() })
    }
  }

  /** Claims jobs in a transaction, so that a claim that fails before its COMMIT claims nothing. */
  async claim(limit: number, onUnreadable?: (letter: DeadLetter) => void): Promise<readonly PgBossClaim[]> {
    await this.release(this.#lostClaims, { wereHandled: false })
    this.#lostClaims = []
    let claims: readonly PgBossClaim[] = []
    try {
      await this.#connection.transact(async (boss, db) => {
        claims = await this.#fetch(limit, boss, db)
      })
    } catch (error) {
      this.#lostClaims = claims
      throw error
    }
    this.#claimedAllDue = claims.length < limit
    for (const claim of claims) this.#held.add(claim)
    await Promise.all(claims.filter(({ isOurs }) => !isOurs).map((claim) => this.#refuse(claim, onUnreadable)))
    return claims.filter(({ isOurs }) => isOurs).sort((one, other) => one.data.at - other.data.at)
  }

  async finish(claim: PgBossClaim, outcome: Outcome): Promise<void> {
    if ('complete' in outcome) {
      await this.#completions.add({ claim, log: outcome.log })
      this.#held.delete(claim)
      return
    }
    const note = { ...claim.note, state: outcome.retryState ?? null }
    if ('deadLetter' in outcome) await this.#endClaim({ claim, note, reason: outcome.deadLetter })
    else await this.#endClaim({ claim, note, retryAt: outcome.retryAt })
  }

  save(claim: PgBossClaim, retryState: Uint8Array): Promise<void> {
    claim.note = { ...claim.note, state: retryState }
    claim.isNoted = true
    return this.#unlessLapsed([claim], async (_claims, boss, db) => {
      await this.#change('touch', [{ claim }], boss, db) // Checks that the claim has not ended, and locks its row.
      await this.#notes.write(new Map([[claim.id, claim.note]]), db)
    })
  }

  async release(claims: readonly PgBossClaim[], { wereHandled }: ReleaseOptions): Promise<void> {
    await Promise.all(
      claims.map((claim) => this.#endClaim({ claim, note: wereHandled ? claim.note : noteOfUncounted(claim) })),
    )
  }

  /** Extends the leases, which pg-boss calls heartbeats. */
  renew(claims: readonly PgBossClaim[]): Promise<void> {
    return this.#connection.transact(async (boss, db) => {
      for (const [lane, some] of Map.groupBy(claims, (claim) => claim.lane)) await boss.touch(lane, [...some], { db })
    })
  }

  async nextDueAt(): Promise<Date | undefined> {
    const isNoneDue = this.#claimedAllDue
    // The value is used only once, to save a query right after the claim. The queue finds jobs that come due later by polling every
    // `pollMs`.
    this.#claimedAllDue = false
    return isNoneDue ? undefined : this.#firstDue()
  }

  async counts(): Promise<QueueCounts> {
    // With `force`, pg-boss counts again if its statistics are older than a minute, instead of an hour.
    const readStats = (boss: PgBoss) =>
      Promise.all(this.#lanes.map((lane) => boss.getQueueStats(lane, { force: true })))
    const [stats, deadLetters, oldestDueAt] = await Promise.all([
      this.#connection.call(readStats, this.#settings.timeoutMs * LISTING_FACTOR),
      this.#stored.countLetters(),
      this.#firstDue(),
    ])
    const found = stats.map(([first]) => first)
    const sum = (count: 'queuedCount' | 'activeCount') => found.reduce((all, lane) => all + (lane?.[count] ?? 0), 0)
    // A boss with `persistQueueStats` may have no statistics yet; `asOf` is then the epoch.
    const asOf = new Date(Math.min(...found.map((lane) => (lane?.capturedOn ?? EPOCH).getTime())))
    return { waiting: sum('queuedCount'), active: sum('activeCount'), deadLetters, oldestDueAt, asOf }
  }

  deadLetters(page: CheckedPage): Promise<readonly DeadLetter[]> {
    return this.#stored.deadLetters(page)
  }

  redrive(ids: readonly string[]): Promise<number> {
    return this.#stored.redrive(ids)
  }

  drop(ids: readonly string[]): Promise<number> {
    return this.#stored.drop(ids)
  }

  rewrite(letters: readonly DeadLetter[]): Promise<void> {
    return this.#stored.rewrite(letters)
  }

  jobs(): AsyncIterable<readonly StoredJob[]> {
    return this.#stored.jobs()
  }

  remove(ids: readonly string[]): Promise<number> {
    return this.#stored.remove(ids)
  }

  onChange(listener: () => void): void {
    this.#connection.onPush(listener)
  }

  async close(): Promise<[]> {
    this.#transactions.close()
    await this.#connection.close()
    return []
  }

  /**
   * Stores the jobs of a batch of pushes. If a push has spent all of its time waiting behind other pushes, the batch is refused, because
   * the caller has given up.
   */
  async #pushAll(batch: readonly Push[]): Promise<void> {
    const { name, timeoutMs } = this.#settings
    const now = performance.now()
    if (batch.some(({ since }) => now - since >= timeoutMs)) {
      throw unavailable(name, new Error(`no response within ${timeoutMs} ms`))
    }
    const rounds = roundsOf(batch.flatMap(({ jobs }) => jobs))
    for (const round of rounds) await this.#connection.transact((boss, db) => insert(name, round, boss, db))
    this.#connection.notify().catch(() => {}) // If this fails, other processes find the jobs at their next poll.
  }

  /**
   * Claims jobs. Once this process has seen a job with a group, it claims from both queues, which take turns at being
   * first. Until then, it queries the queue for groups only every {@link LOOK_FOR_GROUPS_MS}, because each query takes
   * about a millisecond.
   */
  async #fetch(limit: number, boss: PgBoss, db: Db): Promise<readonly PgBossClaim[]> {
    const { name, leaseMs, clock } = this.#settings
    const looksAtBoth = this.#sawGroups || performance.now() - this.#lookedForGroupsAt >= LOOK_FOR_GROUPS_MS
    if (looksAtBoth) {
      this.#lookedForGroupsAt = performance.now()
      this.#lanes = this.#lanes.toReversed()
    }
    const found: { readonly lane: string; readonly job: FetchedJob<unknown> }[] = []
    for (const lane of looksAtBoth ? this.#lanes : [name]) {
      const batchSize = limit - found.length
      if (batchSize > 0) for (const job of await boss.fetch<unknown>(lane, { batchSize, db })) found.push({ lane, job })
    }
    this.#sawGroups ||= found.some(({ lane }) => lane !== name)
    const again = found.filter(({ job }) => job.retryCount > 0).map(({ job }) => job.id)
    const noted = await this.#notes.readNotes(again, db)
    const now = clock.now()
    return found.map(({ lane, job }) => toClaim(job, { lane, leaseMs, stored: noted.get(job.id), now }))
  }

  /**
   * Changes claims in pg-boss, which skips claims that have ended. If pg-boss skips any claim, this method throws, so that the transaction
   * changes no claims.
   */
  async #change(
    how: 'complete' | 'fail' | 'touch',
    batch: readonly { readonly claim: PgBossClaim }[],
    boss: PgBoss,
    db: Db,
  ): Promise<void> {
    for (const [lane, some] of Map.groupBy(batch, ({ claim }) => claim.lane)) {
      const attempts = some.map(({ claim: { id, retryCount } }) => ({ id, retryCount }))
      const response =
        how === 'touch' ? boss.touch(lane, attempts, { db }) : boss[how](lane, attempts, undefined, { db })
      if (((await response) as Affected).affected < some.length) throw lapsed(this.#settings.name)
    }
  }

  readonly #complete: Change<Completion<PgBossClaim>> = async (batch, boss, db) => {
    await this.#change('complete', batch, boss, db)
    await append(db, this.#settings, batch)
    const noted = batch.filter(({ claim }) => claim.isNoted)
    await this.#notes.delete(idsOf(noted), db)
  }

  /**
   * Ends claims without completing their jobs. `fail` makes the jobs wait, at the head of their groups, and locks their rows until the
   * transaction ends.
   */
  readonly #endAll: Change<End> = async (batch, boss, db) => {
    await this.#change('fail', batch, boss, db)
    const [letters, retries] = [batch.filter(isLetter), batch.filter((end) => !isLetter(end))]
    for (const { claim, note, reason } of letters) {
      await addLetter(claim, { reason, state: note.state }, this.#settings, boss, db)
    }
    for (const { claim, retryAt } of retries) {
      const startAfter = retryAt === undefined ? 0 : secondsUntil(retryAt, this.#settings.clock)
      if (startAfter > 0) await boss.update(claim.lane, undefined, { id: claim.id, startAfter, db })
    }
    await this.#notes.write(new Map(retries.map(({ claim, note }) => [claim.id, note])), db)
    await this.#notes.delete(idsOf(letters), db)
  }

  /**
   * Changes claims. Does nothing if the batch is a single claim that has ended. Rejects if one of several claims has
   * ended; the batcher then tries each claim by itself.
   */
  async #unlessLapsed<Item>(batch: readonly Item[], change: Change<Item>): Promise<void> {
    try {
      await this.#connection.transact((boss, db) => change(batch, boss, db))
    } catch (error) {
      if (batch.length > 1 || codeOf(error) !== 'lease_lapsed') throw error
    }
  }

  async #endClaim(end: End): Promise<void> {
    await this.#ends.add(end)
    this.#held.delete(end.claim)
  }

  /**
   * Turns a job that another program wrote into a dead letter with the data of the job as its body. If this fails, the claim lapses and the
   * job is claimed again.
   */
  async #refuse(claim: PgBossClaim, report: ((letter: DeadLetter) => void) | undefined): Promise<void> {
    const { id, body, note } = claim
    const reason = FOREIGN_REASON
    await this.#endClaim({ claim, note, reason }).then(
      () => report?.({ id, body, reason, retryState: undefined, failedAt: new Date(this.#settings.clock.now()) }),
      () => {},
    )
  }

  /**
   * Returns the time at which the first of the due jobs came due. Only `fetch` knows which jobs are due, so this method fetches one job
   * from each queue, and rolls back.
   */
  async #firstDue(): Promise<Date | undefined> {
    const find = async (boss: PgBoss, db: Db): Promise<number[]> => {
      const found = []
      for (const lane of this.#lanes) found.push(...(await boss.fetch(lane, { includeMetadata: true, db })))
      return found.map(({ createdOn, startAfter }) => Math.max(createdOn.getTime(), startAfter.getTime()))
    }
    const due = await this.#connection.transact(find, this.#settings.timeoutMs, 'rollback')
    return due.length === 0 ? undefined : new Date(Math.min(...due))
  }
}

/** A pg-boss result that says how many jobs were changed. The field is documented, but missing from the pg-boss types. */
interface Affected {
  readonly affected: number
}

function idsOf(batch: readonly { readonly claim: PgBossClaim }[]): string[] {
  return batch.map(({ claim }) => claim.id)
}

function isLetter(end: End): end is End & { readonly reason: string } {
  return end.reason !== undefined
}

/** Returns the note to store after a claim whose job no handler saw: the claim does not count, not even as the first one. */
function noteOfUncounted({ note, claimCount }: PgBossClaim): Note {
  return { ...note, uncounted: note.uncounted + 1, first: claimCount === 1 ? null : note.first }
}

/**
 * Keeps only the last of several jobs with the same id, and splits the rest into rounds with at most one job of each group. Each round
 * needs its own transaction, because pg-boss orders the jobs of a group by the times of their transactions.
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

function placeOf({ connectionString, schema, name }: Settings): string | undefined {
  if (connectionString === undefined) return undefined
  const { host, pathname, search } = new URL(connectionString)
  return `postgres ${host}${pathname}${search} ${schema} ${name}`
}
