/** What each test works with: a new queue, jobs for it, and waits that end. */

import { equal, fail, ok } from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import type { QueueCounts } from '../../queues/health.ts'
import type { ClaimedJob, Job, Outcome, Queue } from '../../queues/queue.ts'
import { systemClock } from '../../time/clock.ts'
import { TIMED_OUT, within } from '../../time/timeout.ts'
import type { TestedQueue, TestQueueOptions } from './tested-queue.ts'

/** The tests of one idea: by name, each with what it does. */
export type Cases = Readonly<Record<string, (context: TestContext) => Promise<void>>>

/** Decides about a job, as a handler. */
type Decide = (job: ClaimedJob, signal: AbortSignal) => Outcome | Promise<Outcome>

/** A tested queue and tools. */
export interface TestContext extends TestedQueue {
  readonly isDurable: boolean
  readonly leaseMs: number
  /** Gives a queue a handler. Returns the list of the jobs that reached it, which grows. Default for `queue`: the tested one. */
  work(decide: Decide, concurrency?: number, queue?: Queue): readonly ClaimedJob[]
  /** Waits for `drain()`. */
  drain(queue?: Queue): Promise<void>
  /** Waits for a condition. Fails with the rule when it does not become true in time. */
  until(isTrue: () => boolean, rule: string): Promise<void>
  /** The same, and lets queues that poll look for jobs meanwhile. */
  eventually(isTrue: () => boolean, rule: string): Promise<void>
  /** The counts, current ones. */
  counts(queue?: Queue): Promise<QueueCounts>
  /** Compares those counts that are given. */
  expectCounts(expected: Partial<QueueCounts>, rule: string, queue?: Queue): Promise<void>
  /** Opens another queue over the same jobs. It is closed when the test ends. */
  openAnother(): Promise<Queue>
  /** The same, for one that never renews its claims. */
  openStalled(): Promise<Queue>
}

export const complete: Outcome = { complete: true }

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

export const text = (body: Uint8Array | undefined): string | undefined => body && new TextDecoder().decode(body)

export const bodiesOf = (jobs: readonly { readonly body: Uint8Array }[]): (string | undefined)[] =>
  jobs.map(({ body }) => text(body))

export const jobOf = (body: string, more: Partial<Job> = {}): Job => ({ id: randomUUID(), body: bytes(body), ...more })

/** After so many looks, a wait leaves the processor to what it waits for. */
const TURNS = 50

/** What a handler returns that never ends. */
export const never = (): Promise<Outcome> => new Promise(() => {})

/** Runs a test over a new queue. Closes and disposes whatever it opened, also when it fails. */
export async function runCase(
  create: () => TestedQueue | Promise<TestedQueue>,
  check: (context: TestContext) => Promise<void>,
  options: TestQueueOptions,
): Promise<void> {
  const tested = await create()
  const queues = [tested.queue]
  try {
    await check(createContext(tested, queues, options))
  } catch (error) {
    await cleanUp(tested, queues).catch(() => {}) // The test's own failure is the one to report.
    throw error
  }
  await cleanUp(tested, queues)
}

async function cleanUp({ dispose }: TestedQueue, queues: readonly Queue[]): Promise<void> {
  const closed = await Promise.allSettled(queues.map((queue) => queue.close({ graceMs: 0 })))
  await dispose?.()
  for (const result of closed) if (result.status === 'rejected') throw result.reason
}

function createContext(
  tested: TestedQueue,
  queues: Queue[],
  { isDurable = true, leaseMs = Number.POSITIVE_INFINITY }: TestQueueOptions,
): TestContext {
  const { timeoutMs = 4_000, refresh, another, stalled, tick = () => nextTurn<void>() } = tested

  async function wait(isTrue: () => boolean, rule: string, pass: () => Promise<void>): Promise<void> {
    const end = performance.now() + timeoutMs
    for (let looks = 1; !isTrue(); looks += 1) {
      if (performance.now() > end) fail(`${rule}: it did not happen within ${timeoutMs} ms`)
      await pass()
      if (looks > TURNS) await delay(1)
    }
  }

  async function counts(queue = tested.queue): Promise<QueueCounts> {
    await refresh?.()
    return queue.counts()
  }

  async function open(make: TestedQueue['another'], advice: string): Promise<Queue> {
    if (make === undefined) fail(advice)
    const queue = await make()
    queues.push(queue)
    return queue
  }

  return {
    ...tested,
    isDurable,
    leaseMs,
    counts,
    work(decide, concurrency = 10, queue = tested.queue) {
      const seen: ClaimedJob[] = []
      const handle = async (job: ClaimedJob, signal: AbortSignal): Promise<Outcome> => {
        seen.push(job)
        return decide(job, signal)
      }
      queue.work(handle, { concurrency })
      return seen
    },
    async drain(queue = tested.queue) {
      const end = await within(queue.drain(), timeoutMs, systemClock)
      ok(end !== TIMED_OUT, 'drain() must resolve when no job is due and none is claimed')
    },
    until: (isTrue, rule) => wait(isTrue, rule, () => nextTurn()),
    eventually: (isTrue, rule) => wait(isTrue, rule, tick),
    async expectCounts(expected, rule, queue) {
      const found = await counts(queue)
      for (const name of Object.keys(expected) as (keyof QueueCounts)[]) {
        if (name === 'retrying' && found.retrying === undefined) continue // The engine does not say it.
        equal(found[name], expected[name], `${rule}: counts().${name} must be ${expected[name]}. Got ${found[name]}`)
      }
    },
    openAnother: () => open(another, 'a durable queue must be tested with `another`, which opens a second queue'),
    openStalled: () =>
      open(stalled, 'a queue with leases must be tested with `stalled`, which opens one that renews none'),
  }
}
