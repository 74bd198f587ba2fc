/** A job as BullMQ stores it: its data, and in its progress what is known of claims that have not ended. */

import { type BulkJobOptions, type Job as StoredJob, UnrecoverableError } from 'bullmq'
import type { ClaimedJob, DeadLetter, Job } from '../api.ts'

/** Bytes are in base64: each of its characters stands for itself in JSON. */
interface Data {
  readonly body: string
  readonly retryState?: string | undefined
  readonly dueAt?: number
  readonly firstAt?: number
}

interface Progress {
  /** How many of the claims that BullMQ counts no handler saw. */
  readonly unseen?: number
  /** When it was redriven. */
  readonly dueAt?: number
}

export interface BullmqClaim extends ClaimedJob {
  readonly job: StoredJob
  readonly token: string
  isLogged: boolean
}

export type BulkJob = { readonly name: string; readonly data: Data; readonly opts: BulkJobOptions }

const JOB_NAME = 'hookline'

/** While a job exists its id is taken; once it is complete the deduplication remembers the id. */
export function toBulkJob({ id, body, notBefore }: Job, now: number, dedupeWindowMs: number): BulkJob {
  const delay = notBefore === undefined ? 0 : Math.max(0, notBefore.getTime() - now)
  const opts = { jobId: id, timestamp: now, deduplication: { id, ttl: dedupeWindowMs }, ...(delay > 0 && { delay }) }
  return { name: JOB_NAME, data: { body: encode(body) }, opts }
}

export function toClaim(job: StoredJob, token: string): BullmqClaim {
  const { id = '', processedOn = 0, attemptsStarted } = job
  const { firstAt = processedOn, retryState } = job.data as Data
  return {
    id,
    body: bodyOf(job),
    claimCount: attemptsStarted - (progressOf(job).unseen ?? 0),
    firstAt: new Date(firstAt),
    dueAt: new Date(dueAtOf(job)),
    retryState: decode(retryState),
    job,
    token,
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
  const { dueAt } = isOurs(job) ? (job.data as Data) : {}
  return progressOf(job).dueAt ?? dueAt ?? job.timestamp + (job.opts.delay ?? 0)
}

/** What the data of a claim that ends becomes. Its first time stays. */
export function dataWith({ job, firstAt }: BullmqClaim, retryState: Uint8Array | undefined, dueAt?: number): Data {
  return { ...deadData(job, retryState), firstAt: firstAt.getTime(), ...(dueAt !== undefined && { dueAt }) }
}

/** What the data of a dead letter becomes, which begins anew once it is redriven. */
export function deadData({ data }: StoredJob, retryState: Uint8Array | undefined): Data {
  const { body } = data as Data
  return { body, ...(retryState && { retryState: encode(retryState) }) }
}

/** What the progress becomes when no handler saw the claim. */
export function unseenProgress({ job }: BullmqClaim): Progress {
  const progress = progressOf(job)
  return { ...progress, unseen: (progress.unseen ?? 0) + 1 }
}

/** BullMQ would store its stack as well, which tells nothing. */
export function failure(reason: string): Error {
  return Object.assign(new UnrecoverableError(reason), { stack: '' })
}

export function isOurs({ name, data }: StoredJob): boolean {
  return name === JOB_NAME && typeof data?.body === 'string'
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
