/** Samples the queues of the parts for the page and its plots: often while a page is open, else now and then. */

import { type Clock, inBackground } from '../../time/clock.ts'
import { TIMED_OUT, within } from '../../time/timeout.ts'
import type { SeriesRecorder } from '../series.ts'
import type { QueueStatus } from '../wire.ts'
import type { PartQueue, WatchedPart } from './parts.ts'
import type { Source } from './reader.ts'

/** The samples, for the stream. */
export interface QueueSampler extends Source {
  /** Samples soon, and then again and again. */
  look(): void
  /** Whether a part has a queue. One that does not answer is one. */
  has(queue: PartQueue | undefined): Promise<boolean>
  /** Whether any part works on something at this moment, or does not say. */
  isActive(): Promise<boolean>
  close(): void
}

/** What the sampler needs. */
export interface SamplerOptions {
  readonly parts: readonly WatchedPart[]
  readonly series: SeriesRecorder
  /** Whether a page is open. */
  readonly isOpen: () => boolean
  readonly onSample: () => void
  /** Receives what fails. */
  readonly report: (thrown: unknown) => void
  /** The clock of the machine. */
  readonly machine: Clock
}

const OPEN_MS = 2_000
const CLOSED_MS = 10_000
/** Parts give up after a second, by a clock of theirs that may stand still. */
const TIMEOUT_MS = 1_500

type PartHealth = Awaited<ReturnType<PartQueue['health']>>

const UNAVAILABLE = { status: 'unavailable', waiting: 0, active: 0, deadLetters: 0, oldestDueAgeMs: 0 } as const

/** Creates a sampler that has not begun. */
export function createSampler({ parts, series, isOpen, onSample, report, machine }: SamplerOptions): QueueSampler {
  const clock = inBackground(machine)
  let statuses: readonly QueueStatus[] = []
  let version = 0
  let timer: unknown
  let isSampling = false
  let isClosed = false
  let sampledAt = Number.NEGATIVE_INFINITY

  async function sample(): Promise<void> {
    isSampling = true
    sampledAt = clock.monotonic()
    try {
      const read = await readAll()
      if (isClosed || read.length === 0) return
      statuses = read
      version += 1
      for (const { part, status, waiting, active } of statuses) {
        if (status !== 'unavailable') series.depth(part, waiting + active)
      }
      onSample()
    } catch (thrown) {
      report(thrown)
    } finally {
      isSampling = false
      schedule(isOpen() ? OPEN_MS : CLOSED_MS)
    }
  }

  function schedule(ms: number): void {
    clock.clearTimeout(timer)
    if (!isClosed) timer = clock.setTimeout(() => void sample(), ms)
  }

  async function readAll(): Promise<readonly QueueStatus[]> {
    const read = parts.map(async ({ name, queue }) => {
      const health = await readHealth(queue)
      return health === undefined ? [] : statusOf(name, health)
    })
    return (await Promise.all(read)).flat()
  }

  async function has(queue: PartQueue | undefined): Promise<boolean> {
    return queue !== undefined && (await within(queue.exists(), TIMEOUT_MS, clock)) !== false
  }

  /** Undefined without a queue. */
  async function readHealth(queue: PartQueue | undefined): Promise<PartHealth | typeof TIMED_OUT | undefined> {
    return (await has(queue)) ? within((queue as PartQueue).health(), TIMEOUT_MS, clock) : undefined
  }

  function statusOf(part: string, health: PartHealth | typeof TIMED_OUT): QueueStatus {
    if (health === TIMED_OUT) return { part, ...UNAVAILABLE }
    const { status, waiting, active, retrying, deadLetters, oldestDueAgeMs, asOf, circuits } = health
    return {
      ...{ part, status, waiting, active, deadLetters, oldestDueAgeMs },
      ...(retrying !== undefined && { retrying }),
      ...(asOf !== undefined && { asOf: asOf.getTime() }),
      ...(circuits !== undefined && {
        circuits: circuits.map(({ url, state, openSince, probeAt }) => ({
          url,
          state,
          ...(openSince !== undefined && { openSince: openSince.getTime() }),
          ...(probeAt !== undefined && { probeAt: probeAt.getTime() }),
        })),
      }),
    }
  }

  return {
    name: 'queues',
    get version() {
      return version
    },
    read: () => statuses,
    look() {
      if (!isSampling) schedule(Math.max(0, sampledAt + OPEN_MS - clock.monotonic()))
    },
    has,
    async isActive() {
      const all = await Promise.all(parts.map(({ queue }) => readHealth(queue)))
      return all.some((health) => health !== undefined && (health === TIMED_OUT || health.active > 0))
    },
    close() {
      isClosed = true
      clock.clearTimeout(timer)
    },
  }
}
