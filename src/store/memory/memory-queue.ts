/** A queue in the memory of this process: for destinations and inboxes whose jobs need not outlive it. */

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
 * Creates a queue whose jobs end with the process. `close()` returns those that were not complete.
 *
 * - A job that waits for its time keeps the process alive once the queue has a handler.
 * - Bodies and retry states are kept as given, not copied: do not write to them afterwards.
 * - Closing handles, within its grace, what is due, and does not wait for what is due later. Jobs that still run when the
 *   grace ends are returned too; dead letters are not: those were reported when they failed.
 *
 * @throws TypeError that names the option.
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
