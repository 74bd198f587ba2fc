/**
 * The contract of queues, and createQueue() for engines of your own.
 *
 * @module hookline/queues
 */

export type { Logger } from '../options/log.ts'
export type { Clock } from '../time/clock.ts'
export type {
  BeginTransaction,
  ClaimedJob,
  CloseOptions,
  Complete,
  DeadLetter,
  DeadLetterFilter,
  DeadLetterPage,
  Forgotten,
  HandledJob,
  HandleJob,
  HistoryOptions,
  HistoryPage,
  Job,
  JobTransaction,
  Outcome,
  PushOptions,
  Queue,
  QueueGroups,
  QueueHistory,
  QueueUse,
  Replayed,
  ReplayResult,
  Room,
  SaveState,
  StoredDeadLetterFilter,
  StoredJob,
  WorkOptions,
} from './api.ts'
export type { CreateQueueOptions } from './arguments.ts'
export type { QueueCounts } from './health.ts'
export { createQueue } from './queue.ts'
export type { Answer, HistoryStore, QueueStore, ReleaseOptions } from './store.ts'
export { servesOther } from './use.ts'
