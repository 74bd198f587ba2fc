/** What createDestination() can be told, checked once and loudly. */

import { requireBoolean, requireFunction, requireWhole } from '../protocol/options.ts'
import { memoryQueue } from '../queues/memory.ts'
import type { Queue } from '../queues/queue.ts'
import type { DeliveryReport } from './api.ts'
import { logFailures } from './log.ts'
import {
  readSenderOptions,
  requireOptions,
  SENDER_OPTIONS,
  type SenderOptions,
  type SenderSettings,
} from './sender-options.ts'

/** What `createDestination` takes. */
export interface DestinationOptions extends SenderOptions {
  /** Whether it begins switched on. Default true. */
  readonly enabled?: boolean
  /** Keeps the messages until they are delivered; for this destination alone. Default: a `memoryQueue`, which ends with the process. */
  readonly queue?: Queue
  /** Most messages that are posted at a time; one URL that hangs holds a message for 5 seconds. Default 50. */
  readonly concurrency?: number
  /** Chance, for the schedule: a number from 0 to below 1. Default `Math.random`. */
  readonly random?: () => number
  /**
   * Sees what happened after every round: delivered, retrying or failed, with every attempt so far. Not awaited. Default:
   * a line through `console.warn` for each attempt that failed.
   */
  readonly onAttempt?: (report: DeliveryReport) => unknown
}

/** The options of a destination, complete and ready to use. */
export interface DestinationSettings extends SenderSettings {
  readonly enabled: boolean
  readonly queue: Queue
  readonly concurrency: number
  readonly random: () => number
  readonly onAttempt: (report: DeliveryReport) => unknown
}

const KNOWN: readonly string[] = [
  ...SENDER_OPTIONS,
  ...(['enabled', 'queue', 'concurrency', 'random', 'onAttempt'] satisfies (keyof DestinationOptions)[]),
]

/**
 * Checks and completes the options.
 *
 * @throws TypeError that names the option.
 */
export function readDestinationOptions(options: DestinationOptions): DestinationSettings {
  requireOptions('createDestination', options, KNOWN)
  const sender = readSenderOptions(options)
  const { enabled = true, concurrency = 50, random = Math.random, onAttempt = logFailures } = options
  const { queue = memoryQueue({ name: 'destination', clock: sender.clock }) } = options
  requireBoolean('enabled', enabled)
  if (typeof queue?.push !== 'function' || typeof queue.work !== 'function') {
    throw new TypeError('queue: must be a queue, for instance memoryQueue({ name }) of hookline/queues/memory.')
  }
  requireWhole('concurrency', concurrency, 1)
  requireFunction('random', random)
  requireFunction('onAttempt', onAttempt)
  const connections = Math.max(sender.connections, concurrency * sender.targets.length)
  return { ...sender, connections, enabled, queue, concurrency, random: () => readChance(random()), onAttempt }
}

/** What is no number from 0 to below 1 would be no delay. */
function readChance(share: number): number {
  return share >= 0 && share < 1 ? share : Math.random()
}
