/** What createDestination() can be told, checked once and loudly. */

import { memoryQueue } from '../queues/memory.ts'
import type { Queue } from '../queues/queue.ts'
import type { DeliveryReport } from './api.ts'
import { logFailures } from './log.ts'
import {
  readSenderOptions,
  refuseUnknown,
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
  /** Most messages that are posted at a time. Default 50. */
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
  refuseUnknown('createDestination', options, KNOWN)
  const sender = readSenderOptions(options)
  const { enabled = true, concurrency = 50, random = Math.random, onAttempt = logFailures } = options
  const { queue = memoryQueue({ name: 'destination', clock: sender.clock }) } = options
  if (typeof enabled !== 'boolean') throw new TypeError('enabled: must be true or false.')
  if (typeof queue?.push !== 'function' || typeof queue.work !== 'function') {
    throw new TypeError('queue: must be a queue, for instance memoryQueue({ name }) of hookline/queues/memory.')
  }
  if (!Number.isInteger(concurrency) || concurrency < 1) {
    throw new TypeError('concurrency: must be a whole number above 0.')
  }
  if (typeof random !== 'function') throw new TypeError('random: must be a function.')
  if (typeof onAttempt !== 'function') throw new TypeError('onAttempt: must be a function.')
  return { ...sender, enabled, queue, concurrency, random, onAttempt }
}
