/** What the tests of a queue are given, and what each of them works with: jobs, handlers, and waits that end. */

import { deepEqual, fail, ok } from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import { systemClock } from '../../kit/clock.ts'
import { within } from '../../kit/timeout.ts'
import type { QueueCounts } from '../../store/health.ts'
import type { ClaimedJob, HandleJob, Job, Outcome, Queue } from '../../store/queue-types.ts'

/** What is promised of a queue. The tests of what is not promised are not in the list. */
export interface TestQueueOptions {
  /** Whether the jobs are still there when the process has ended. Default true. When false, no test is named `durable: …`. */
  readonly isDurable?: boolean
  /** How long a claim lasts that is not renewed, in milliseconds. Default: for ever, and no test is named `lease: …`. */
  readonly leaseMs?: number
  /** Whether the queue has a log. Default false, and no test is named `log: …`. */
  readonly hasLog?: boolean
  /** Whether the queue takes groups. Default false, and no test is named `groups: …`. */
  readonly hasGroups?: boolean
}

/** A new, empty queue and what the tests need to know about it. */
export interface TestedQueue {
  readonly queue: Queue
  /** The time of the queue's clock, in milliseconds since the epoch. */
  now(): number
  /** Moves the queue's clock forward and lets the jobs that are due then reach their handler. */
  advance(ms: number): Promise<void>
  /** The dedupe window, in milliseconds, at least 10 000: the tests let it pass. */
  readonly dedupeWindowMs: number
  /**
   * Whether jobs are claimed in the exact order in which they came due. Default true. When false, the tests expect the order of
   * the pushes from jobs that were due when they were pushed, one after the other.
   */
  readonly exactOrder?: boolean
  /** How long a test waits for one thing to happen, in milliseconds of real time, and 50 turns in any case. Default 4000. */
  readonly timeoutMs?: number
  /** Opens another queue over the same jobs, as another process would. Required unless `isDurable` is false. */
  another?(): Queue | Promise<Queue>
  /**
   * Opens another queue over the same jobs that never renews its claims, as if its process had been stopped: for example with
   * a clock of its own that stands still. Required with `leaseMs`.
   */
  stalled?(): Queue | Promise<Queue>
  /** Makes queues that poll by a manual clock look for jobs that another queue pushed. */
  tick?(): Promise<void>
  /** Makes the next `counts()` current, for an engine that caches its counts. */
  refresh?(): Promise<void>
  /** Releases what `create` set up. Called when the queues are closed. */
  dispose?(): Promise<void>
}

/** One test, for any test runner. */
export interface QueueTest {
  /** The rule of the contract that it checks. */
  readonly name: string
  /** Rejects with an AssertionError when the queue breaks the rule. */
  run(): Promise<void>
}

export type TestContext = ReturnType<typeof createContext>

/** Tests by their names, which say the rule: assertions show what was found in place of it. */
export type Cases = Readonly<Record<string, (context: TestContext) => Promise<void>>>

export type Decide = (...claimed: Parameters<HandleJob>) => Outcome | Promise<Outcome>

export type Seen = readonly ClaimedJob[]

export const complete = (): Outcome => ({ complete: true })

export const never = (): Promise<Outcome> => new Promise(() => {})

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

export const text = (body: Uint8Array | undefined): string | undefined => body && new TextDecoder().decode(body)

export const bodiesOf = (jobs: readonly { readonly body: Uint8Array }[]): (string | undefined)[] =>
  jobs.map(({ body }) => text(body))

export const jobOf = (body: string, more: Partial<Job> = {}): Job => ({ id: randomUUID(), body: bytes(body), ...more })

/** So large that what an engine stores with it does not matter. */
export const large = (character: string): string => character.repeat(10_000)

export const partsOf = ({ id, body, claimCount, retryState }: ClaimedJob) => ({
  id,
  body: text(body),
  claimCount,
  retryState: text(retryState),
})

/** A wait looks so often in any case, whatever the time. Afterwards it leaves the processor to what it waits for. */
const TURNS = 50
const TIMEOUT_MS = 4_000

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

async function cleanUp({ dispose, timeoutMs }: TestedQueue, queues: readonly Queue[]): Promise<void> {
  const closing = begin(Promise.allSettled(queues.map((queue) => queue.close({ graceMs: 0 }))), timeoutMs)
  try {
    for (const result of await closing.end()) if (result.status === 'rejected') throw result.reason
  } finally {
    await dispose?.()
  }
}

