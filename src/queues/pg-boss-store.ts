/** Where a queue on PostgreSQL keeps its jobs, for the loop: pg-boss hands them out, and keeps them while they run. */

import { createAlarm } from './alarm.ts'
import type { Release, Store } from './loop.ts'
import type { Connection, Session } from './pg-boss-connection.ts'
import type { Settings } from './pg-boss-options.ts'
import { type Data, decode, encode, readData } from './pg-boss-row.ts'
import { type Claim, createSettle, heldBy } from './pg-boss-settle.ts'
import type { Statements } from './pg-boss-sql.ts'
import { createStatistics } from './pg-boss-statistics.ts'
import type { ClaimedJob } from './queue.ts'

/** What pg-boss hands out. */
interface Fetched {
  readonly id: string
  readonly data: unknown
  readonly retryCount: number
  readonly heartbeatSeconds: number | null
}

/** A row that can be read. */
interface Read {
  readonly row: Fetched
  readonly data: Data
  readonly body: Uint8Array
}

/** The store of a loop, and how it ends. */
interface PgBossStore extends Store {
  /** Renews no lease any more: what could be neither settled nor given back ends with its own. */
  leave(): void
}

/** Makes it. */
export function createPgBossStore(
  connection: Connection,
  statements: Statements,
  settings: Settings,
  onError: (error: unknown) => void,
): PgBossStore {
  const { name, leaseMs, clock } = settings
  const settle = createSettle(connection, statements, settings)
  const noteDuration = createStatistics(connection, settings, onError)
  const claims = new WeakMap<ClaimedJob, Claim>()
  const held = new Set<Claim>()
  const alarm = createAlarm(clock, renew)

  async function fetch(boss: Session['boss'], db: Session['db'], limit: number): Promise<readonly Fetched[]> {
    const start = performance.now()
    const rows: readonly Fetched[] = await boss.fetch<unknown>(name, { batchSize: limit, db })
    noteDuration(performance.now() - start)
    return rows
  }

  function renew(): void {
    if (held.size === 0) return
    const attempts = [...held].map(({ id, attempt }) => ({ id, retryCount: attempt }))
    connection.call(({ boss, db }) => boss.touch(name, attempts, { db })).catch(onError)
    renewLater()
  }

  function renewLater(): void {
    const leases = [...held].map((claim) => claim.leaseMs)
    alarm.set(leases.length === 0 ? undefined : clock.now() + Math.min(leaseMs, ...leases) / 3)
  }

  function letGo(claim: Claim): void {
    held.delete(claim)
    if (held.size === 0) alarm.set(undefined)
  }

  /** pg-boss does not say in which order it hands out what it hands out together. */
  async function take(rows: readonly Fetched[]): Promise<ClaimedJob[]> {
    const read = rows.map(readRow)
    const jobs = read.filter((row) => row !== undefined).sort((one, other) => one.data.at - other.data.at)
    for (const [index, row] of rows.entries()) if (read[index] === undefined) bury(row)
    const lapsed = jobs.filter(({ row, data }) => data.firstAt === undefined && deliveriesOf(row, data) > 1)
    const firstTimes = lapsed.length === 0 ? NONE : await keepFirstTimes(lapsed.map(({ row }) => row))
    return jobs.map((job) => handOut(job, firstTimes.get(job.row.id)))
  }

  function handOut({ row, data, body }: Read, firstAt: number | undefined): ClaimedJob {
    const claim = { ...claimOf(row), ...(firstAt !== undefined && { firstAt }) }
    const job = {
      id: row.id,
      body,
      deliveries: deliveriesOf(row, data),
      firstAt: claim.firstAt,
      state: decode(data.state),
    }
    claims.set(job, claim)
    held.add(claim)
    return job
  }

  function claimOf({ id, data, retryCount, heartbeatSeconds }: Fetched): Claim {
    const { firstAt = clock.now(), before = 0 } = readData(data) ?? {}
    const lease = heartbeatSeconds === null ? leaseMs : heartbeatSeconds * 1000
    return { id, attempt: retryCount, firstAt, before, leaseMs: lease }
  }

  async function keepFirstTimes(rows: readonly Fetched[]): Promise<ReadonlyMap<string, number>> {
    const values = [name, ...heldBy(rows.map(claimOf))]
    const { rows: kept } = await connection.call(({ db }) => db.executeSql(statements.lapsed, values))
    return new Map(kept.map(({ id, firstAt }: { id: string; firstAt: number }) => [id, Number(firstAt)]))
  }

  /** Somebody else wrote it; it must not come again and again. */
  function bury(row: Fetched): void {
    const body = encode(Buffer.from(JSON.stringify(row.data)))
    const claim = { ...claimOf(row), instead: { at: clock.now() * 1000, body } }
    settle(claim, { dead: UNREADABLE }).catch(onError)
  }

  async function giveBack(given: readonly Claim[], { wereSeen }: Release): Promise<void> {
    for (const claim of given) letGo(claim)
    const rows = given.map(({ id, attempt, firstAt, before }) => {
      return { id, attempt, data: wereSeen ? { firstAt } : { before: before + 1 } }
    })
    await connection.call(({ db }) => db.executeSql(statements.release, [name, JSON.stringify(rows)]))
  }

  return {
    async claim(limit) {
      const rows = await connection.call(({ boss, db }) => fetch(boss, db, limit), {
        late: (rows) => giveBack(rows.map(claimOf), { wereSeen: false }).catch(onError),
      })
      const jobs = await take(rows)
      if (held.size > 0) renewLater()
      return jobs
    },
    async settle(job, outcome) {
      const claim = claims.get(job) as Claim // Each job that is handed out has one.
      await settle(claim, outcome)
      letGo(claim)
    },
    release: (jobs, how) =>
      giveBack(
        jobs.map((job) => claims.get(job) as Claim),
        how,
      ),
    leave() {
      held.clear()
      alarm.set(undefined)
    },
    async nextAt() {
      const { rows } = await connection.call(({ db }) => db.executeSql(statements.next, [name]))
      const inMs: unknown = rows[0]?.inMs
      return inMs === null ? undefined : clock.now() + Math.max(0, Math.ceil(Number(inMs)))
    },
  }
}

const UNREADABLE = 'its row in the database cannot be read'

const NONE: ReadonlyMap<string, number> = new Map()

function readRow(row: Fetched): Read | undefined {
  const data = readData(row.data)
  const body = decode(data?.body)
  return data === undefined || body === undefined ? undefined : { row, data, body }
}

function deliveriesOf({ retryCount }: Fetched, { before = 0 }: Data): number {
  return retryCount - before + 1
}
