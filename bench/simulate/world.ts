/** The simulated world: endpoints that fail by a plan, and a destination of the library that delivers to them. */

import type { Clock } from 'hookline'
import { memoryQueue } from 'hookline/queues/memory'
import { createDestination, type Destination, type DispatcherLike } from 'hookline/sender'
import { createVirtualClock, type VirtualClock } from './clock.ts'

/** What an endpoint does to a request: a status after so many milliseconds, or nothing. */
export interface Behaviour {
  readonly status: number
  readonly afterMs: number
}

/** The behaviour of a URL at a time, in milliseconds since the start; undefined: it does not answer. */
export type Plan = (ms: number, url: number) => Behaviour | undefined

export interface WorldOptions {
  readonly perSecond: number
  readonly urls: number
  readonly plan: Plan
  readonly seed: number
}

/** Messages since the start. */
interface Totals {
  arrived: number
  posts: number
  delivered: number
  failed: number
  /** Failed without an attempt. */
  untried: number
}

/** How things stand at a time. */
export interface Sample extends Readonly<Totals> {
  /** In milliseconds since the start. */
  readonly at: number
  readonly waiting: number
  /** Memory of the process. */
  readonly mb: number
}

export interface World {
  readonly clock: VirtualClock
  readonly totals: Readonly<Totals>
  close(): Promise<void>
}

/** Messages arrive in parts, this many milliseconds apart. */
const TICK_MS = 20
const SAMPLE_MS = 60_000
const START = Date.UTC(2026, 0, 1)

export function createWorld({ perSecond, urls, plan, seed }: WorldOptions): World {
  const clock = createVirtualClock(START)
  const totals = { arrived: 0, posts: 0, delivered: 0, failed: 0, untried: 0 }
  const queue = memoryQueue({ clock, maxJobs: 16_000_000, maxBytes: 2 ** 40, dedupeWindowMs: 1_000 })
  const destination = createDestination({
    webhooks: Array.from({ length: urls }, (_, index) => ({ url: `https://endpoint.example/${index}` })),
    sharedSecret: 'secret',
    queue,
    clock,
    random: createRandom(seed),
    dispatcher: createEndpoints(clock, plan, totals),
    onAttempt({ status, attempts }) {
      if (status === 'delivered') totals.delivered += 1
      if (status !== 'failed') return
      totals.failed += 1
      if (attempts.length === 0) totals.untried += 1
    },
  })
  arrive(clock, destination, perSecond, totals)
  return {
    clock,
    totals,
    async close() {
      await destination.close({ graceMs: 0 })
    },
  }
}

/** Runs a world for so many milliseconds. Returns a sample for each minute. */
export async function simulate({ clock, totals, close }: World, ms: number): Promise<readonly Sample[]> {
  const samples: Sample[] = []
  for (let at = 0; at <= ms; at += SAMPLE_MS) {
    await clock.runTo(at)
    const { arrived, delivered, failed } = totals
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    samples.push({ at, ...totals, waiting: arrived - delivered - failed, mb: (heapUsed + arrayBuffers) / 1e6 })
  }
  await close()
  return samples
}

function arrive(clock: Clock, destination: Destination, perSecond: number, totals: Totals): void {
  let owed = 0
  const tick = (): void => {
    clock.setTimeout(tick, TICK_MS)
    for (owed += (perSecond * TICK_MS) / 1_000; owed >= 1; owed -= 1) {
      totals.arrived += 1
      void destination.track({ userId: 'user-1', event: 'Order Completed', properties: { total: 12.5 } })
    }
  }
  tick()
}

function createEndpoints(clock: Clock, plan: Plan, totals: Totals): DispatcherLike {
  return {
    dispatch(options, handler) {
      totals.posts += 1
      handler.onRequestStart?.({ abort() {} } as never, undefined)
      const behaviour = plan(clock.now() - START, Number(options.path.slice(1)))
      if (behaviour === undefined) return true
      clock.setTimeout(() => {
        handler.onResponseStart?.({} as never, behaviour.status, {}, '')
        handler.onResponseEnd?.({} as never, {})
      }, behaviour.afterMs)
      return true
    },
  }
}

/** Numbers from 0 to below 1, the same for the same seed (mulberry32). */
function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
