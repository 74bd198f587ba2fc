/** What the loop works on: jobs that this process was handed, under a lease that it renews. */

import { randomInt } from 'node:crypto'
import type { Clock } from '../protocol/clock.ts'
import type { Store } from './loop.ts'
import type { ClaimedJob, Outcome } from './queue.ts'
import type { Call, ClaimRef, Claims } from './sqlite-calls.ts'
import type { Settings } from './sqlite-options.ts'

/** The store of a loop, and how it ends. */
export interface ClaimStore extends Store {
  /** Lets go of the lease and of all that it held. */
  leave(): Promise<void>
}

/** Asks the thread; rejects when it fails. */
export type Ask = <T>(call: Call) => Promise<T>

/** Makes it. */
export function createClaims(ask: Ask, { clock, leaseMs }: Settings, onError: (error: unknown) => void): ClaimStore {
  const owner = randomInt(1, 2 ** 48 - 1)
  const held = new Map<ClaimedJob, ClaimRef>()
  let nextAt: number | undefined
  let isNextKnown = false
  let isAnswerLost = false
  let timer: unknown
  let hasLeft = false

  const now = (): number => timeOf(clock)
  const seqsHeld = (): number[] => [...held.values()].map(({ seq }) => seq)

  function forget(jobs: readonly ClaimedJob[]): void {
    for (const job of jobs) held.delete(job)
  }

  /** A process whose event loop stands still for longer than its lease loses its jobs. */
  function renewInTime(): void {
    if (timer !== undefined || hasLeft) return
    timer = clock.setTimeout(
      async () => {
        timer = undefined
        if (held.size === 0) return
        renewInTime()
        await ask({ kind: 'renew', now: now(), owner, leaseMs }).catch(onError)
      },
      Math.floor(leaseMs / 3),
    )
  }

  return {
    async claim(limit) {
      const known = isAnswerLost ? seqsHeld() : undefined
      isAnswerLost = true
      const claims = await ask<Claims>({ kind: 'claim', now: now(), limit, owner, leaseMs, held: known })
      isAnswerLost = false
      nextAt = claims.nextAt
      isNextKnown = true
      const jobs = claims.jobs.map(({ seq, ...job }): ClaimedJob => {
        held.set(job, { seq, deliveries: job.deliveries })
        return job
      })
      if (jobs.length > 0) renewInTime()
      return jobs
    },
    async settle(job, outcome) {
      const ref = held.get(job) as ClaimRef
      await ask({ kind: 'settle', now: now(), owner, id: job.id, ...ref, ...fate(outcome) })
      held.delete(job)
    },
    async release(jobs, { wereSeen }) {
      const claims = jobs.map((job) => held.get(job) as ClaimRef)
      if (!wereSeen) forget(jobs) // Should this fail, leaving makes up for it.
      await ask({ kind: 'release', owner, claims, wereSeen })
      forget(jobs)
    },
    /** Each claim says it: so it is asked for only where there was none. */
    nextAt() {
      if (!isNextKnown) return ask({ kind: 'nextAt', now: now() })
      isNextKnown = false
      return nextAt
    },
    async leave() {
      hasLeft = true
      if (timer !== undefined) clock.clearTimeout(timer)
      await ask({ kind: 'leave', owner, held: seqsHeld() })
    },
  }
}

/** The clock's time, in whole milliseconds. */
export function timeOf(clock: Clock): number {
  return Math.floor(clock.now())
}

/** A time that somebody gave, in whole milliseconds that a Date can hold. */
export function roundTime(at: number): number {
  return Math.max(-LATEST, Math.min(Math.ceil(at), LATEST))
}

const LATEST = 8.64e15

function fate(outcome: Outcome) {
  const none = { retryAt: 0, reason: '', state: undefined }
  if ('done' in outcome) return { ...none, outcome: 'done' as const }
  const { state } = outcome
  if ('retryAt' in outcome) return { ...none, outcome: 'retry' as const, retryAt: roundTime(outcome.retryAt), state }
  return { ...none, outcome: 'dead' as const, reason: outcome.dead, state }
}
