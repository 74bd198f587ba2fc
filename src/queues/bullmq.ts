/**
 * A queue in Redis, through BullMQ: for destinations and inboxes that several processes share.
 *
 * @module hookline/queues/bullmq
 */

import { systemClock } from '../protocol/clock.ts'
import { type BullmqQueueOptions, readOptions } from './bullmq-options.ts'
import { openQueue } from './bullmq-queue.ts'
import type { Queue } from './queue.ts'

export type { BullmqQueueOptions } from './bullmq-options.ts'
export type {
  ClaimedJob,
  CloseOptions,
  DeadJob,
  DeadPage,
  HandleJob,
  Job,
  Outcome,
  Queue,
  QueueCounts,
} from './queue.ts'

/**
 * Makes a queue whose jobs are kept by Redis. It needs `bullmq` and `ioredis` to be installed.
 *
 * @throws TypeError that names the option at fault. A Redis that cannot be reached is none: it may come up later, and
 * until then each call is refused as `queue_unavailable`.
 * @example
 * const queue = bullmqQueue({ name: 'orders', connection: 'redis://127.0.0.1:6379' })
 * queue.work(async (job) => ({ done: true }), { concurrency: 10 })
 * await queue.push([{ id: randomUUID(), body }])
 */
export function bullmqQueue(options: BullmqQueueOptions): Queue {
  return openQueue(readOptions(options), systemClock)
}