async function until(
  isTrue: () => boolean | Promise<boolean>,
  what: () => string,
  pass = () => nextTurn<void>(),
  timeoutMs = TIMEOUT_MS,
): Promise<void> {
  const end = performance.now() + timeoutMs
  for (let looks = 1; !(await isTrue()); looks += 1) {
    if (looks > TURNS) {
      if (performance.now() > end) fail(`${what()} Waited ${timeoutMs} ms.`)
      await delay(1)
    }
    await pass()
  }
}

/** Begins something that must end: `end` waits for that, and resolves to its result. */
function begin<T>(work: Promise<T>, timeoutMs = TIMEOUT_MS, rule = 'It did not end.') {
  let isOver = false
  const ended = Promise.allSettled([work]).then(() => {
    isOver = true
  })
  return {
    get isOver(): boolean {
      return isOver
    },
    async end(): Promise<T> {
      await within(ended, timeoutMs, systemClock)
      for (let turns = 0; !isOver && turns < TURNS; turns += 1) await nextTurn()
      ok(isOver, `${rule} Waited ${timeoutMs} ms.`)
      return work
    },
  }
}

function createContext(
  tested: TestedQueue,
  queues: Queue[],
  { isDurable = true, leaseMs = Number.POSITIVE_INFINITY }: TestQueueOptions,
) {
  const { timeoutMs, refresh, another, stalled, tick = () => nextTurn<void>() } = tested

  async function open(make: TestedQueue['another'], advice: string): Promise<Queue> {
    if (make === undefined) fail(advice)
    const queue = await make()
    queues.push(queue)
    return queue
  }

  const context = {
    ...tested,
    isDurable,
    leaseMs,
    async counts(queue = tested.queue): Promise<QueueCounts> {
      await refresh?.()
      return queue.counts()
    },
    work(decide: Decide = complete, concurrency = 10, queue = tested.queue): Seen {
      const seen: ClaimedJob[] = []
      const handle: HandleJob = (...claimed) => {
        seen.push(claimed[0])
        return Promise.resolve(decide(...claimed)) // What it throws, a handler that is not async throws, too.
      }
      queue.work(handle, { concurrency })
      return seen
    },
    /** Gives a queue a handler that ends no job before `end`, and all of them then. */
    hold(concurrency?: number, queue?: Queue): { readonly seen: Seen; end(outcome: Outcome): void } {
      const { promise, resolve } = Promise.withResolvers<Outcome>()
      return { seen: context.work(() => promise, concurrency, queue), end: resolve }
    },
    /** Waits until it is true. `pass`: what happens between two looks, such as `tick`. */
    until: (isTrue: () => boolean | Promise<boolean>, what: () => string, pass?: () => Promise<void>): Promise<void> =>
      until(isTrue, what, pass, timeoutMs),
    /** Waits until a handler has seen so many jobs, and no more. */
    async claimed(seen: Seen, count: number, pass?: () => Promise<void>): Promise<void> {
      const what = () => `${count} claims were expected. Got ${seen.length}.`
      await context.until(() => seen.length >= count, what, pass)
      ok(seen.length === count, what())
    },
    /** Pushes a job, and waits until the handler that saw nothing so far has it. */
    async run(seen: Seen, body = 'running'): Promise<void> {
      await tested.queue.push([jobOf(body)])
      await context.claimed(seen, 1)
    },
    /** Pushes jobs one by one, each when the one before has been handled, a moment apart. */
    async pushEach(jobs: readonly Job[]): Promise<void> {
      for (const job of jobs) {
        await tested.queue.push([job])
        await context.drain()
        await tested.advance(1)
      }
    },
    drain: (queue = tested.queue): Promise<void> =>
      begin(queue.drain(), timeoutMs, 'drain() must resolve when no job is due and none is claimed.').end(),
    begin: <T>(work: Promise<T>) => begin(work, timeoutMs),
    tick,
    /** Compares those counts that are given. Default: that nothing waits, runs or has failed. */
    async expectCounts(
      expected: Partial<QueueCounts> = { waiting: 0, active: 0, deadLetters: 0 },
      queue?: Queue,
    ): Promise<void> {
      const { retrying = expected.retrying, ...counts } = await context.counts(queue) // An engine may not say it.
      const found: Partial<QueueCounts> = { ...counts, ...(retrying !== undefined && { retrying }) }
      const names = Object.keys(expected) as (keyof QueueCounts)[]
      deepEqual(Object.fromEntries(names.map((name) => [name, found[name]])), expected)
    },
    /** Opens another queue over the same jobs. It is closed when the test ends. */
    openAnother: (): Promise<Queue> =>
      open(another, 'a durable queue must be tested with `another`, which opens a second queue'),
    /** The same, for one that never renews its claims. */
    openStalled: (): Promise<Queue> =>
      open(stalled, 'a queue with leases must be tested with `stalled`, which opens one that renews none'),
  }
  return context
}
