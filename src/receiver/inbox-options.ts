/** What the inbox of a receiver can be told, checked once and loudly. */

import type { HooklineError } from '../protocol/error.ts'
import type { Message } from '../protocol/message.ts'
import { LONGEST_TIMER_MS, refuseUnknown, requireFunction, requireWhole } from '../protocol/options.ts'
import type { Queue } from '../queues/queue.ts'
import type { Delivery } from './delivery.ts'

/** How an inbox works. */
export interface InboxOptions {
  /** Keeps the messages until they are handled; for this inbox alone. */
  readonly queue: Queue
  /** Most messages that are handled at a time. Default 10. */
  readonly concurrency?: number
  /**
   * How long to wait, in milliseconds, after the first failed attempt, after the second and so on, each at most 24 days;
   * when the list ends, the message goes to the dead. Or a function of how many attempts failed and of the latest error;
   * undefined means no more. Default: 1 s, 5 s, 30 s, 2 min, 10 min, 30 min, 1 h, 2 h, 4 h, so 10 attempts in about 8
   * hours. A function that throws, or returns neither, is as if it were this list, and the process is warned.
   */
  readonly retries?: readonly number[] | ((attempts: number, error: HooklineError) => number | undefined)
  /**
   * How long the handlers of a message may take, in milliseconds. Default 5 minutes. Then `delivery.signal` fires, and
   * the attempt has failed with `handler_timeout`, whether they stop or not.
   */
  readonly timeoutMs?: number
  /**
   * What makes two messages the same, of which one is handled. Default: the delivery's id. Gets the message before a
   * schema shaped it. What is no message goes by the delivery's id.
   */
  readonly key?: (message: Message, delivery: Delivery) => string
}

/** How long to wait before the next attempt, in milliseconds; undefined when there is none. Never throws. */
type NextDelay = (attempts: number, error: HooklineError) => number | undefined

/** The options of an inbox, complete and ready to use. */
export interface InboxSettings {
  readonly queue: Queue
  readonly concurrency: number
  readonly nextDelay: NextDelay
  readonly timeoutMs: number
  readonly key: InboxOptions['key']
}

const KNOWN = ['queue', 'concurrency', 'retries', 'timeoutMs', 'key'] as const satisfies (keyof InboxOptions)[]

const [SECOND, MINUTE, HOUR] = [1_000, 60_000, 3_600_000]

/** The default of {@link InboxOptions.retries}. */
const RETRIES_MS: readonly number[] = [
  SECOND,
  5 * SECOND,
  30 * SECOND,
  2 * MINUTE,
  10 * MINUTE,
  30 * MINUTE,
  HOUR,
  2 * HOUR,
  4 * HOUR,
]

/**
 * Checks and completes the options.
 *
 * @throws TypeError that names the option.
 */
export function readInboxOptions(inbox: Queue | InboxOptions): InboxSettings {
  if (isQueue(inbox)) return readInboxOptions({ queue: inbox })
  const isOptions = typeof inbox === 'object' && inbox !== null
  if (isOptions && 'queue' in inbox) refuseUnknown(inbox, KNOWN, 'inbox.')
  if (!isOptions || !isQueue(inbox.queue)) {
    throw new TypeError('inbox: must be a queue, for instance memoryQueue({ name }), or { queue } and more options.')
  }
  const { queue, concurrency = 10, retries = RETRIES_MS, timeoutMs = 5 * MINUTE, key } = inbox
  if (key !== undefined) requireFunction('inbox.key', key)
  return {
    queue,
    concurrency: requireWhole('inbox.concurrency', concurrency, 1),
    nextDelay: readRetries(retries),
    timeoutMs: requireWhole('inbox.timeoutMs', timeoutMs, 1),
    key,
  }
}

function isQueue(value: Queue | InboxOptions): value is Queue {
  return ['push', 'work', 'counts', 'close'].every((name) => typeof value?.[name as never] === 'function')
}

function readRetries(retries: NonNullable<InboxOptions['retries']>): NextDelay {
  if (typeof retries === 'function') return careful(retries)
  if (!Array.isArray(retries)) throw new TypeError('inbox.retries: must be a list of milliseconds, or a function.')
  const delays = retries.map((delay, index) => requireWhole(`inbox.retries[${index}]`, delay, 0))
  return (attempts) => delays[attempts - 1]
}

function careful(retries: NextDelay): NextDelay {
  return (attempts, error) => {
    try {
      const delay = retries(attempts, error)
      if (delay === undefined) return undefined
      if (delay >= 0 && delay <= LONGEST_TIMER_MS) return Math.round(delay)
      warn(`It returned no number from 0 to ${LONGEST_TIMER_MS}.`)
    } catch (failure) {
      warn(failure instanceof Error ? failure.message : 'It threw what is no Error.')
    }
    return RETRIES_MS[attempts - 1]
  }
}

function warn(detail: string): void {
  process.emitWarning('inbox.retries failed', { code: 'HOOKLINE_RETRIES', detail })
}
