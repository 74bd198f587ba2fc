/** The options of an inbox. They are checked once, and get their defaults. */

import {
  hasMethods,
  invalidOption,
  kindOf,
  refuseUnknown,
  requireBoolean,
  requireFunction,
  requireInteger,
} from '../kit/checks.ts'
import { type Clock, MAX_TIMER_MS } from '../kit/clock.ts'
import { createWarning } from '../kit/warning.ts'
import type { HooklineError } from '../protocol/error.ts'
import type { ReceivedMessage } from '../protocol/message.ts'
import { readHistory } from '../store/arguments.ts'
import { type EncryptionOptions, encryptQueue, readSeals } from '../store/encryption.ts'
import { checkGroupBy } from '../store/groups.ts'
import type { HistoryOptions, Queue } from '../store/queue-types.ts'
import type { Delivery } from './delivery.ts'

/** How an inbox works. */
export interface InboxOptions {
  /** Stores the messages until they are handled; for this inbox alone. */
  readonly queue: Queue
  /** The most messages that are handled at a time. Default 10. */
  readonly concurrency?: number
  /**
   * How long to wait, in milliseconds, after the first failed attempt, after the second and so on, each at most 24 days;
   * at the end of the list the message becomes a dead letter. Or a function of how many attempts failed and of the latest
   * error; undefined means no more. Default: a random time up to 2 s, 10 s, 1 min, 4 min, 20 min, 1 h, 2 h, 4 h, 8 h, so 10
   * attempts in about 8 hours. When a function throws, or returns neither, the default applies and the process emits a warning.
   */
  readonly retries?: readonly number[] | ((attempts: number, error: HooklineError) => number | undefined)
  /** The source of chance for the default `retries`: returns a number from 0 to below 1. Default `Math.random`. */
  readonly random?: () => number
  /**
   * The most messages that are handled a second, on average: a tenth of them may begin at once. On `bullmqQueue` of all processes
   * together, on other queues of each process. Default: no limit.
   */
  readonly maxPerSecond?: number
  /**
   * How long the handlers of a message may take, in milliseconds. Default 5 minutes. Then `delivery.signal` fires, and
   * the attempt has failed with `handler_timeout`, whether they stop or not.
   */
  readonly timeoutMs?: number
  /**
   * Identifies a message: of several with the same key, one is handled. Default: the delivery's id. Gets the message
   * before its schema. A body that is not a valid message goes by the delivery's id.
   */
  key?(message: ReceivedMessage, delivery: Delivery): string
  /** Keeps messages that were handled, so that they can be found and replayed. Default: they are deleted. */
  readonly history?: HistoryOptions
  /**
   * Calls the handlers of a message in a transaction of PostgreSQL, `delivery.db`. Their writes and the completion of the message commit
   * together. All handlers of a message share it. Needs `pgBossQueue` with a `connectionString` or a `db`. Default false.
   */
  readonly transactional?: boolean
  /**
   * Names the group of a message, such as its user. All processes together handle the messages of a group one at a time, in the order of
   * arrival: one that fails holds the others until it succeeds or is a dead letter. Null, undefined or `''`: no group. Gets what `key` gets. Pass the same to all processes. Needs
   * `sqliteQueue`, `pgBossQueue` or `memoryQueue`.
   */
  groupBy?(message: ReceivedMessage, delivery: Delivery): string | null | undefined
  /** Encrypts what the queue stores of messages, with AES-256-GCM. Pass the same keys to all processes. Default: it is stored as it is. */
  readonly encryption?: EncryptionOptions
}

type NextDelay = (attempts: number, error: HooklineError) => number | undefined

export type InboxSettings = ReturnType<typeof readInboxOptions>

const KNOWN = [
  'queue',
  'concurrency',
  'retries',
  'random',
  'maxPerSecond',
  'timeoutMs',
  'key',
  'history',
  'transactional',
  'groupBy',
  'encryption',
] as const satisfies (keyof InboxOptions)[]

/** The longest delays; the average is half of each. */
const RETRIES_MS = [2, 10, 60, 240, 1_200, 3_600, 7_200, 14_400, 28_800].map((seconds) => seconds * 1_000)

export function readInboxOptions(given: Queue | InboxOptions, clock: Clock) {
  const inbox = isQueue(given) ? { queue: given } : given
  const advice = "Pass memoryQueue({ name: 'inbox' }) or another queue."
  if (typeof inbox !== 'object' || inbox === null || !('queue' in inbox)) {
    throw invalidOption('inbox', 'must be a queue or { queue, … }', kindOf(inbox), advice)
  }
  refuseUnknown(inbox, KNOWN, 'inbox.')
  if (!isQueue(inbox.queue)) throw invalidOption('inbox.queue', 'must be a queue', kindOf(inbox.queue), advice)
  const { concurrency = 10, retries, timeoutMs = 5 * 60_000, key, history }: InboxOptions = inbox
  const { transactional = false, groupBy, encryption, random = Math.random, maxPerSecond }: InboxOptions = inbox
  const queue = encryptQueue(inbox.queue, readSeals('inbox.encryption', encryption), clock)
  requireInteger('inbox.concurrency', concurrency, 1)
  requireInteger('inbox.timeoutMs', timeoutMs, 1)
  requireFunction('inbox.random', random)
  if (maxPerSecond !== undefined) requireInteger('inbox.maxPerSecond', maxPerSecond, 1)
  if (key !== undefined) requireFunction('inbox.key', key)
  if (history !== undefined) readHistory('inbox.history', history, queue)
  requireBoolean('inbox.transactional', transactional)
  if (transactional && queue.isTransactional !== true) {
    const advice = 'Pass pgBossQueue of hookline/queues/pg-boss, with a `connectionString` or a `db`.'
    throw invalidOption('inbox.transactional', 'needs a queue on PostgreSQL', undefined, advice)
  }
  checkGroupBy('inbox.', groupBy, queue)
  const nextDelay = readRetries(retries, random)
  return { queue, concurrency, maxPerSecond, nextDelay, timeoutMs, key, history, transactional, groupBy }
}

function isQueue(value: Queue | InboxOptions): value is Queue {
  return hasMethods(value, ['push', 'work', 'counts', 'close'])
}

function readRetries(retries: InboxOptions['retries'], random: () => number): NextDelay {
  const spread: NextDelay = (attempts) => {
    const mostMs = RETRIES_MS[attempts - 1]
    return mostMs && Math.round(mostMs * random())
  }
  if (retries === undefined) return spread
  if (typeof retries === 'function') return withDefault(retries, spread)
  if (!Array.isArray(retries)) {
    const rule = 'must be a list of milliseconds or a function'
    throw invalidOption('inbox.retries', rule, kindOf(retries), 'Pass a list, for example [1000, 30000].')
  }
  const delays = retries.map((delay, index) => requireInteger(`inbox.retries[${index}]`, delay, 0))
  return (attempts) => delays[attempts - 1]
}

function withDefault(retries: NextDelay, otherwise: NextDelay): NextDelay {
  const warn = createWarning('inbox.retries', 'HOOKLINE_RETRIES')
  return (attempts, error) => {
    try {
      const delay = retries(attempts, error)
      if (delay === undefined) return undefined
      if (delay >= 0 && delay <= MAX_TIMER_MS) return Math.round(delay)
      warn(new RangeError(`It must return a number from 0 to ${MAX_TIMER_MS}.`))
    } catch (failure) {
      warn(failure)
    }
    return otherwise(attempts, error)
  }
}
