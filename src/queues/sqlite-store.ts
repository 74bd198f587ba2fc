/** Runs calls on a queue in a file: those that come together become one commit. */

import type { DatabaseSync } from 'node:sqlite'
import { HooklineError } from '../protocol/error.ts'
import { BUSY, CORRUPT, inTransaction, patiently, resultOf } from '../protocol/sqlite-file.ts'
import type { QueueCounts } from './queue.ts'
import type { Call, Claims, Failure, HostSettings, Reply } from './sqlite-calls.ts'
import { type Damaged, noting } from './sqlite-damage.ts'
import { createDead } from './sqlite-dead.ts'
import { createIds } from './sqlite-ids.ts'
import { createJobs } from './sqlite-jobs.ts'
import { createOwners } from './sqlite-owners.ts'
import { openFile } from './sqlite-schema.ts'
import { createTally } from './sqlite-tally.ts'

/** A queue in an open file. */
export interface SqliteStore {
  /** Carries calls out, in their order, and answers each: a call that fails leaves no trace, and the others are done. */
  run(calls: readonly Call[]): Reply[]
  close(): void
}

/**
 * Opens a queue.
 *
 * @throws HooklineError `queue_unavailable` that says what to do.
 */
export function openStore(settings: HostSettings): SqliteStore {
  const { path, name, maxJobs, knownForMs, busyTimeoutMs } = settings
  const { database, queue } = openFile(path, name)
  const tally = createTally(database, queue)
  const ids = createIds(database, queue, knownForMs)
  const owners = createOwners(database, queue, tally)
  const damaged: Damaged = new Set()
  const shelf = { database, queue, name, maxJobs, ids, owners, tally, damaged }
  const jobs = createJobs(shelf)
  const dead = createDead(shelf)
  const durability = createDurability(database)
  const dueAt = database.prepare(`
    SELECT due_at AS at FROM hookline_queue_jobs WHERE queue = ${queue} AND phase = 0 ORDER BY place LIMIT 1`)
  const laterAt = database.prepare(`
    SELECT due_at AS at FROM hookline_queue_jobs WHERE queue = ${queue} AND phase = 1 ORDER BY due_at LIMIT 1`)

  function firstOf(statement: typeof dueAt): number | undefined {
    return statement.get()?.at as number | undefined
  }

  /** What is due is so whatever the clock says: somebody may have set it back since. */
  function nextAt(): number | undefined {
    return firstOf(dueAt) === undefined ? firstOf(laterAt) : 0
  }

  function counts(now: number): QueueCounts {
    const later = firstOf(laterAt)
    const times = [firstOf(dueAt), later !== undefined && later <= now ? later : undefined]
    const due = times.filter((at) => at !== undefined)
    const { waiting, active } = tally
    return { waiting, active, dead: tally.dead, oldestDueAt: due.length === 0 ? undefined : Math.min(...due) }
  }

  function carryOut(call: Call): unknown {
    switch (call.kind) {
      case 'push':
        return jobs.push(call)
      case 'claim':
        return { jobs: jobs.claim(call), nextAt: nextAt() } satisfies Claims
      case 'settle':
        return jobs.settle(call)
      case 'release':
        return jobs.release(call)
      case 'renew':
        return owners.renew(call.owner, call.now, call.leaseMs)
      case 'leave':
        owners.keepOnly(call.owner, new Set(call.held))
        return owners.leave(call.owner)
      case 'nextAt':
        return nextAt()
      case 'counts':
        return counts(call.now)
      case 'dead':
        return dead.page(call.after, call.limit)
      case 'redrive':
        return dead.redrive(call.ids, call.now)
      case 'drop':
        return dead.drop(call.ids, call.oldest)
    }
  }

  /** Whether a claim has nothing to take: it need not keep others from the file then. */
  function isVain(call: Call): boolean {
    if (call.kind !== 'claim' || call.held !== undefined) return false
    const at = nextAt()
    return (at === undefined || at > call.now) && !owners.areStale(call.owner, call.now)
  }

  /** Where ids cannot be forgotten, jobs are done all the same. */
  function prune(calls: readonly Call[]): void {
    const settled = calls.filter((call) => call.kind === 'settle')
    if (settled.length === 0 || damaged.has('done')) return
    noting(damaged, 'done', () => ids.prune(2 * settled.length, settled[0]?.now as number))
  }

  function runTogether(calls: readonly Call[]): Reply[] {
    if (calls.every(isVain)) return calls.map(() => ({ value: { jobs: [], nextAt: nextAt() } satisfies Claims }))
    durability.set(calls.some(({ kind }) => !REPEATABLE.has(kind)))
    return inTransaction(database, () => {
      tally.load()
      const replies = calls.map((call) => ({ value: carryOut(call) }))
      prune(calls)
      tally.save()
      return replies
    })
  }

  function run(calls: readonly Call[]): Reply[] {
    const known = damaged.size
    try {
      return patiently(() => runTogether(calls), busyTimeoutMs)
    } catch (error) {
      if (damaged.size > known) return run(calls)
      const withoutBody = resultOf(error) === CORRUPT ? leaveBody(calls) : undefined
      if (withoutBody !== undefined) return run(withoutBody)
      if (calls.length === 1 || resultOf(error) === BUSY) return calls.map(() => ({ failure: failureOf(error) }))
    }
    return runEach(calls)
  }

  /** So that the one at fault fails alone. When somebody has the file, one of them waits for it, and not each. */
  function runEach(calls: readonly Call[]): Reply[] {
    let busy: Reply | undefined
    return calls.flatMap((call) => {
      const replies = busy === undefined ? run([call]) : [busy]
      busy = replies.find((reply) => 'failure' in reply && resultOf(reply.failure) === BUSY)
      return replies
    })
  }

  return { run, close: () => database.close() }
}

/** A body that lies beside a damaged page cannot be deleted: the job is done all the same. */
function leaveBody([call, ...others]: readonly Call[]): readonly Call[] | undefined {
  if (others.length > 0 || call?.kind !== 'settle' || call.leavesBody === true) return undefined
  return [{ ...call, leavesBody: true }]
}

/** When the power fails, these are done again: they need not wait for the disk. */
const REPEATABLE: ReadonlySet<Call['kind']> = new Set(['claim', 'renew', 'nextAt', 'counts', 'dead'])

/** Whether a commit waits until the disk has it. */
function createDurability(database: DatabaseSync): { set(isFull: boolean): void } {
  let is = true
  return {
    set(isFull) {
      if (is !== isFull) database.exec(`PRAGMA synchronous = ${isFull ? 'FULL' : 'NORMAL'}`)
      is = isFull
    },
  }
}

/** What can be told to another thread. Messages of SQLite hold no values. */
export function failureOf(error: unknown): Failure {
  const { message } = error as Error
  const errcode = (error as { readonly errcode?: number }).errcode
  const isWhole = error instanceof HooklineError
  const code = isWhole && error.code === 'queue_full' ? 'queue_full' : 'queue_unavailable'
  return { code, message, isWhole, errcode }
}
