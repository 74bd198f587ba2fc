/** The context of each test of a queue: the queue, jobs, handlers, and waits with a timeout. */

import { deepEqual, fail, ok } from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import { systemClock } from '../../kit/clock.ts'
import { withTimeout } from '../../kit/timeout.ts'
import type { QueueCounts } from '../../store/health.ts'
import type { ClaimedJob, HandleJob, Job, Outcome, Queue } from '../../store/queue-types.ts'

/** The features of the tested queue. Tests of features that the queue lacks are left out. */
export interface TestQueueOptions {
  /** Whether jobs outlive the process. Default true. With false, the tests named `durable: …` are left out. */
  readonly isDurable?: boolean
  /** How long a claim that is not renewed lasts, in milliseconds. Default: for ever. The tests named `lease: …` run only with this option. */
  readonly leaseMs?: number
  /** Whether the queue has a log. Default false. With false, the tests named `log: …` are left out. */
  readonly hasLog?: boolean
  /** Whether the queue supports groups. Default false. With false, the tests named `groups: …` are left out. */
  readonly hasGroups?: boolean
  /** Whether the queue has marks. Default false. With false, the tests named `marks: …` are left out. */
  readonly hasMarks?: boolean
}

/** A new, empty queue, and what the tests need to know about the queue. */
export interface TestedQueue {
  readonly queue: Queue
  /** The time of the queue's clock, in milliseconds since the epoch. */
  now(): number
  /** Moves the queue's clock forward and lets the jobs that are due then reach their handler. */
  advance(ms: number): Promise<void>
  /** The dedupe window, in milliseconds: at least 10 000. The tests move the clock past its end. */
  readonly dedupeWindowMs: number
  /**
   * Whether jobs are claimed in the exact order in which they came due. Default true. With false, the tests expect only that jobs that were
   * due when they were pushed are claimed in the order of the pushes.
   */
  readonly exactOrder?: boolean
  /**
   * How long a test waits for an event, in milliseconds of real time. It always waits for at least 200 turns of the event loop. Default
   * 4000.
   */
  readonly timeoutMs?: number
  /** Opens another queue over the same jobs, as another process would. Required unless `isDurable` is false. */
  another?(): Queue | Promise<Queue>
  /**
   * Opens another queue, which has the same jobs and never renews its claims, as if its process were suspended. An
   * example is a queue with a separate clock that stands still. Required with `leaseMs`.
   */
  stalled?(): Queue | Promise<Queue>
  /** Makes the queues look for jobs that another queue pushed. Needed if they poll with a manual clock. */
  tick?(): Promise<void>
  /** Makes the next `counts()` current, for an engine that caches its counts. */
  refresh?(): Promise<void>
  /** Releases what `create` set up. Called after the queues are closed. */
  dispose?(): Promise<void>
}

/** One test, for any test runner. */
export interface QueueTest {
  /** The rule of the contract that the test checks. */
  readonly name: string
  /** Rejects with an AssertionError when the queue breaks the rule. */
  run(): Promise<void>
}

/** Tests, keyed by their names. The name states the rule; a failed assertion shows what was found instead. */
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

/**
 * Creates a body of 10 000 characters, for tests of size limits. The few bytes that an engine stores with a body do not matter beside it.
 */
export const large = (character: string): string => character.repeat(10_000)

export const partsOf = ({ id, body, claimCount, retryState }: ClaimedJob) => ({
  id,
  body: text(body),
  claimCount,
  retryState: text(retryState),
})

/**
 * The number of checks that a wait makes in a row, however long they take. After these checks, the wait pauses for a millisecond between
 * two checks, to leave the processor to the awaited work.
 */
const MIN_CHECKS = 200
const TIMEOUT_MS = 4_000

/** Runs a test with a new queue. Closes all queues that the test opened, and disposes of the queue, even when the test fails. */
export async function runCase(
  create: () => TestedQueue | Promise<TestedQueue>,
  check: (context: TestContext) => Promise<void>,
  options: TestQueueOptions,
): Promise<void> {
  const tested = await create()
  const opened = [tested.queue]
  try {
    await check(new TestContext(tested, opened, options))
  } catch (error) {
    await cleanUp(tested, opened).catch(() => {}) // The failure of the test itself is reported instead.
    throw error
  }
  await cleanUp(tested, opened)
}

async function cleanUp({ dispose, timeoutMs }: TestedQueue, opened: readonly Queue[]): Promise<void> {
  const closing = begin(Promise.allSettled(opened.map((queue) => queue.close({ graceMs: 0 }))), timeoutMs)
  try {
    for (const result of await closing.waitForEnd()) if (result.status === 'rejected') throw result.reason
  } finally {
    await dispose?.()
  }
}

async function until(
  isTrue: () => boolean | Promise<boolean>,
  explain: () => string,
  proceed = () => nextTurn<void>(),
  timeoutMs = TIMEOUT_MS,
): Promise<void> {
  const end = performance.now() + timeoutMs
  for (let checks = 1; !(await isTrue()); checks += 1) {
    if (checks > MIN_CHECKS) {
      if (performance.now() > end) fail(`${explain()} Waited ${timeoutMs} ms.`)
      await delay(1)
    }
    await proceed()
  }
}

