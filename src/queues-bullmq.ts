/**
 * A queue in Redis, through BullMQ, for destinations and inboxes that several processes share.
 *
 * @module hookline/queues/bullmq
 */

export type { BullmqQueueOptions } from './store/bullmq/bullmq-options.ts'
export { bullmqQueue } from './store/bullmq/bullmq-queue.ts'
export { listQueues } from './store/bullmq/redis-server.ts'
export type { Queue } from './store/queue-types.ts'
