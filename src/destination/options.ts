/** The options of createDestination(), checked once. */

import {
  invalidOption,
  kindOf,
  requireBoolean,
  requireFunction,
  requireOptions,
  requireWhole,
} from '../options/checks.ts'
import { memoryQueue } from '../queues/memory/index.ts'
import type { Queue } from '../queues/queue.ts'
import { readSenderOptions, SENDER_OPTIONS, type SenderOptions, type SenderSettings } from '../sender/options.ts'
import type { DeliveryReport } from './api.ts'
import { logFailures } from './reports.ts'

/** Options of `createDestination`. */
export interface DestinationOptions extends SenderOptions {
  /** Whether the destination starts enabled. Default true. */
  readonly enabled?: boolean
  /** Stores messages until they are delivered; one queue serves one destination. Default: a `memoryQueue`, which ends with the process. */
  readonly queue?: Queue
  /** The most messages that are posted at a time. A URL that does not respond holds a message for 5 seconds. Default 50. */
  readonly concurrency?: number
  /** The source of chance for the schedule: returns a number from 0 to below 1. Default `Math.random`. */
  readonly random?: () => number
  /**
   * Receives a report after every round: delivered, retrying or failed, with all attempts so far. Not awaited. Default: prints
   * failed attempts with `console.warn`.
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
    const advice = "Pass one, for example memoryQueue({ name: 'outbox' }) from hookline/queues/memory."
    throw invalidOption('queue', 'must be a queue', kindOf(queue), advice)
  }
  requireWhole('concurrency', concurrency, 1)
  requireFunction('random', random)
  requireFunction('onAttempt', onAttempt)
  const connections = Math.max(sender.connections, concurrency * sender.targets.length)
  return { ...sender, connections, enabled, queue, concurrency, random: () => readShare(random()), onAttempt }
}

/** A number outside the range, or NaN, would retry at once or never. */
function readShare(share: number): number {
  return share >= 0 && share < 1 ? share : Math.random()
}
