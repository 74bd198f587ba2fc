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
 * - The end of a process loses nothing, whatever Redis is told. What a restart or a power cut of Redis loses is up to
 *   its own settings: nothing that was acknowledged with `appendonly yes` and `appendfsync always`, about the last second
 *   with `everysec`, everything since the last snapshot without `appendonly`. Set `maxmemory-policy noeviction`, or
 *   Redis throws jobs away when it is full; BullMQ warns of anything else.
 * - Pushes that come at once go together. One of several jobs goes in one round trip, which is no transaction: one that is
 *   refused may be in, in part. Push it again: what is in already is left alone.
 * - A job whose process died is handed out again within twice `leaseMs`. An outage of Redis that is longer than the
 *   lease does the same to the jobs that were handed out meanwhile. The time of the first hand-out is written down at
 *   the end of its turn of the event loop; that of a process that dies before is the time of the next.
 * - Re-driving and dropping several dead jobs goes one by one: when it is refused, some of them may be done.
 * - Of a job that is done, its id is kept for `knownForMs`: about 350 bytes of Redis.
 * - What others put into the queue in Redis is put on the list of the dead, with what stood there as its body.
 * - The time is that of the machines that push and work: keep their clocks together.
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
