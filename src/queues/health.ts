/** What a queue counts, and the health of a receiver or a destination that follows, for a health check of its process. */

import type { Clock } from '../time/clock.ts'
import { TIMED_OUT, within } from '../time/timeout.ts'

/** How many jobs there are. */
export interface QueueCounts {
  /** Jobs that wait to be claimed, now or later. */
  readonly waiting: number
  /** Of those, the jobs that were claimed before: they wait for their next attempt. Undefined where the engine cannot say it cheaply. */
  readonly retrying?: number
  /** Jobs that are claimed, by any worker. */
  readonly active: number
  readonly deadLetters: number
  /** When the oldest due job came due; undefined when none is due. */
  readonly oldestDueAt: Date | undefined
  /** When the engine counted. */
  readonly asOf: Date
}

/** The health of a receiver or a destination. Without a queue, or while it is unavailable, the numbers are 0. */
export interface Health {
  /**
   * `closing` once `close` was called; `unavailable` when the queue does not answer within a second; `degraded` while there are
   * dead letters, which wait for you: no restart changes that.
   */
  readonly status: 'ok' | 'degraded' | 'closing' | 'unavailable'
  /** Messages in the queue that wait to be handled or sent, now or later. */
  readonly waiting: number
  /** Of those, the messages that were tried before. Undefined where the engine of the queue does not say it. */
  readonly retrying?: number
  /** Messages that are being handled or sent, by any worker of the queue. */
  readonly active: number
  readonly deadLetters: number
  /** How long the oldest due message has been due, in milliseconds; 0 when none is due. */
  readonly oldestDueAgeMs: number
  /** When the queue counted; undefined without a queue and while it is unavailable. */
  readonly asOf: Date | undefined
}

const TIMEOUT_MS = 1_000
type Counted = Omit<QueueCounts, 'asOf'> & Pick<Health, 'asOf'>
const NO_JOBS: Counted = { waiting: 0, active: 0, deadLetters: 0, oldestDueAt: undefined, asOf: undefined }

export async function checkHealth(
  readCounts: (() => Promise<QueueCounts>) | undefined,
  isClosing: boolean,
  clock: Clock,
): Promise<Health> {
  const count = async (): Promise<Counted> => (await readCounts?.()) ?? NO_JOBS
  const counts = await within(count(), TIMEOUT_MS, clock).catch((): typeof TIMED_OUT => TIMED_OUT)
  const { waiting, retrying, active, deadLetters, oldestDueAt, asOf } = counts === TIMED_OUT ? NO_JOBS : counts
  const state = counts === TIMED_OUT ? 'unavailable' : deadLetters > 0 ? 'degraded' : 'ok'
  const status = isClosing ? 'closing' : state
  const oldestDueAgeMs = oldestDueAt === undefined ? 0 : Math.max(0, clock.now() - oldestDueAt.getTime())
  return { status, waiting, ...(retrying !== undefined && { retrying }), active, deadLetters, oldestDueAgeMs, asOf }
}
