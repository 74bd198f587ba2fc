/** A queue in Redis, through BullMQ: for destinations and inboxes that several processes share. */

import { systemClock } from '../../kit/clock.ts'
import { createQueue } from '../create-queue.ts'
import type { Queue } from '../queue-types.ts'
import { asObserver } from '../use.ts'
import { type BullmqQueueOptions, readOptions } from './bullmq-options.ts'
import { createBullmqStore } from './bullmq-store.ts'

/**
 * Creates a queue whose jobs are kept in Redis. The packages `bullmq` and `ioredis` must be installed.
 *
 * - Nothing is lost when a process ends. What a restart or a power cut of Redis loses depends on the Redis settings: with `appendonly
 *   yes` and `appendfsync always`, nothing that was acknowledged; with `everysec`, about the last second; without `appendonly`, everything
 *   since the last snapshot, and the process warns of this. A Redis that deletes jobs when it is full is refused: set `maxmemory-policy
 *   noeviction`.
 * - Pushes that arrive together are sent together. A push of several jobs is one round trip, but not a transaction: if it is rejected, some
 *   of its jobs may have been stored. Push them again: those that are stored are skipped.
 * - A job whose process died is claimed again within 25 seconds by default (`leaseMs`). So are the jobs that are claimed during an outage
 *   of Redis that lasts longer than `leaseMs`.
 * - An id is remembered for `dedupeWindowMs` from its push, and at least until its job is complete; it takes about 150 bytes in Redis. The
 *   body and the retry state of a completed job are deleted at once.
 * - A claim that ends because its process died counts if its handler had run for 50 ms, or if an earlier claim ended in the same way.
 * - A claim whose answer is lost is released as soon as Redis responds again.
 * - Redriving or dropping several dead letters takes one step for each: when the call is rejected, some of them may be done. A drop at the
 *   same moment as a redrive of the same dead letter may delete the job that waits again.
 * - A Redis that is full refuses pushes as well as claims: give it more memory.
 * - Jobs that other programs add to the queue in Redis become dead letters, with their data as the body, unless their options remove them.
 * - Times come from the clocks of the machines that push and work: keep those synchronized.
 *
 * @throws TypeError that names the option. An unreachable Redis is not an error here: it may come up later, and until then each call
 *   rejects with `queue_unavailable`.
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
