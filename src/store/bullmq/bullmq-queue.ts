/** A queue in Redis, through BullMQ, for destinations and inboxes that several processes share. */

import { systemClock } from '../../kit/clock.ts'
import { createQueue } from '../create-queue.ts'
import type { Queue } from '../queue-types.ts'
import { asObserver } from '../use.ts'
import { type BullmqQueueOptions, readOptions } from './bullmq-options.ts'
import { createBullmqStore } from './bullmq-store.ts'

/**
 * Creates a queue whose jobs are kept in Redis. The packages `bullmq` and `ioredis` must be installed.
 *
 * - No job is lost when a process ends. When Redis restarts or loses power, its settings decide what is lost. With `appendonly yes` and
 *   `appendfsync always`, nothing that was acknowledged is lost. With `appendfsync everysec`, about the last second is lost. Without
 *   `appendonly`, everything since the last snapshot is lost, and the process prints a warning about this.
 * - A Redis that deletes jobs when its memory is full is refused: set `maxmemory-policy noeviction`.
 * - Pushes that arrive together are sent together. A push of several jobs is one round trip, but not a transaction: if it is rejected, some
 *   of its jobs may have been stored. Push all of them again: the jobs that are already stored are skipped.
 * - A job whose process died is claimed again within 25 seconds by default (`leaseMs`). A job that is claimed when Redis fails for longer
 *   than `leaseMs` is also claimed again.
 * - The id of a job is remembered for `dedupeWindowMs` from the push, and at least until the job is complete. An id takes about 150 bytes
 *   in Redis. The body and the retry state of a completed job are deleted at once.
 * - A claim whose process died counts if its handler had run for 50 ms, or if an earlier claim of the job ended in the same way.
 * - If the answer to a claim is lost, the claim is released as soon as Redis responds again.
 * - Redriving or dropping several dead letters takes one step for each: when the call is rejected, some of the steps may have been done. If
 *   the same dead letter is dropped and redriven at the same moment, the drop may delete the job that waits again.
 * - A Redis whose memory is full refuses claims as well as pushes: give it more memory.
 * - A job that another program adds to the queue in Redis becomes a dead letter, with the data of the job as its body. If the options of
 *   such a job remove it when it fails, the job is deleted instead.
 * - Times come from the clocks of the machines that push and work: keep these clocks synchronized.
 *
 * @throws TypeError that names the invalid option. An unreachable Redis is not an error here: it may come up later, and until then each
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
