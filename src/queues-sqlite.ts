/**
 * A queue in a SQLite file: its jobs outlive the process and a power cut, and processes of one machine share it.
 *
 * @module hookline/queues/sqlite
 */

export type { Queue } from './store/queue-types.ts'
export type { SqliteQueueOptions } from './store/sqlite/sqlite-options.ts'
export { listQueues, type SqliteQueue, sqliteQueue } from './store/sqlite/sqlite-queue.ts'
