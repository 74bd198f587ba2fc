/**
 * A queue in the memory of this process, for destinations and inboxes whose jobs need not outlive the process.
 *
 * @module hookline/queues/memory
 */

export { memoryQueue } from './store/memory/memory-queue.ts'
export type { MemoryQueueOptions } from './store/memory/memory-store.ts'
export type { Queue } from './store/queue-types.ts'
