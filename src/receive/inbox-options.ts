/** Reads the options of an inbox: checks them, and fills in the defaults. */

import {
  hasMethods,
  invalidOption,
  kindOf,
  refuseUnknown,
  requireBoolean,
  requireFunction,
  requireInteger,
  show,
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

/** The options of an inbox. */
export interface InboxOptions {
  /** The queue that stores the messages until they are handled. Only this inbox may use it. */
  readonly queue: Queue
  /** The maximum number of messages to handle at the same time in this process. Default 10. */
  readonly concurrency?: number
  /**
   * How long to wait after each failed attempt, in milliseconds, at most 24 days each. Pass a list with one number for each failed attempt:
   * a message that fails more often becomes a dead letter. Or pass a function that gets the number of failed attempts and the latest error.
   * The function returns how long to wait, or undefined to make the message a dead letter. If the function throws or returns anything else,
   * the default applies, and the process emits a warning.
   *
   * Default: a random time of up to 2 s, 10 s, 1 min, 4 min, 20 min, 1 h, 2 h, 4 h and 8 h, which allows 10 attempts in about 8 hours.
   */
  readonly retries?: readonly number[] | ((attempts: number, error: HooklineError) => number | undefined)
  /** Returns a random number that is at least 0 and less than 1, for the default `retries`. Default `Math.random`. */
  readonly random?: () => number
  /**
   * The maximum number of messages to handle per second, on average. Up to a tenth of this number may start at the same time. With
   * `bullmqQueue`, the limit applies to all processes together; with other queues, it applies to each process. Default: no limit.
   */
  readonly maxPerSecond?: number
  /**
   * How long the handlers of a message may take, in milliseconds. After that, `delivery.signal` aborts and the attempt fails with
   * `handler_timeout`, whether or not the handlers stop. Default 300 000 (5 minutes).
   */
  readonly timeoutMs?: number
  /**
   * Returns a key that identifies a message. Within the dedupe window of the queue, only one of several messages with the same key is
   * handled. The function gets the message as it was before its schema was applied. It is not called for an invalid message, which is
   * identified by the id of its delivery. Default: every message is identified by the id of its delivery.
   */
  key?(message: ReceivedMessage, delivery: Delivery): string
  /** Keeps handled messages, so that `history` can list them and `replay` can handle them again. Default: handled messages are deleted. */
  readonly history?: HistoryOptions
  /**
   * Calls all handlers of a message in one PostgreSQL transaction, which they get as `delivery.db`. What they write in the transaction
   * commits together with the completion of the message. Needs `pgBossQueue` with a `connectionString` or a `db`. Default false.
   */
  readonly transactional?: boolean
  /**
   * Returns the group of a message, for example the id of its user. Across all processes, the messages of a group are handled one at a
   * time, in order of arrival: a message that fails holds up the others until it succeeds or becomes a dead letter. A message for which the
   * function returns null, undefined or `''` has no group. The function gets the same arguments as `key`. Pass the same function in all
   * processes. Needs `sqliteQueue`, `pgBossQueue` or `memoryQueue`. Default: no message has a group.
   */
  groupBy?(message: ReceivedMessage, delivery: Delivery): string | null | undefined
  /**
   * Encrypts the messages that the queue stores, with AES-256-GCM. Pass the same keys in all processes. Default: messages are stored in
   * plain text.
   */
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

/** The maximum delay after each failed attempt, in milliseconds. The delay is random, so its average is half of the maximum. */
const RETRIES_MS = [2, 10, 60, 240, 1_200, 3_600, 7_200, 14_400, 28_800].map((seconds) => seconds * 1_000)

export function readInboxOptions(given: Queue | InboxOptions, clock: Clock) {
  const inbox = isQueue(given) ? { queue: given } : given
  const advice = "Pass memoryQueue({ name: 'inbox' }) or another queue."
  if (typeof inbox !== 'object' || inbox === null || !('queue' in inbox)) {
    throw invalidOption('inbox', 'must be a queue or an object with a `queue`', kindOf(inbox), advice)
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
      const advice = 'Return a number in that range, or undefined for no further attempt.'
      warn(invalidOption('inbox.retries()', `must return a number from 0 to ${MAX_TIMER_MS}`, show(delay), advice))
    } catch (failure) {
      warn(failure)
    }
    return otherwise(attempts, error)
  }
}
