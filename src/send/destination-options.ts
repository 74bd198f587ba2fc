/** The options of createDestination(), checked once. */

import {
  anything,
  checkOptions,
  hasMethods,
  invalidOption,
  kindOf,
  type OptionChecks,
  requireBoolean,
  requireFunction,
  requireOneOf,
  requireOptions,
  whole,
} from '../kit/checks.ts'
import { createLog, type Log, type Logger } from '../kit/log.ts'
import type { Message } from '../protocol/message.ts'
import type { Key } from '../protocol/signature.ts'
import { type EncryptionOptions, encryptQueue, readSeals } from '../store/encryption.ts'
import { checkGroupBy } from '../store/groups.ts'
import { memoryQueue } from '../store/memory/memory-queue.ts'
import type { Queue } from '../store/queue-types.ts'
import { type CircuitEvent, type CircuitOptions, readCircuitOptions } from './circuit.ts'
import type { DeliveryReport } from './destination-events.ts'
import type { DestinationChanges, DestinationDeadLetter } from './destination-types.ts'
import type { MessageFunctions } from './message-functions.ts'
import { readKey, readSenderOptions, SENDER_CHECKS, type SenderOptions, type SenderSettings } from './sender-options.ts'
import { readWebhooks } from './webhooks.ts'

/** Options of `createDestination`. */
export interface DestinationOptions extends SenderOptions {
  /**
   * Whether the destination starts enabled. The queue does not store whether the destination is enabled, so this option decides again after
   * a restart. Default true.
   */
  readonly enabled?: boolean
  /**
   * The maximum age of a message when it is submitted, in milliseconds, measured from its `timestamp`. An older message is historical and
   * is not queued ("Go client library", What the service does 7). A message without a timestamp counts as new, and a `delete` is queued
   * whatever its timestamp. Default: none, so messages of any age are queued.
   */
  readonly historicalAfterMs?: number
  /**
   * The queue that stores messages until they are delivered; it can serve only one destination. Default: a `memoryQueue`, which loses its
   * messages when the process ends.
   */
  readonly queue?: Queue
  /** The maximum number of messages to post at a time. A message counts until its URLs have responded, for up to 5 seconds. Default 50. */
  readonly concurrency?: number
  /**
   * The maximum number of posts per second from this process to each URL, on average. A tenth of this number may be posted at once, or one
   * post if a tenth is less than one. Default: no limit.
   */
  readonly maxPerSecond?: number
  /**
   * Sets when the circuit of a failing URL opens, and how it probes the URL. While the circuit is open, messages for the URL are held. With
   * false, circuits never open. Default: a circuit opens after 10 failures in a row, a 429 or a `Retry-After`. It probes within a second,
   * then at growing intervals of up to 30 seconds, or later if a `Retry-After` asks for it.
   */
  readonly circuit?: CircuitOptions | false
  /**
   * Decides what happens to messages that are submitted while the destination is disabled. `hold` queues the messages and holds them for up
   * to four hours; `drop` does not queue them. Default `drop`.
   */
  readonly whenDisabled?: 'drop' | 'hold'
  /**
   * Returns whether to send a message. The function is called once, before `transform`, when the message is about to be posted for the
   * first time; it may return a promise. If it throws, the message becomes a dead letter with the reason `transform_failed`. A redrive
   * calls the function again.
   */
  readonly filter?: MessageFunctions['filter']
  /**
   * Returns the message to send in place of the given message. The function may change the given message and return it. It is called under
   * the same conditions as `filter`, but only if `filter` returned true. Each attempt posts its result.
   */
  readonly transform?: MessageFunctions['transform']
  /**
   * Returns the group of a message, for example its user id. The function gets the message as it was submitted. The messages of a group are
   * posted one at a time, in the order of submission. While a message waits for its retry, for up to four hours, the other messages of its
   * group wait, too. Null, undefined or `''` means no group. This option needs a `sqliteQueue`, `pgBossQueue` or `memoryQueue`. Default: no
   * groups.
   */
  readonly groupBy?: (message: Message) => string | null | undefined
  /**
   * Encrypts the messages that the queue stores, with AES-256-GCM. Pass the same keys to all processes. Default: messages are stored
   * unencrypted.
   */
  readonly encryption?: EncryptionOptions
  /** The source of randomness for the schedule: returns a number of at least 0 and less than 1. Default `Math.random`. */
  readonly random?: () => number
  /**
   * Receives a report after every round, with the status (delivered, retrying or failed) and all attempts so far. What the function returns
   * is not awaited. Default: prints a line for each failed round (see `logger`).
   */
  readonly onAttempt?: (report: DeliveryReport) => unknown
  /** Receives an event each time a circuit opens or closes. What the function returns is not awaited. */
  readonly onCircuit?: (event: CircuitEvent) => unknown
  /**
   * Receives each new dead letter, for example to raise an alarm. What the function returns is not awaited. The function is called once for
   * each dead letter, but again if the process dies before the queue has recorded the dead letter.
   */
  readonly onDeadLetter?: (letter: DestinationDeadLetter) => unknown
  /**
   * The logger for lines about failed rounds, circuits and dead letters: pino, or any object with the same methods. Default: the console,
   * with at most six lines a minute for each code; with `onAttempt`, nothing is printed unless `console` is passed here.
   */
  readonly logger?: Logger
}

