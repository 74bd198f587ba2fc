/** The jobs of a queue in a file, from push to done. Every call is made within a transaction. */

import type { DatabaseSync } from 'node:sqlite'
import { HooklineError } from '../protocol/error.ts'
import { resultOf } from '../protocol/sqlite-file.ts'
import type { ClaimCall, Claimed, PushCall, ReleaseCall, SettleCall } from './sqlite-calls.ts'
import { type Damaged, noting } from './sqlite-damage.ts'
import { bytesOfId, textOfId } from './sqlite-id.ts'
import type { Ids } from './sqlite-ids.ts'
import { type Owners, UNDO } from './sqlite-owners.ts'
import { NUMBERS } from './sqlite-schema.ts'
import type { Tally } from './sqlite-tally.ts'

/** What the jobs are kept with. */
export interface Shelf {
  readonly database: DatabaseSync
  readonly queue: number
  readonly name: string
  readonly maxJobs: number
  readonly ids: Ids
  readonly owners: Owners
  readonly tally: Tally
  readonly damaged: Damaged
}

/** What can be done. */
export interface Jobs {
  push(call: PushCall): void
  claim(call: ClaimCall): Claimed[]
  settle(call: SettleCall): void
  release(call: ReleaseCall): void
}

interface Row {
  readonly seq: number
  readonly id: Uint8Array
  readonly dueAt: number
  readonly deliveries: number
  readonly firstAt: number | null
  readonly state: Uint8Array | null
}

const COLUMNS = 'seq, id, due_at AS dueAt, deliveries, first_at AS firstAt, state'

