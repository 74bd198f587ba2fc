/** The counts of a queue, and the health of its receiver or destination, which the health check of a process reports. */

import type { Clock } from '../kit/clock.ts'
import { TIMED_OUT, withTimeout } from '../kit/timeout.ts'
import { HooklineError } from '../protocol/error.ts'

/** How many jobs a queue has. */
export interface QueueCounts {
  /** The number of jobs that wait to be claimed, now or later. */
  readonly waiting: number
  /**
   * The number of waiting jobs that were claimed before, and wait to be retried. Undefined if the engine cannot count them cheaply.
   */
  readonly retrying?: number
  /** The number of jobs that are claimed, by any worker. */
  readonly active: number
  readonly deadLetters: number
  /**
   * The time at which the oldest due job came due; undefined if no job is due. A job that waits behind another job of its group is not due,
   * except in a pg-boss queue.
   */
  readonly oldestDueAt: Date | undefined
  /** The time at which the engine counted the jobs. */
  readonly asOf: Date
  /** Why the last push of this process failed; undefined if it succeeded, or failed more than a minute ago. */
  readonly pushError?: string
  /** True while all processes of the queue are paused; undefined otherwise. */
  readonly paused?: boolean
}

/** The health of a receiver or a destination. Without a queue, or while the queue is unavailable, the numbers are 0. */
export interface Health {
  /**
   * Whether to send traffic: false after `close` was called, while the queue is unavailable, and for a minute if the last message could
   * not be stored.
   */
  readonly ready: boolean
  /**
   * `closing` after `close` was called; `unavailable` if the queue fails or does not respond within a second; `degraded` for a minute if
   * the last message could not be stored, and while the circuit of a URL is not closed. Dead letters do not change the status.
   */
  readonly status: 'ok' | 'degraded' | 'closing' | 'unavailable'
  /** Why the queue is unavailable or, for a minute, why the last message could not be stored. */
  readonly reason?: string
  /** The number of messages in the queue that wait to be handled or sent, now or later. */
  readonly waiting: number
  /** The number of waiting messages that were tried before. Undefined if the engine of the queue does not count them. */
  readonly retrying?: number
  /** The number of messages that are being handled or sent, by any worker of the queue. */
  readonly active: number
  readonly deadLetters: number
  /** How long the oldest due message has been due, in milliseconds; 0 if no message is due. */
  readonly oldestDueAgeMs: number
  /** The time at which the queue counted the messages; undefined without a queue, and while the queue is unavailable. */
  readonly asOf: Date | undefined
  /** True while all processes of the queue are paused, so that messages wait; undefined otherwise. A pause does not change `status`. */
  readonly paused?: boolean
}

const TIMEOUT_MS = 1_000
type Counted = Omit<QueueCounts, 'asOf'> & Pick<Health, 'asOf'>
const NO_JOBS: Counted = { waiting: 0, active: 0, deadLetters: 0, oldestDueAt: undefined, asOf: undefined }

export async function checkHealth(
  readCounts: (() => Promise<QueueCounts>) | undefined,
  isClosing: boolean,
  clock: Clock,
  hasOpenCircuit = false,
): Promise<Health> {
  const count = async (): Promise<Counted> => (await readCounts?.()) ?? NO_JOBS
  const counted = await withTimeout(count(), TIMEOUT_MS, clock).catch((error: unknown) => {
    if (error instanceof HooklineError) return error
    // The message of any other error may quote secrets or bodies.
    return new Error('The jobs of the queue could not be counted. Check the server or the disk of the queue.')
  })
  const result =
    counted === TIMED_OUT
      ? new Error('The queue did not respond within 1 second. Check its server or its disk.')
      : counted
  const error = result instanceof Error ? result : undefined
  const counts = result instanceof Error ? NO_JOBS : result
  const { waiting, retrying, active, deadLetters, oldestDueAt, asOf, pushError, paused } = counts
  const reason = error?.message ?? pushError
  const readStatus = (): Health['status'] => {
    if (isClosing) return 'closing'
    if (error !== undefined) return 'unavailable'
    return reason !== undefined || hasOpenCircuit ? 'degraded' : 'ok'
  }
  return {
    ready: !isClosing && reason === undefined,
    status: readStatus(),
    ...(reason !== undefined && { reason }),
    waiting,
    ...(retrying !== undefined && { retrying }),
    active,
    deadLetters,
    oldestDueAgeMs: oldestDueAt === undefined ? 0 : Math.max(0, clock.now() - oldestDueAt.getTime()),
    asOf,
    ...(paused && { paused }),
  }
}
