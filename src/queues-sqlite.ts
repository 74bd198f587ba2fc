/**
 * A queue in a SQLite file. Its jobs survive the end of the process and a power cut, and the processes of one machine can share the queue.
 *
 * @module hookline/queues/sqlite
 */

export type { Queue } from './store/queue-types.ts'
export type { SqliteQueueOptions } from './store/sqlite/sqlite-options.ts'
export { listQueues, type SqliteQueue, sqliteQueue } from './store/sqlite/sqlite-queue.ts'
