/** Who works on a queue in a file, and until when: an owner whose lease has lapsed loses its jobs. */

import type { DatabaseSync } from 'node:sqlite'
import type { Tally } from './sqlite-tally.ts'

/** The owners. */
export interface Owners {
  /** Whether a lease has lapsed, or ends later than it can: somebody set the clock back. */
  areStale(owner: number, now: number): boolean
  /** Takes the jobs of others whose leases have lapsed, and shortens leases that end later than they can. */
  expire(owner: number, now: number): void
  renew(owner: number, now: number, leaseMs: number): void
  /** Takes from an owner what it does not know that it has, as if it had never been handed that. */
  keepOnly(owner: number, held: ReadonlySet<number>): void
  /** Takes all that an owner has. */
  leave(owner: number): void
}

/** What undoes a hand-out that nobody saw. None can settle the one before any more, which has the same count now. */
export const UNDO =
  'phase = 0, owner = NULL, deliveries = deliveries - 1, first_at = CASE WHEN deliveries > 1 THEN first_at END'

interface Row {
  readonly owner: number
  readonly until: number
  readonly leaseMs: number
}

/** Makes them over an open file. */
export function createOwners(database: DatabaseSync, queue: number, tally: Tally): Owners {
  const all = database.prepare(`
    SELECT owner, until, lease_ms AS leaseMs FROM hookline_queue_owners WHERE queue = ${queue}`)
  const set = database.prepare(`
    INSERT OR REPLACE INTO hookline_queue_owners (owner, queue, until, lease_ms) VALUES (?, ${queue}, ?, ?)`)
  const remove = database.prepare('DELETE FROM hookline_queue_owners WHERE owner = ?')
  // They keep their places: what was handed out first is due the longest.
  const takeAll = database.prepare(`
    UPDATE hookline_queue_jobs SET phase = 0 WHERE queue = ${queue} AND phase = 2 AND owner = ?`)
  const listHeld = database.prepare(`
    SELECT seq FROM hookline_queue_jobs WHERE queue = ${queue} AND phase = 2 AND owner = ?`)
  const takeOne = database.prepare(`UPDATE hookline_queue_jobs SET ${UNDO} WHERE seq = ?`)

  function others(owner: number): Row[] {
    return (all.all() as unknown as Row[]).filter((row) => row.owner !== owner)
  }

  function took(jobs: number | bigint): void {
    tally.active -= Number(jobs)
    tally.waiting += Number(jobs)
  }

  function leave(owner: number): void {
    took(takeAll.run(owner).changes)
    remove.run(owner)
  }

  return {
    areStale: (owner, now) => others(owner).some(({ until, leaseMs }) => until <= now || until > now + leaseMs),
    expire(owner, now) {
      for (const row of others(owner)) {
        if (row.until <= now) leave(row.owner)
        else if (row.until > now + row.leaseMs) set.run(row.owner, now + row.leaseMs, row.leaseMs)
      }
    },
    renew(owner, now, leaseMs) {
      set.run(owner, now + leaseMs, leaseMs)
    },
    keepOnly(owner, held) {
      for (const { seq } of listHeld.all(owner) as { seq: number }[]) {
        if (!held.has(seq)) took(takeOne.run(seq).changes)
      }
    },
    leave,
  }
}
