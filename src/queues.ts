/**
 * The contract of queues, createQueue() for engines of your own, and inspectQueue() for scripts.
 *
 * @module hookline/queues
 */

export {
  type InspectedDestinationLetter,
  type InspectedInboxLetter,
  type InspectedLetter,
  type InspectedLetterFilter,
  type InspectedQueue,
  type InspectQueueOptions,
  inspectQueue,
} from './inspection/inspect-queue.ts'
export type { Logger } from './options/log.ts'
export type {
  BeginTransaction,
  ClaimedJob,
  CloseOptions,
  Complete,
  DeadLetter,
  DeadLetterFilter,
  DeadLetterPage,
  Forgotten,
  HandleJob,
  HistoryOptions,
  Job,
  JobTransaction,
  LogEntry,
  LogPage,
  Outcome,
  PushOptions,
  Queue,
  QueueLog,
  QueueUse,
  Room,
  SaveState,
  StoredDeadLetterFilter,
  StoredJob,
  WorkOptions,
} from './queues/api.ts'
export type { CreateQueueOptions } from './queues/arguments.ts'
export type { QueueCounts } from './queues/health.ts'
export { createQueue } from './queues/queue.ts'
export type { Answer, LogStore, QueueStore, ReleaseOptions } from './queues/store.ts'
export { servesOther } from './queues/use.ts'
export type { PageBounds } from './queues/walk.ts'
export type { Clock } from './time/clock.ts'
