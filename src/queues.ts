/**
 * The contract of queues, createQueue() for an engine of your own, and inspectQueue() for scripts.
 *
 * @module hookline/queues
 */

export type { Clock } from './kit/clock.ts'
export type { Logger } from './kit/log.ts'
export {
  type InspectedDestinationLetter,
  type InspectedInboxLetter,
  type InspectedLetter,
  type InspectedLetterFilter,
  type InspectedQueue,
  type InspectQueueOptions,
  inspectQueue,
} from './observe/inspect-queue.ts'
export type { CreateQueueOptions } from './store/arguments.ts'
export { createQueue } from './store/create-queue.ts'
export type { EncryptionKey, EncryptionOptions, Reencrypted } from './store/encryption.ts'
export type { QueueCounts } from './store/health.ts'
export type { Answer, LogStore, Mark, MarkStore, QueueStore, ReleaseOptions } from './store/queue-store.ts'
export type {
  BeginTransaction,
  ChangeBytes,
  ClaimedJob,
  CloseOptions,
  Complete,
  Completion,
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
  QueueMarks,
  QueueUse,
  Room,
  SaveState,
  StoredBytes,
  StoredDeadLetterFilter,
  StoredJob,
  WorkOptions,
} from './store/queue-types.ts'
export { servesOther } from './store/use.ts'
export type { PageBounds } from './store/walk.ts'
