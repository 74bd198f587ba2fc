/** The store of a queue in SQLite, for the loop: which hand-out is which, and the leases. */

import { randomInt } from 'node:crypto'
import type { Clock } from '../protocol/clock.ts'
import type { Store } from './loop.ts'
import type { ClaimedJob, Outcome } from './queue.ts'
import type { Hold } from './sqlite-commands.ts'
import type { Line } from './sqlite-line.ts'

/** A store that renews the leases of what it has handed out. */
export interface SqliteStore extends Store {
  /** Begins to renew. */
  begin(): void
  /** Ends it. */
  end(): void
}

/** Makes it. */
export function createSqliteStore(line: Line, clock: Clock, leaseMs: number): SqliteStore {
  const owner = randomInt(2 ** 47)
  const holds = new WeakMap<ClaimedJob, Hold>()
  const holdOf = (job: ClaimedJob): Hold => holds.get(job) as Hold
  /** What the claim that was just made said, for whoever asks next. */
  let next: { readonly at: number | undefined } | undefined
  let timer: unknown
  let isEnded = false

  /** Also of jobs that are not ours: setting the clock back makes leases too long. */
  function renew(): void {
    timer = clock.setTimeout(renew, leaseMs / 3)
    line.ask({ kind: 'renew', now: clock.now(), owner }).catch(() => {}) // Claims and settlements tell of it.
  }

  function settle(job: ClaimedJob, outcome: Outcome): Promise<void> {
    const [hold, now] = [holdOf(job), clock.now()]
    if ('done' in outcome) return line.ask({ kind: 'done', now, hold })
    const { state } = outcome
    if ('retryAt' in outcome) return line.ask({ kind: 'retry', now, hold, at: outcome.retryAt, state })
    return line.ask({ kind: 'bury', now, hold, reason: outcome.dead, state })
  }

  return {
    begin: renew,
    end() {
      isEnded = true
      clock.clearTimeout(timer)
    },
    async claim(limit) {
      next = undefined
      const { rows, nextAt } = await line.ask({ kind: 'claim', now: clock.now(), limit, owner })
      next = { at: nextAt }
      return rows.map(({ hold, ...row }) => {
        const job: ClaimedJob = { ...row, deliveries: hold.deliveries }
        holds.set(job, hold)
        return job
      })
    },
    settle,
    async release(jobs) {
      if (isEnded) return
      await line.ask({ kind: 'release', now: clock.now(), holds: jobs.map(holdOf) })
    },
    nextAt() {
      if (next === undefined) return line.ask({ kind: 'next', now: clock.now() })
      const { at } = next
      next = undefined
      return at
    },
  }
}
