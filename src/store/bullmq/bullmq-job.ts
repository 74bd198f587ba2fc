/**
 * Converts jobs to the form in which BullMQ stores them, and back. A BullMQ job has data and a progress, which counts the claims of the
 * job.
 */

import { type BulkJobOptions, type Job as StoredJob, UnrecoverableError } from 'bullmq'
import type { ClaimedJob, DeadLetter, Job } from '../queue-types.ts'

/** The data of a job. Bytes are stored as base64, which needs no escapes in JSON. */
interface Data {
  readonly body: string
  readonly retryState?: string | undefined
  readonly dueAt?: number | undefined
}

/**
 * The progress of a BullMQ job, in which Hookline counts the claims of the job. A retry stores a new progress, and a dead letter has none.
 * If a claim ends without an outcome, the next claim continues from the stored progress.
 */
interface Progress {
  /** The number of earlier claims, without those that were released before a handler ran. */
  readonly claims?: number
  readonly firstAt?: number
  /** The time at which the job was redriven. */
  readonly dueAt?: number
}

export interface BullmqClaim extends ClaimedJob {
  readonly job: StoredJob<Data>
  readonly token: string
  /** The time at which the job was claimed, according to the monotonic clock. */
  readonly claimedAt: number
  /** Whether the stored progress includes this claim. */
  isCounted: boolean
  isLogged: boolean
}

export type BulkJob = { readonly name: string; readonly data: Data; readonly opts: BulkJobOptions }

const JOB_NAME = 'hookline'

/**
 * Converts a job for BullMQ. While the job exists, BullMQ accepts no other job with its id; once the job is complete, BullMQ's
 * deduplication remembers the id.
 */
export function toBulkJob({ id, body, notBefore }: Job, now: number, dedupeWindowMs: number): BulkJob {
  const delay = notBefore === undefined ? 0 : Math.max(0, notBefore.getTime() - now)
  const opts = { jobId: id, timestamp: now, deduplication: { id, ttl: dedupeWindowMs }, ...(delay > 0 && { delay }) }
  return { name: JOB_NAME, data: { body: encode(body) }, opts }
}

/** Converts a job to a claim; returns undefined for a job that Hookline did not write. */
export function toClaim(job: StoredJob, token: string, claimedAt: number): BullmqClaim | undefined {
  if (!isOurs(job)) return undefined
  const { id = '', processedOn = 0 } = job
  const { claims = 0, firstAt = processedOn } = progressOf(job)
  return {
    id,
    body: bodyOf(job),
    claimCount: claims + 1,
    firstAt: new Date(firstAt),
    dueAt: new Date(dueAtOf(job)),
    retryState: decode(job.data.retryState),
    job,
    token,
    claimedAt,
    isCounted: false,
    isLogged: false,
  }
}

export function bodyOf(job: StoredJob): Uint8Array {
  return isOurs(job) ? Buffer.from(job.data.body, 'base64') : Buffer.from(JSON.stringify(job.data))
}

export function toDeadLetter(job: StoredJob): DeadLetter {
  const { id = '', finishedOn = 0, failedReason: reason = '' } = job
  const retryState = isOurs(job) ? decode(job.data.retryState) : undefined
  return { id, body: bodyOf(job), reason, retryState, failedAt: new Date(finishedOn) }
}

export function dueAtOf(job: StoredJob): number {
  const { dueAt } = isOurs(job) ? job.data : {}
  return progressOf(job).dueAt ?? dueAt ?? job.timestamp + (job.opts.delay ?? 0)
}

/**
 * Returns the data to store with an outcome.
 *
 * @param dueAt The time at which a retry is due. Undefined for a dead letter, which comes due only when it is redriven.
 */
export function dataWith({ job }: BullmqClaim, retryState: Uint8Array | undefined, dueAt?: number): Data {
  return { body: job.data.body, retryState: retryState && encode(retryState), dueAt }
}

export function toData(body: Uint8Array, retryState: Uint8Array | undefined): Data {
  return { body: encode(body), retryState: retryState && encode(retryState) }
}

/**
 * Returns the progress to store for a claim.
 *
 * @param isCounted Whether the progress includes this claim.
 */
export function progressWith({ claimCount, firstAt }: BullmqClaim, isCounted: boolean): Progress {
  const claims = isCounted ? claimCount : claimCount - 1
  return claims === 0 ? {} : { claims, firstAt: firstAt.getTime() }
}

/** Returns the error that makes a job a dead letter. The stack is empty, because BullMQ would store it, and it says nothing useful. */
export function failure(reason: string): Error {
  return Object.assign(new UnrecoverableError(reason), { stack: '' })
}

export function isOurs(job: StoredJob): job is StoredJob<Data> {
  return job.name === JOB_NAME && typeof job.data?.body === 'string'
}

function progressOf({ progress }: StoredJob): Progress {
  return typeof progress === 'object' && progress !== null ? progress : {}
}

function encode(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}

function decode(text: string | undefined): Uint8Array | undefined {
  return text === undefined ? undefined : Buffer.from(text, 'base64')
}
