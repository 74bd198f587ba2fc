/** The jobs of one queue in its file: every step that can be part of a transaction. */

import { randomUUID } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import type { DeadJob, QueueCounts } from './queue.ts'
import type { Claim, ClaimedRow, Hold, PackedJob } from './sqlite-commands.ts'
import { prepare } from './sqlite-statements.ts'

/** What is fixed for a queue. */
export interface JobsOptions {
  readonly name: string
  readonly maxJobs: number
  readonly leaseMs: number
  readonly knownForMs: number
}

/** The steps. Each is made inside a transaction, between {@link begin} and {@link end}. */
export interface Jobs {
  /** A transaction begins: what others have written since is there. */
  begin(): void
  /** It is about to end: writes down how many jobs there are now. */
  end(): void
  /** Puts jobs in that are not known, all of them or none. Returns false when there is no room. */
  push(jobs: readonly PackedJob[], now: number): boolean
  claim(limit: number, owner: number, now: number): Claim
  /** When the next job is due; 0 when one is. */
  nextAt(now: number): number | undefined
  done(hold: Hold, now: number): void
  retry(hold: Hold, at: number, state: Uint8Array | undefined, now: number): void
  bury(hold: Hold, reason: string, state: Uint8Array | undefined, now: number): void
  /** Gives jobs back, ahead of all that is due. */
  release(holds: readonly Hold[], now: number): void
  /** Renews the leases of an owner, and shortens those that setting the clock back has made too long. */
  renew(owner: number, now: number): void
  counts(now: number): QueueCounts
  dead(after: string | undefined, limit: number): readonly DeadJob[]
  /** Returns undefined when there is no room. */
  redrive(ids: readonly string[] | 'all', now: number): number | undefined
  drop(ids: readonly string[] | 'all'): number
}

