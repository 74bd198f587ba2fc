/** What the tests of a queue are given, and what they are: types only. */

import type { Queue } from '../../queues/queue.ts'

/** What is promised of a queue. The tests of what is not promised are not in the list. */
export interface TestQueueOptions {
  /** Whether the jobs are still there when the process has ended. Default true. When false, no test is named `durable: …`. */
  readonly isDurable?: boolean
  /** How long a claim lasts that is not renewed, in milliseconds. Default: for ever, and no test is named `lease: …`. */
  readonly leaseMs?: number
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
  /** How long a test waits for one thing to happen, in milliseconds of real time. Default 4000. */
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
