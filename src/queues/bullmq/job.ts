/** A job as BullMQ stores it: the body as its data, what is kept between claims with its last error. */

import { type BulkJobOptions, Job as StoredJob, UnrecoverableError, type Worker } from 'bullmq'
import type { ClaimedJob, DeadLetter, Job, Outcome } from '../api.ts'

interface Notes {
  readonly firstAt?: number | undefined
  readonly retryState?: string | undefined
  /** The claim count when that was stored. */
  readonly claims?: number
  readonly uncounted?: number | undefined
  readonly dueAt?: number
}

export interface BullmqClaim extends ClaimedJob {
  readonly job: StoredJob
  readonly token: string
  notes: Notes
}

export type BulkJob = { readonly name: string; readonly data: string; readonly opts: BulkJobOptions }

/** While a job exists its id is taken; once it is complete the deduplication remembers the id. */
export function toBulkJob({ id, body, notBefore }: Job, now: number, dedupeWindowMs: number): BulkJob {
  const delay = notBefore === undefined ? 0 : Math.max(0, notBefore.getTime() - now)
  const opts = { jobId: id, timestamp: now, deduplication: { id, ttl: dedupeWindowMs } }
  return { name: 'job', data: encode(body), opts: delay === 0 ? opts : { ...opts, delay } }
}

export function toClaim(job: StoredJob, token: string): BullmqClaim | undefined {
  const body = decode(job.data)
  if (body === undefined) return undefined
  const notes = readNotes(job)
  const { id = '', attemptsStarted, processedOn = 0 } = job
  const claimCount = attemptsStarted - (notes.uncounted ?? 0)
  const firstAt = new Date(notes.firstAt ?? processedOn)
  const dueAt = new Date(dueAtOf(job))
  return { id, body, claimCount, firstAt, dueAt, retryState: decode(notes.retryState), job, token, notes }
}

/** What a redrive keeps. */
export function keptOf(job: StoredJob | undefined): Pick<Notes, 'retryState'> {
  return job === undefined ? {} : { retryState: readNotes(job).retryState }
}

export function bodyOf({ data }: StoredJob): Uint8Array {
  return decode(data) ?? Buffer.from(JSON.stringify(data))
}

export function toDeadLetter(job: StoredJob): DeadLetter {
  const { id = '', finishedOn = 0, failedReason: reason = '' } = job
  return {
    id,
    body: bodyOf(job),
    reason,
    retryState: decode(readNotes(job).retryState),
    failedAt: new Date(finishedOn),
  }
}

export function dueAtOf(job: StoredJob): number {
  return readNotes(job).dueAt ?? job.timestamp + (job.opts.delay ?? 0)
}

/** With a worker, the same command claims the next job, under the same token. */
export async function complete({ job, token }: BullmqClaim, worker?: Worker): Promise<StoredJob | undefined> {
  job.opts.removeOnComplete = true
  const [data, id] = (await job.moveToCompleted(null, token, worker !== undefined)) ?? []
  return worker && data ? StoredJob.fromJSON(worker, data, id) : undefined
}

export async function finishClaim(claim: BullmqClaim, outcome: Outcome, now: number): Promise<void> {
  if ('complete' in outcome) return void (await complete(claim))
  const { job, token, notes } = claim
  const { retryState } = outcome
  const kept: Notes = {
    claims: claim.claimCount,
    firstAt: claim.firstAt.getTime(),
    uncounted: notes.uncounted,
    retryState: retryState && encode(retryState),
  }
  if ('deadLetter' in outcome) return fail(job, token, outcome.deadLetter, kept)
  const dueAt = Math.max(now, outcome.retryAt.getTime())
  const reason = `To be retried at ${new Date(dueAt).toISOString()}.`
  await retry(claim, reason, { ...kept, dueAt }, { delay: dueAt - now })
}

/** In the progress, which is all that BullMQ stores of a job that goes on. */
export async function saveState(claim: BullmqClaim, retryState: Uint8Array): Promise<void> {
  const { firstAt, claimCount, job } = claim
  claim.notes = { ...claim.notes, firstAt: firstAt.getTime(), claims: claimCount, retryState: encode(retryState) }
  await job.updateProgress(claim.notes)
}

export async function releaseClaim(claim: BullmqClaim, wasHandled: boolean): Promise<void> {
  const { firstAt, notes } = claim
  // A claim whose process died before the handler began counts all the same: nothing in Redis tells.
  const kept = wasHandled
    ? { ...notes, firstAt: firstAt.getTime() }
    : { ...notes, uncounted: (notes.uncounted ?? 0) + 1 }
  await retry(claim, 'Released.', kept, { delay: 0, lifo: true })
}

/**
 * For BullMQ it is a failed attempt of many: that is its one public call that moves a job, under the lock, and stores
 * something with it in the same step. The options are changed in memory only. `lifo`: the job goes before what is due.
 */
async function retry(
  { job, token }: BullmqClaim,
  reason: string,
  notes: Notes,
  { delay, lifo = false }: { readonly delay: number; readonly lifo?: boolean },
): Promise<void> {
  const attempts = Number.MAX_SAFE_INTEGER
  Object.assign(job.opts, { attempts, backoff: { type: 'fixed', delay }, lifo })
  await moveWithNotes(job, token, new Error(reason), notes)
}

export async function fail(job: StoredJob, token: string, reason: string, notes: Notes): Promise<void> {
  job.opts.removeOnFail = false
  await moveWithNotes(job, token, new UnrecoverableError(reason), notes)
}

async function moveWithNotes(job: StoredJob, token: string, error: Error, notes: Notes): Promise<void> {
  error.stack = NOTES_MARK + JSON.stringify(notes)
  job.stacktrace = []
  await job.moveToFailed(error, token, false)
}

/**
 * A redrive deletes the reason and the time of the failure, and with them these notes do not count any more. The progress
 * holds what a redrive keeps, and what was saved during a claim.
 */
function readNotes({ failedReason, finishedOn, stacktrace, progress }: StoredJob): Notes {
  const kept: Notes = typeof progress === 'object' && progress !== null ? progress : {}
  const text = stacktrace?.at(-1)
  if ((failedReason === undefined && finishedOn === undefined) || !text?.startsWith(NOTES_MARK)) return kept
  const notes: Notes = { firstAt: kept.firstAt, ...JSON.parse(text.slice(NOTES_MARK.length)) }
  return (kept.claims ?? 0) > (notes.claims ?? 0) ? { ...notes, retryState: kept.retryState } : notes
}

/** In base64: each of its characters stands for itself in JSON. */
function encode(bytes: Uint8Array): string {
  return BYTES_MARK + Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}

function decode(text: unknown): Uint8Array | undefined {
  if (typeof text !== 'string' || !text.startsWith(BYTES_MARK)) return undefined
  return Buffer.from(text.slice(BYTES_MARK.length), 'base64')
}

const BYTES_MARK = ':'
const NOTES_MARK = 'hookline:'
