/** Stores for the tests of what queues share: the one in memory, with answers that come later, fail or wait for the test. */

import type { HooklineError } from '../../src/protocol/error.ts'
import type { CreateQueueOptions } from '../../src/store/arguments.ts'
import { createQueue } from '../../src/store/create-queue.ts'
import { createMemoryStore } from '../../src/store/memory/memory-store.ts'
import type { Answer, QueueStore, ReleaseOptions } from '../../src/store/queue-store.ts'
import type { ClaimedJob, Outcome } from '../../src/store/queue-types.ts'
import { type ManualClock, manualClock } from '../../src/testing/manual-clock.ts'

export interface Manner {
  readonly isDurable?: boolean
  readonly leaseMs?: number
  readonly isSlow?: boolean
}

/** Creates a store in memory that is durable unless `isDurable` says otherwise: releasing makes jobs due again. */
export function watchStore(clock: ManualClock, manner: Manner = {}) {
  const { isDurable = true, isSlow = false, leaseMs } = manner
  const memory = createMemoryStore({ clock }) as QueueStore
  const watched = {
    claims: [] as number[],
    released: [] as ({ readonly id: string } & ReleaseOptions)[],
    /** What the store was given, whether it failed then or not. */
    outcomes: [] as Outcome[],
    /** While true, each call rejects. */
    isAway: false,
  }
  let failures = 0

  /** The same call, which fails while the store is away. */
  function reach<Args extends unknown[], T>(call: (...args: Args) => Answer<T>): (...args: Args) => Answer<T> {
    const reached = (...args: Args): Answer<T> => {
      if (!watched.isAway) return call(...args)
      failures += 1
      throw new Error(`away ${failures}`)
    }
    if (!isSlow) return reached
    return async (...args) => {
      await Promise.resolve()
      const answer = await reached(...args)
      await Promise.resolve()
      return answer
    }
  }

  const claim = reach(memory.claim)
  const finish = reach(memory.finish)
  const release = reach((jobs: readonly ClaimedJob[], { wereHandled }: ReleaseOptions) => {
    watched.released.push(...jobs.map(({ id }) => ({ id, wereHandled })))
    for (const job of jobs) void memory.finish(job, { retryAt: new Date(clock.now()) })
  })
  const store: QueueStore = {
    ...memory,
    isDurable,
    ...(leaseMs !== undefined && { leaseMs, renew: () => {} }),
    push: reach(memory.push),
    claim(limit) {
      watched.claims.push(limit)
      return claim(limit)
    },
    finish(job, outcome) {
      watched.outcomes.push(outcome)
      return finish(job, outcome)
    },
    release,
    nextDueAt: reach(memory.nextDueAt),
    counts: reach(memory.counts),
    close: () => (isDurable ? [] : memory.close()),
  }
  return Object.assign(watched, { store })
}

/** Creates a queue over such a store, in which `change` replaces calls. */
export function setUpQueue(change: Partial<QueueStore> = {}, options: Partial<CreateQueueOptions> = {}) {
  const clock = manualClock()
  const watched = watchStore(clock)
  const errors: HooklineError[] = []
  const onError = (error: HooklineError) => void errors.push(error)
  const queue = createQueue({ ...watched.store, ...change }, { name: 'orders', clock, onError, ...options })
  return { clock, watched, queue, errors }
}
