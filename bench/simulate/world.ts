/** The simulated world: endpoints that fail by a plan, and a destination of the library that delivers to them. */

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Clock } from 'hookline'
import { memoryQueue } from 'hookline/queues/memory'
import { createDestination, type Destination, type DispatcherLike } from 'hookline/sender'
import { createVirtualClock, type VirtualClock } from './clock.ts'

/** What an endpoint does to a request: a status after so many milliseconds. */
export interface Behaviour {
  readonly status: number
  readonly afterMs: number
}

/** The behaviour of a URL at a time, in milliseconds since the start; undefined: it does not answer. */
type Plan = (ms: number, url: number) => Behaviour | undefined

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
  /** Delivered more than a minute after they arrived. */
  late: number
  failed: number
  /** Failed without an attempt. */
  untried: number
}

/** How things stand at a time. */
export interface Sample extends Readonly<Totals> {
  /** In milliseconds since the start. */
  readonly at: number
  readonly waiting: number
  /** How long ago the message came due that has been due the longest, in milliseconds. */
  readonly oldestMs: number
  /** Memory of the process, after a garbage collection. */
  readonly mb: number
}

export interface World {
  readonly clock: VirtualClock
  readonly totals: Readonly<Totals>
  /** How long ago the message came due that has been due the longest, in milliseconds. */
  oldestMs(): Promise<number>
  close(): Promise<void>
}

/** Messages arrive in parts, at least so many milliseconds apart. */
const TICK_MS = 100
const SAMPLE_MS = 60_000
const LATE_MS = 60_000
/** Of the messages that wait, for memory to be measured again. */
const MIN_CHANGE = 1_000
const START = Date.UTC(2026, 0, 1)

/** Small, so that millions of them fit in memory: 150 bytes as JSON. */
const MESSAGE = { type: 'track', userId: 'u', event: 'e' } as const

export function createWorld({ perSecond, urls, plan, seed }: WorldOptions): World {
  const clock = createVirtualClock(START)
  const totals = { arrived: 0, posts: 0, delivered: 0, late: 0, failed: 0, untried: 0 }
  const queue = memoryQueue({ clock, maxJobs: 16_000_000, maxBytes: 2 ** 40, dedupeWindowMs: 1_000 })
  const destination = createDestination({
    webhooks: Array.from({ length: urls }, (_, index) => ({ url: `https://endpoint.example/${index}` })),
    queue,
    clock,
    random: createRandom(seed),
    dispatcher: createEndpoints(clock, plan, totals),
    onAttempt({ status, attempts, message }) {
      if (status === 'delivered') {
        totals.delivered += 1
        if (clock.now() - Date.parse(String(message.timestamp)) > LATE_MS) totals.late += 1
      }
      if (status !== 'failed') return
      totals.failed += 1
      if (attempts.length === 0) totals.untried += 1
    },
  })
  arrive(clock, destination, perSecond, totals)
  return {
    clock,
    totals,
    async oldestMs() {
      const { oldestDueAt } = await queue.counts()
      return oldestDueAt === undefined ? 0 : clock.now() - oldestDueAt.getTime()
    },
    async close() {
      await destination.close({ graceMs: 0 })
    },
  }
}

/** Runs a world for so many milliseconds. Returns a sample for each minute. */
export async function simulate(world: World, ms: number): Promise<readonly Sample[]> {
  const { clock, totals, close } = world
  const measureMemory = createMemoryMeter()
  const samples: Sample[] = []
  for (let at = 0; at <= ms; at += SAMPLE_MS) {
    await clock.runTo(at)
    const waiting = totals.arrived - totals.delivered - totals.failed
    samples.push({ at, ...totals, waiting, oldestMs: await world.oldestMs(), mb: measureMemory(waiting) })
  }
  await close()
  return samples
}

function arrive(clock: Clock, destination: Destination, perSecond: number, totals: Totals): void {
  const tickMs = Math.max(TICK_MS, 1_000 / perSecond)
  let owed = 0
  const tick = (): void => {
    clock.setTimeout(tick, tickMs)
    owed += (perSecond * tickMs) / 1_000
    const count = Math.floor(owed + 1e-6) // Parts that were added may sum up to a little less.
    owed -= count
    totals.arrived += count
    void destination.submit(new Array(count).fill({ message: MESSAGE }))
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

/** Measures again when the number of messages that wait has changed by a part of the most: a collection of millions takes seconds. */
function createMemoryMeter(): (waiting: number) => number {
  setFlagsFromString('--expose-gc')
  const collectGarbage: () => void = runInNewContext('gc')
  let most = 0
  let measuredAt = Number.NEGATIVE_INFINITY
  let mb = 0
  return (waiting) => {
    most = Math.max(most, waiting)
    const isEmptyNow = waiting < MIN_CHANGE && measuredAt >= MIN_CHANGE
    if (Math.abs(waiting - measuredAt) <= Math.max(MIN_CHANGE, most / 25) && !isEmptyNow) return mb
    collectGarbage()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    measuredAt = waiting
    mb = (heapUsed + arrayBuffers) / 1e6
    return mb
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