export interface DestinationSettings extends SenderSettings {
  readonly enabled: boolean
  readonly historicalAfterMs: number | undefined
  readonly whenDisabled: 'drop' | 'hold'
  readonly functions: MessageFunctions
  readonly queue: Queue
  readonly concurrency: number
  readonly groupBy: DestinationOptions['groupBy']
  readonly random: () => number
  readonly maxPerSecond: number | undefined
  readonly circuit: Readonly<Required<CircuitOptions>>
  readonly onCircuit: DestinationOptions['onCircuit']
  readonly onAttempt: DestinationOptions['onAttempt']
  readonly onDeadLetter: DestinationOptions['onDeadLetter']
  readonly log: Log
}

const CHECKS: OptionChecks<DestinationOptions> = {
  ...SENDER_CHECKS,
  enabled: requireBoolean,
  historicalAfterMs: whole(1, Number.MAX_SAFE_INTEGER),
  queue: requireQueue,
  concurrency: whole(1),
  maxPerSecond: whole(1),
  circuit: anything,
  whenDisabled: (name, value) => requireOneOf(name, value, ['drop', 'hold']),
  filter: requireFunction,
  transform: requireFunction,
  groupBy: anything,
  encryption: anything,
  random: requireFunction,
  onAttempt: requireFunction,
  onCircuit: requireFunction,
  onDeadLetter: requireFunction,
  logger: anything,
}

function requireQueue(name: string, queue: unknown): void {
  if (hasMethods(queue, ['push', 'work'])) return
  const advice = "Pass a queue, for example memoryQueue({ name: 'outbox' }) from hookline/queues/memory."
  throw invalidOption(name, 'must be a queue', kindOf(queue), advice)
}

export function readDestinationOptions(options: DestinationOptions): DestinationSettings {
  checkOptions('createDestination', options, CHECKS)
  const sender = readSenderOptions(options)
  const {
    enabled = true,
    whenDisabled = 'drop',
    historicalAfterMs,
    concurrency = 50,
    random = Math.random,
    maxPerSecond,
    circuit,
  } = options
  const { onAttempt, onCircuit, onDeadLetter } = options
  const { queue = memoryQueue({ name: 'destination', clock: sender.clock }), groupBy, encryption } = options
  checkGroupBy('', groupBy, queue)
  return {
    ...sender,
    connections: Number.POSITIVE_INFINITY, // `concurrency` limits their number.
    enabled,
    historicalAfterMs,
    whenDisabled,
    functions: { filter: options.filter, transform: options.transform },
    queue: encryptQueue(queue, readSeals('encryption', encryption), sender.clock),
    concurrency,
    groupBy,
    random: () => readShare(random()),
    maxPerSecond,
    circuit: readCircuitOptions(circuit),
    onAttempt,
    onCircuit,
    onDeadLetter,
    log: createLog(options.logger, onAttempt, sender.clock),
  }
}

/** Returns the settings with these changes. Checks the changes in the same way as the options of `createDestination`. */
export function applyChanges(settings: DestinationSettings, changes: DestinationChanges): DestinationSettings {
  requireOptions('update', changes, ['webhooks', 'sharedSecret', 'enabled'] satisfies (keyof DestinationChanges)[])
  if ('enabled' in changes) requireBoolean('enabled', changes.enabled)
  const { enabled = settings.enabled } = changes
  const targets = 'webhooks' in changes ? readWebhooks(changes.webhooks) : settings.targets
  const key = 'sharedSecret' in changes ? readNewKey(changes.sharedSecret) : settings.key
  return { ...settings, targets, key, enabled }
}

function readNewKey(sharedSecret: string | null | undefined): Key | undefined {
  return sharedSecret === null ? undefined : readKey(sharedSecret, 'null')
}

/** Replaces a random number that is NaN or out of range. With such a number, a message would be retried at once or never. */
function readShare(share: number): number {
  return share >= 0 && share < 1 ? share : Math.random()
}
