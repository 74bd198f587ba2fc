/** The way in: pushes that arrive together become one insert. */

import type { Clock } from '../protocol/clock.ts'
import { createBatches } from './pg-boss-batches.ts'
import type { Connection } from './pg-boss-connection.ts'
import { isFaultOfData, unavailable } from './pg-boss-error.ts'
import type { Settings } from './pg-boss-options.ts'
import { createStamps, type Data, delayUntil, encode, FOREVER_SECONDS, priorityAt, secondsOf } from './pg-boss-row.ts'
import { GROUP, type Statements } from './pg-boss-sql.ts'
import type { Job } from './queue.ts'

/** Puts jobs in: all of them or none. */
export type Push = (jobs: ReadonlyMap<string, Job>) => Promise<void>

interface Arrival {
  readonly rows: readonly Row[]
  readonly bytes: number
  /** By the machine's clock, in milliseconds. */
  readonly since: number
}

interface Row {
  readonly id: string
  readonly notBefore: number | undefined
  readonly data: Data
}

/** Makes it. */
export function createPush(connection: Connection, statements: Statements, settings: Settings): Push {
  const { name, timeoutMs, clock } = settings
  const stamp = createStamps(clock)
  const batches = createBatches<Arrival>({
    send,
    weigh: ({ bytes }) => bytes,
    most: MOST_BYTES,
    isFaultOfItems: isFaultOfData,
  })

  async function send(arrivals: readonly Arrival[]): Promise<void> {
    const byId = new Map<string, Row>()
    for (const { rows } of arrivals) for (const row of rows) if (!byId.has(row.id)) byId.set(row.id, row)
    const limitMs = timeoutMs - (performance.now() - Math.min(...arrivals.map(({ since }) => since)))
    if (limitMs <= 0) throw unavailable(name, new Error('no answer to those before'))
    const missing = await insert(byId, limitMs)
    if (missing.length > 0) await insertForgotten(missing, byId, limitMs)
  }

  /** Those that are known are not in the answer. */
  async function insert(byId: ReadonlyMap<string, Row>, limitMs: number): Promise<string[]> {
    const jobs = toInserts([...byId.values()], settings)
    const ids = await connection.call(({ boss, db }) => boss.insert(name, jobs, { db, returnId: true }), { limitMs })
    const inserted = new Set(ids)
    return inserted.size === byId.size ? [] : [...byId.keys()].filter((id) => !inserted.has(id))
  }

  /** pg-boss deletes what was done long ago only now and then. */
  async function insertForgotten(ids: string[], byId: ReadonlyMap<string, Row>, limitMs: number): Promise<void> {
    const { rows } = await connection.call(({ db }) => db.executeSql(statements.forget, [name, ids]), { limitMs })
    const again = new Map(rows.map(({ id }: { id: string }) => [id, byId.get(id) as Row]))
    if (again.size > 0) await insert(again, limitMs)
  }

  return async (jobs) => {
    let bytes = 0
    const rows: Row[] = []
    for (const { id, body, notBefore } of jobs.values()) {
      const at = notBefore !== undefined && notBefore > clock.now() ? notBefore : undefined
      bytes += body.byteLength + OVERHEAD
      rows.push({ id, notBefore: at, data: { at: at === undefined ? stamp() : at * 1000, body: encode(body) } })
    }
    if (rows.length > 0) await batches.add({ rows, bytes, since: performance.now() })
  }
}

/** What goes out together at most. */
const MOST_BYTES = 4 * 1024 * 1024
/** Of a row beside its body. */
const OVERHEAD = 300

interface Insert {
  readonly id: string
  readonly data: Data
  readonly priority: number
  readonly startAfter: string
}

/** pg-boss itself gives up no job: its leases end by the heartbeat only. */
function toInserts(rows: readonly Row[], { leaseMs, clock }: Settings): Insert[] {
  const heartbeatSeconds = secondsOf(leaseMs)
  return rows.map(({ id, notBefore, data }, index) => ({
    id,
    data,
    priority: priorityAt(data.at),
    startAfter: startAfter(notBefore, rows.length - index, clock),
    heartbeatSeconds,
    expireInSeconds: FOREVER_SECONDS,
    group: { id: GROUP },
  }))
}

/** As an interval. What is due at once is so by a microsecond longer than what comes after it. */
function startAfter(notBefore: number | undefined, place: number, clock: Clock): string {
  return notBefore === undefined ? `-${place} microseconds` : `${delayUntil(notBefore, clock)} milliseconds`
}
