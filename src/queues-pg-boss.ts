/**
 * A queue in PostgreSQL, through pg-boss, for destinations and inboxes that several machines share.
 *
 * @module hookline/queues/pg-boss
 */

export type { PgBossQueueOptions, Pool, PoolClient } from './store/pg-boss/pg-boss-options.ts'
export { pgBossQueue } from './store/pg-boss/pg-boss-queue.ts'
export { listQueues } from './store/pg-boss/pg-boss-tables.ts'
export type { Queue } from './store/queue-types.ts'