/** Makes them. */
export function createJobs({ database, queue, name, maxJobs, ids, owners, tally, damaged }: Shelf): Jobs {
  const insert = database.prepare(`
    INSERT INTO hookline_queue_jobs (seq, queue, id, phase, place, due_at, deliveries) VALUES (?, ${queue}, ?, ?, ?, ?, 0)`)
  const insertBody = database.prepare('INSERT INTO hookline_queue_bodies (seq, body) VALUES (?, ?)')
  const readBody = database.prepare('SELECT body FROM hookline_queue_bodies WHERE seq = ?')
  const removeBody = database.prepare('DELETE FROM hookline_queue_bodies WHERE seq = ?')
  const due = database.prepare(`
    SELECT ${COLUMNS} FROM hookline_queue_jobs WHERE queue = ${queue} AND phase = 0 ORDER BY place LIMIT ?`)
  const ripe = database.prepare(`
    SELECT ${COLUMNS} FROM hookline_queue_jobs WHERE queue = ${queue} AND phase = 1 AND due_at <= ?
    ORDER BY due_at, seq LIMIT ?`)
  const handOut = database.prepare(`
    UPDATE hookline_queue_jobs SET phase = 2, owner = ?, deliveries = deliveries + 1, first_at = coalesce(first_at, ?)
    WHERE seq = ?`)
  const setAside = database.prepare(`
    UPDATE hookline_queue_jobs SET phase = 3, place = ?, due_at = ?, owner = NULL, reason = ? WHERE seq = ?`)
  const mine = 'WHERE seq = ? AND owner = ? AND deliveries = ? AND phase = ?'
  const remove = database.prepare(`DELETE FROM hookline_queue_jobs ${mine}`)
  const retry = database.prepare(`
    UPDATE hookline_queue_jobs SET phase = ?, place = ?, due_at = ?, state = ?, owner = NULL ${mine}`)
  const bury = database.prepare(`
    UPDATE hookline_queue_jobs SET phase = 3, place = ?, due_at = ?, state = ?, owner = NULL, reason = ? ${mine}`)
  const release = database.prepare(`UPDATE hookline_queue_jobs SET phase = 0, owner = NULL ${mine}`)
  const undo = database.prepare(`UPDATE hookline_queue_jobs SET ${UNDO} ${mine}`)

  function requireRoom(call: PushCall): void {
    const room = maxJobs - tally.waiting - tally.active
    if (call.ids.length <= room) return
    if (call.ids.filter((id) => !ids.has(bytesOfId(id), call.now)).length <= room) return
    throw new HooklineError(
      'queue_full',
      `The queue ${name} would go over its maxJobs, ${maxJobs}. Push again later, or raise it.`,
    )
  }

  /** The longest due first. */
  function pick(now: number, limit: number): Row[] {
    const [line, later] = [due.all(limit), ripe.all(now, limit)] as unknown as [Row[], Row[]]
    if (later.length === 0) return line
    const picked: Row[] = []
    for (let [a, b] = [0, 0]; picked.length < limit; ) {
      const [inLine, ripened] = [line[a], later[b]]
      if (ripened !== undefined && (inLine === undefined || ripened.dueAt <= inLine.dueAt)) {
        picked.push(ripened)
        b += 1
      } else if (inLine !== undefined) {
        picked.push(inLine)
        a += 1
      } else {
        break
      }
    }
    return picked
  }

  /** @throws Error for a row that makes no sense, of SQLite for one that lies on a damaged page. */
  function read(row: Row, now: number): Claimed {
    const body = readBody.get(row.seq)?.body
    if (!(body instanceof Uint8Array)) throw new Error('its body is gone')
    const { seq, deliveries, firstAt, state } = row
    return {
      seq,
      id: textOfId(row.id),
      deliveries: deliveries + 1,
      firstAt: firstAt ?? now,
      body,
      state: state ?? undefined,
    }
  }

  /** What cannot be read must not keep what can from being handed out. */
  function tryToRead(row: Row, now: number): Claimed | undefined {
    try {
      if (damaged.has(row.seq)) throw new Error('it lies on a damaged page of the file')
      return noting(damaged, row.seq, () => read(row, now))
    } catch (error) {
      if (resultOf(error) !== undefined) throw error
      setAside.run(tally.next++, now, Buffer.from(`It cannot be read: ${(error as Error).message}.`), row.seq)
      tally.waiting -= 1
      tally.dead += 1
      return undefined
    }
  }

  /** Runs a change of a job that is handed out; of one whose lease lapsed too, as long as nobody else was handed it. */
  function change(apply: (phase: 0 | 2) => boolean): boolean {
    if (apply(2)) tally.active -= 1
    else if (apply(0)) tally.waiting -= 1
    else return false
    return true
  }

  return {
    push(call) {
      requireRoom(call)
      for (let index = 0; index < call.ids.length; index += 1) {
        const id = bytesOfId(call.ids[index] as string)
        const seq = queue * NUMBERS + tally.next
        if (!ids.add(id, seq, call.now)) continue
        const at = call.notBefore[index] ?? call.now
        insert.run(seq, id, at <= call.now ? 0 : 1, tally.next, at)
        insertBody.run(seq, call.bodies[index] as Uint8Array)
        tally.next += 1
        tally.waiting += 1
      }
    },
    claim({ now, limit, owner, leaseMs, held }) {
      owners.expire(owner, now)
      if (held !== undefined) owners.keepOnly(owner, new Set(held))
      const jobs: Claimed[] = []
      for (const row of pick(now, limit)) {
        const job = tryToRead(row, now)
        if (job === undefined) continue
        handOut.run(owner, now, row.seq)
        tally.waiting -= 1
        tally.active += 1
        jobs.push(job)
      }
      if (jobs.length > 0) owners.renew(owner, now, leaseMs)
      return jobs
    },
    settle({ seq, owner, deliveries, id, now, outcome, retryAt, reason, state = null, leavesBody }) {
      if (outcome === 'done') {
        if (!change((phase) => remove.run(seq, owner, deliveries, phase).changes === 1)) return
        if (leavesBody !== true) removeBody.run(seq)
        ids.finish(bytesOfId(id), seq, now)
      } else if (outcome === 'retry') {
        const [next, at] = retryAt <= now ? [0, now] : [1, retryAt]
        const place = tally.next++
        if (change((phase) => retry.run(next, place, at, state, seq, owner, deliveries, phase).changes === 1))
          tally.waiting += 1
      } else {
        const [place, why] = [tally.next++, Buffer.from(reason)]
        if (change((phase) => bury.run(place, now, state, why, seq, owner, deliveries, phase).changes === 1))
          tally.dead += 1
      }
    },
    release({ owner, claims, wereSeen }) {
      const giveBack = wereSeen ? release : undo
      for (const { seq, deliveries } of claims) {
        if (giveBack.run(seq, owner, deliveries, 2).changes === 0) continue
        tally.active -= 1
        tally.waiting += 1
      }
    },
  }
}
