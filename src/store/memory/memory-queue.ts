/** A queue in the memory of this process, for destinations and inboxes whose jobs need not outlive the process. */

import { aClock, checkOptions, type OptionChecks, requireText, whole } from '../../kit/checks.ts'
import { createQueue } from '../create-queue.ts'
import type { Queue } from '../queue-types.ts'
import { createMemoryStore, type MemoryQueueOptions } from './memory-store.ts'

const count = whole(1, Number.MAX_SAFE_INTEGER)
const CHECKS: OptionChecks<MemoryQueueOptions> = {
  name: requireText,
  maxJobs: count,
  maxBytes: count,
  maxDeadLetters: count,
  dedupeWindowMs: count,
  deadLetterRetentionMs: count,
  clock: aClock,
}

/**
 * Creates a queue whose jobs are lost when the process ends. `close()` returns the jobs that are not complete.
 *
 * - If the queue has a handler, a job that comes due later keeps the process alive.
 * - The queue need not copy bodies and retry states: do not write to them after you have passed them to the queue.
 * - During its grace period, `close()` handles the jobs that are due, but does not wait for jobs that come due later. The jobs that it
 *   returns include jobs that are still running when the grace period ends, but no dead letters.
 *
 * @throws TypeError that names the invalid option.
 * @example
 * const queue = memoryQueue({ name: 'orders' })
 * queue.work(async (job) => ({ complete: true }), { concurrency: 10 })
 * await queue.push([{ id: randomUUID(), body }])
 */
export function memoryQueue(options: MemoryQueueOptions = {}): Queue {
  checkOptions('memoryQueue', options, CHECKS)
  const { name = 'memory', deadLetterRetentionMs, clock } = options
  return createQueue(createMemoryStore({ ...options, name }), { name, deadLetterRetentionMs, clock })
}