/** Opens a queue in a file that has its tables. */
export function createJobs(database: DatabaseSync, options: JobsOptions): Jobs {
  const { name, maxJobs, leaseMs, knownForMs } = options
  const sql = prepare(database, name)
  /** What the transaction adds to the counts of the queue. */
  let change = { waiting: 0, active: 0, dead: 0 }
  let done = 0
  let backOfLine: number | undefined

  function nextPlace(): number {
    backOfLine ??= sql.lastPlace(DUE)
    backOfLine += 1
    return backOfLine
  }

  /** What has come due, or was left behind by a process that died, stands in line from now on. */
  function ripen(now: number): void {
    for (const row of sql.ripe(LATER, now, RIPEN_AT_A_TIME)) sql.line(row, nextPlace())
    for (const row of sql.ripe(ACTIVE, now, RIPEN_AT_A_TIME)) {
      sql.line(row, nextPlace())
      move('active', 'waiting')
    }
  }

  function move(from: keyof typeof change, to?: keyof typeof change): void {
    change[from] -= 1
    if (to !== undefined) change[to] += 1
  }

  function requireRoom(jobs: number): boolean {
    const { waiting, active } = sql.stored()
    return waiting + active + change.waiting + change.active + jobs <= maxJobs
  }

  function push(jobs: readonly PackedJob[], now: number): boolean {
    if (!requireRoom(jobs.length)) {
      const fresh = jobs.filter(({ id }) => !sql.isKnown(toBytes(id), now))
      if (!requireRoom(fresh.length)) return false
    }
    ripen(now)
    for (const { id, body, notBefore } of jobs) {
      const isLater = notBefore !== undefined && notBefore > now
      const status = isLater ? LATER : DUE
      const place = isLater ? toTime(notBefore) : nextPlace()
      const dueAt = toTime(notBefore ?? now)
      change.waiting += sql.insert({ status, place, dueAt, id: toBytes(id), body, now })
    }
    return true
  }

  function claim(limit: number, owner: number, now: number): Claim {
    ripen(now)
    const rows: ClaimedRow[] = []
    const until = now + leaseMs
    for (const found of sql.first(Math.min(limit, CLAIM_AT_A_TIME))) {
      const row = Number(found.row)
      const deliveries = Number(found.deliveries) + 1
      move('waiting', 'active')
      sql.take({ row, until, leaseMs, owner, deliveries, now })
      const hold = { row, deliveries, owner }
      const { body, state } = found
      const id = toId(found.id)
      if (
        id === undefined ||
        !isBytes(body) ||
        !(state === null || isBytes(state)) ||
        !Number.isSafeInteger(deliveries)
      ) {
        setAside(hold, id, body, now)
      } else {
        const firstAt = typeof found.first_at === 'number' ? found.first_at : now
        rows.push({ id, body, state: state ?? undefined, firstAt, hold })
      }
    }
    return { rows, nextAt: nextAt(now) }
  }

  /** What nobody can read goes among the dead, in a form that can be listed. */
  function setAside(hold: Hold, id: string | undefined, body: unknown, now: number): void {
    const bytes = isBytes(body) ? body : new TextEncoder().encode(body === null ? '' : String(body))
    sql.mend({ row: hold.row, id: toBytes(id ?? randomUUID()), body: bytes, deliveries: hold.deliveries })
    bury(hold, UNREADABLE, undefined, now)
  }

  function nextAt(now: number): number | undefined {
    if (sql.exists(DUE)) return LONG_AGO
    const times = [sql.firstPlace(LATER), sql.firstPlace(ACTIVE)].filter((time) => time !== undefined)
    const next = times.length === 0 ? undefined : Math.min(...times)
    return next !== undefined && next <= now ? LONG_AGO : next
  }

  function bury(hold: Hold, reason: string, state: Uint8Array | undefined, now: number): void {
    const place = sql.lastPlace(DEAD) + 1
    const bytes = new TextEncoder().encode(reason) // As text SQLite would end it at U+0000.
    if (sql.bury(hold, { place, reason: bytes, state: state ?? null, now }) === 1) move('active', 'dead')
  }

  return {
    begin() {
      change = { waiting: 0, active: 0, dead: 0 }
      done = 0
      backOfLine = undefined
    },
    end() {
      if (change.waiting !== 0 || change.active !== 0 || change.dead !== 0) sql.count(change)
    },
    push,
    claim,
    nextAt,
    done(hold, now) {
      const id = sql.remove(hold)
      if (id === undefined) return
      move('active')
      if (done % FORGET_EVERY === 0) sql.forget(now, 2 * FORGET_EVERY)
      done += 1
      sql.remember(id, now + knownForMs)
    },
    retry(hold, at, state, now) {
      if (at <= now) ripen(now)
      const isLater = at > now
      const place = isLater ? toTime(at) : nextPlace()
      const status = isLater ? LATER : DUE
      const changes = sql.retry(hold, { status, place, dueAt: toTime(at), state: state ?? null })
      if (changes === 1) move('active', 'waiting')
    },
    bury,
    release(holds, now) {
      let place = sql.firstPlace(DUE) ?? 0
      for (const hold of [...holds].reverse()) {
        place -= 1
        if (sql.release(hold, { place, now }) === 1) move('active', 'waiting')
      }
    },
    renew(owner, now) {
      sql.renew(owner, now + leaseMs)
      sql.clamp(now)
    },
    counts(now) {
      const { waiting, active, dead } = sql.stored()
      const later = sql.firstPlace(LATER)
      const times = [sql.firstDueAt(), later !== undefined && later <= now ? later : undefined]
      const due = times.filter((time) => time !== undefined)
      return { waiting, active, dead, oldestDueAt: due.length === 0 ? undefined : Math.min(...due) }
    },
    dead(after, limit) {
      const place = after === undefined ? undefined : sql.deadPlace(toBytes(after))
      return sql.deadAfter(place ?? LEAST, limit).map(toDead)
    },
    redrive(ids, now) {
      if (ids === 'all') {
        if (!requireRoom(sql.stored().dead)) return undefined
        const count = sql.redriveAll(nextPlace(), now)
        backOfLine = undefined
        change.dead -= count
        change.waiting += count
        return count
      }
      const dead = [...new Set(ids)].map(toBytes).filter((id) => sql.deadPlace(id) !== undefined)
      if (!requireRoom(dead.length)) return undefined
      for (const id of dead) {
        sql.redrive(id, nextPlace(), now)
        move('dead', 'waiting')
      }
      return dead.length
    },
    drop(ids) {
      const count = ids === 'all' ? sql.dropAll() : sum([...new Set(ids)].map((id) => sql.drop(toBytes(id))))
      change.dead -= count
      return count
    },
  }
}

/** The statuses of a job. */
export const [DUE, LATER, ACTIVE, DEAD] = [0, 1, 2, 3] as const

/** Why the queue itself puts a job on the list of the dead. */
export const UNREADABLE = 'unreadable: it is not what the queue was given'

/** Not when it came due: somebody may have set the clock back since. */
const LONG_AGO = 0
const LEAST = Number.MIN_SAFE_INTEGER
const CLAIM_AT_A_TIME = 256
const RIPEN_AT_A_TIME = 512
const FORGET_EVERY = 16

function toTime(time: number): number {
  return Math.max(0, Math.min(Math.ceil(time), Number.MAX_SAFE_INTEGER))
}

function toBytes(id: string): Uint8Array {
  return Buffer.from(id.replaceAll('-', ''), 'hex')
}

function toId(bytes: unknown): string | undefined {
  if (!isBytes(bytes) || bytes.length !== 16) return undefined
  const hex = Buffer.from(bytes).toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

function isBytes(value: unknown): value is Uint8Array {
  return value instanceof Uint8Array
}

function toDead(row: { readonly [column: string]: unknown }): DeadJob {
  const { reason, state, body } = row
  return {
    id: toId(row.id) ?? '',
    body: isBytes(body) ? body : new Uint8Array(),
    reason: isBytes(reason) ? new TextDecoder().decode(reason) : UNREADABLE,
    state: isBytes(state) ? state : undefined,
    diedAt: Number(row.died_at),
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}
