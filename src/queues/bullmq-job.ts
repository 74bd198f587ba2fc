/** A job as BullMQ keeps it: the body as data, what is known of its hand-outs as progress. */

import type { BulkJobOptions, Job as StoredJob } from 'bullmq'
import type { ClaimedJob, DeadJob, Job } from './queue.ts'

/** What is kept beside a body, from hand-out to hand-out. */
export interface Memo {
  /** When it was handed out first. */
  readonly firstAt?: number
  /** In base64. */
  readonly state?: string
  /** When it came due, where that is not when it was first. */
  readonly dueAt?: number
  /** When it died, finer than in milliseconds: the order of the dead. */
  readonly diedAt?: number
}

/** A job for BullMQ to add. All of them wait for a time: BullMQ keeps only those in the order in which they come due. */
export function toBulk(
  { id, body, notBefore }: Job,
  now: number,
): {
  readonly name: string
  readonly data: string
  readonly opts: BulkJobOptions
} {
  const dueAt = Math.max(LEAST_TIME, Math.ceil(notBefore ?? now))
  return { name: NAME, data: encode(body), opts: { jobId: id, timestamp: dueAt - 1, delay: 1 } }
}

/** When a job came due. */
export function dueAtOf(job: StoredJob): number {
  return readMemo(job).dueAt ?? job.timestamp + (job.opts.delay ?? 0)
}

/** A job as it is handed out, or undefined when it is none that this queue was given. */
export function toClaimed(job: StoredJob): ClaimedJob | undefined {
  const body = decode(job.data)
  if (body === undefined) return undefined
  const { id = '', attemptsStarted: deliveries } = job
  const { firstAt = job.processedOn ?? job.timestamp, state } = readMemo(job)
  return { id, body, deliveries, firstAt, state: decode(state) }
}

/** A job on the list of the dead. The body of one that is none of this queue's is what stands there. */
export function toDead(job: StoredJob): DeadJob {
  const { id = '', finishedOn = 0 } = job
  const body = decode(job.data) ?? Buffer.from(JSON.stringify(job.data))
  const reason = job.failedReason ?? ''
  return { id, body, reason, state: decode(readMemo(job).state), diedAt: finishedOn }
}

export function readMemo({ progress }: StoredJob): Memo {
  return typeof progress === 'object' && progress !== null ? progress : {}
}

/** In base64: any byte is a character of JSON then. */
export function encode(bytes: Uint8Array): string {
  return `${MARK}${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')}`
}

function decode(data: unknown): Uint8Array | undefined {
  return typeof data === 'string' && data.startsWith(MARK) ? Buffer.from(data.slice(MARK.length), 'base64') : undefined
}

/** Whether BullMQ did not do what it was told because the job is not where it was. */
export function isRefusal(error: unknown): boolean {
  return error instanceof Error && 'code' in error && typeof error.code === 'number' && error.code < 0
}

/** What this queue wrote begins so. */
const MARK = ':'
const NAME = 'job'
/** BullMQ takes 0 for none given. */
const LEAST_TIME = 2
