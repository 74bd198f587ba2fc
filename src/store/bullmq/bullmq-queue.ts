/** A queue in Redis, through BullMQ: for destinations and inboxes that several processes share. */

import { systemClock } from '../../kit/clock.ts'
import { createQueue } from '../create-queue.ts'
import type { Queue } from '../queue-types.ts'
import { asObserver } from '../use.ts'
import { type BullmqQueueOptions, readOptions } from './bullmq-options.ts'
import { createBullmqStore } from './bullmq-store.ts'

/**
 * Creates a queue whose jobs are kept by Redis. It needs `bullmq` and `ioredis` to be installed.
 *
 * - The end of a process loses nothing. What a restart or a power cut of Redis loses depends on its settings: nothing that
 *   was acknowledged with `appendonly yes` and `appendfsync always`, about the last second with `everysec`, everything since
 *   the last snapshot without `appendonly`, of which the process warns. A Redis that deletes jobs when it is full is refused:
 *   set `maxmemory-policy noeviction`.
 * - Pushes that arrive together are sent together. A push of several jobs is one round trip and no transaction: one that is
 *   rejected may be stored in part. Push it again: what is stored is skipped.
 * - A job whose process died is claimed again within 25 seconds by default (`leaseMs`). An outage of Redis that is longer than
 *   `leaseMs` does the same to the jobs that are claimed meanwhile.
 * - An id is remembered from its push on, for `dedupeWindowMs` and at least until its job is complete: about 150 bytes of
 *   Redis. Body and retry state of a complete job are deleted at once.
 * - A claim that ends with its process counts when its handler had 50 ms, or when an earlier claim ended like that.
 * - A claim whose answer is lost is released as soon as Redis responds again.
 * - To redrive or drop many dead letters is one step for each, not for all: when the call is rejected, some of them may be done. A drop
 *   that meets a redrive of the same dead letter may delete the job that waits again.
 * - A Redis that is full refuses pushes, and claims as well: give it more memory.
 * - Jobs that others add to the queue in Redis become dead letters, with their data as body, unless their options remove them.
 * - Times are those of the machines that push and work: keep their clocks together.
 *
 * @throws TypeError that names the option. An unreachable Redis throws nothing: it may come up later, and until then each
 *   call rejects with `queue_unavailable`.
 * @example
 * const queue = bullmqQueue({ name: 'orders', connection: 'redis://localhost:6379' })
 * queue.work(async (job) => ({ complete: true }), { concurrency: 10 })
 * await queue.push([{ id: randomUUID(), body }])
 */
export function bullmqQueue(options: BullmqQueueOptions): Queue {
  const settings = readOptions(options)
  const { name, pollMs, deadLetterRetentionMs, observe, onError } = settings
  const store = createBullmqStore(settings, systemClock)
  const queue = createQueue(store, { name, pollMs, deadLetterRetentionMs, onError })
  return observe ? asObserver(queue, name) : queue
}