/** Watches a promise that must settle. `waitForEnd` waits until the promise has settled, and settles in the same way. */
function begin<T>(work: Promise<T>, timeoutMs = TIMEOUT_MS, rule = 'The promise did not settle.') {
  let isOver = false
  const ended = Promise.allSettled([work]).then(() => {
    isOver = true
  })
  return {
    get isOver(): boolean {
      return isOver
    },
    async waitForEnd(): Promise<T> {
      await withTimeout(ended, timeoutMs, systemClock)
      for (let turns = 0; !isOver && turns < MIN_CHECKS; turns += 1) await nextTurn()
      ok(isOver, `${rule} Waited ${timeoutMs} ms.`)
      return work
    },
  }
}

/** The tools of each test. The functions are fields, not methods, because tests destructure the context. */
export class TestContext {
  readonly queue: Queue
  readonly now: TestedQueue['now']
  readonly advance: TestedQueue['advance']
  readonly tick: () => Promise<void>
  readonly dedupeWindowMs: number
  readonly exactOrder: boolean
  readonly isDurable: boolean
  readonly leaseMs: number
  readonly #tested: TestedQueue
  readonly #opened: Queue[]

  /** @param opened Receives each queue that the test opens. */
  constructor(
    tested: TestedQueue,
    opened: Queue[],
    { isDurable = true, leaseMs = Number.POSITIVE_INFINITY }: TestQueueOptions,
  ) {
    const { queue, now, advance, tick = () => nextTurn<void>(), dedupeWindowMs, exactOrder = true } = tested
    this.queue = queue
    this.now = now
    this.advance = advance
    this.tick = tick
    this.dedupeWindowMs = dedupeWindowMs
    this.exactOrder = exactOrder
    this.isDurable = isDurable
    this.leaseMs = leaseMs
    this.#tested = tested
    this.#opened = opened
  }

  /** Gives a queue a handler. Returns the jobs that the handler has seen so far. */
  readonly work = (decide: Decide = complete, concurrency = 10, queue: Queue = this.queue): Seen => {
    const seen: ClaimedJob[] = []
    const handle: HandleJob = (...claimed) => {
      seen.push(claimed[0])
      return Promise.resolve(decide(...claimed)) // If `decide` throws, the handler throws, too, as a handler that is not async would.
    }
    queue.work(handle, { concurrency })
    return seen
  }

  /** Gives a queue a handler that holds its jobs until `end` is called, which ends all of them. */
  readonly hold = (concurrency?: number, queue?: Queue): { readonly seen: Seen; end(outcome: Outcome): void } => {
    const { promise, resolve } = Promise.withResolvers<Outcome>()
    return { seen: this.work(() => promise, concurrency, queue), end: resolve }
  }

  /** Pushes a job, and waits until the handler has seen it as its first job. */
  readonly run = async (seen: Seen, body = 'running'): Promise<void> => {
    await this.queue.push([jobOf(body)])
    await this.claimed(seen, 1)
  }

  /** Pushes jobs one by one, each a moment after the previous one has been handled. */
  readonly pushEach = async (jobs: readonly Job[]): Promise<void> => {
    for (const job of jobs) {
      await this.queue.push([job])
      await this.drain()
      await this.advance(1)
    }
  }

  /** Waits until `isTrue` returns true. `proceed`, for example `tick`, is called between two checks. */
  readonly until = (
    isTrue: () => boolean | Promise<boolean>,
    explain: () => string,
    proceed?: () => Promise<void>,
  ): Promise<void> => until(isTrue, explain, proceed, this.#tested.timeoutMs)

  /** Waits until a handler has seen this many jobs, and checks that it has seen no more. */
  readonly claimed = async (seen: Seen, count: number, proceed?: () => Promise<void>): Promise<void> => {
    const explain = () => `${count} claims were expected. Got ${seen.length}.`
    await this.until(() => seen.length >= count, explain, proceed)
    ok(seen.length === count, explain())
  }

  readonly drain = (queue: Queue = this.queue): Promise<void> => {
    const rule = 'drain() must resolve when no job is due and none is claimed.'
    return begin(queue.drain(), this.#tested.timeoutMs, rule).waitForEnd()
  }

  readonly begin = <T>(work: Promise<T>) => begin(work, this.#tested.timeoutMs)

  readonly counts = async (queue: Queue = this.queue): Promise<QueueCounts> => {
    await this.#tested.refresh?.()
    return queue.counts()
  }

  /** Checks the given counts, and `retrying` only if the engine counts it. Default: no job waits, runs or has failed. */
  readonly expectCounts = async (
    expected: Partial<QueueCounts> = { waiting: 0, active: 0, deadLetters: 0 },
    queue?: Queue,
  ): Promise<void> => {
    const counts = await this.counts(queue)
    const found = counts.retrying === undefined ? { ...counts, retrying: expected.retrying } : counts
    const names = Object.keys(expected) as (keyof QueueCounts)[]
    deepEqual(Object.fromEntries(names.map((name) => [name, found[name]])), expected)
  }

  /** Opens another queue over the same jobs. It is closed when the test ends. */
  readonly openAnother = (): Promise<Queue> =>
    this.#openQueue(this.#tested.another, 'A durable queue must be tested with `another`, which opens a second queue.')

  /** Opens another queue, which has the same jobs and never renews its claims. The queue is closed when the test ends. */
  readonly openStalled = (): Promise<Queue> =>
    this.#openQueue(
      this.#tested.stalled,
      'A queue with leases must be tested with `stalled`, which opens a queue that renews no lease.',
    )

  async #openQueue(create: TestedQueue['another'], advice: string): Promise<Queue> {
    if (create === undefined) fail(advice)
    const queue = await create()
    this.#opened.push(queue)
    return queue
  }
}
