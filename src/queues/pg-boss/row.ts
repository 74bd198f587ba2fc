/** How a job lies in the `data` of a row of pg-boss: its bytes as base64, because U+0000 in JSON fails an insert. */

import type { Job as FetchedJob } from 'pg-boss'
import type { Clock } from '../../time/clock.ts'
import type { ClaimedJob, DeadLetter } from '../queue.ts'

/** The `data` of a job and of a dead letter. Release 0.1 wrote the same names, so its rows are read as they are. */
export interface Data {
  /** When the job was pushed, in microseconds since the epoch: orders jobs that are claimed together. */
  readonly at: number
  readonly body: string
  /** When the job was claimed first, in milliseconds since the epoch. Missing before its first outcome. */
  readonly firstAt?: number
  /** The retry state. */
  readonly state?: string
  /** How many claims do not count: those before a redrive, and those that no handler saw. */
  readonly before?: number
  /** Why it is a dead letter. */
  readonly reason?: string
}

/** A claimed job. `id` and `retryCount` are the attempt that pg-boss checks: its calls change nothing once it is over. */
export interface PgBossClaim extends ClaimedJob {
  readonly retryCount: number
  readonly data: Data
}

/** The claim of a row; undefined when Hookline did not write the row. */
export function readClaim({ id, data, retryCount }: FetchedJob<unknown>, clock: Clock): PgBossClaim | undefined {
  if (!isData(data)) return undefined
  const body = decode(data.body)
  if (body === undefined) return undefined
  const { before = 0, firstAt = clock.now(), state } = data
  const claimCount = retryCount + 1 - before
  const first = claimCount === 1 && { dueAt: new Date(data.at / 1_000) }
  return { id, body, claimCount, firstAt: new Date(firstAt), ...first, retryState: decode(state), retryCount, data }
}

function isData(value: unknown): value is Data {
  if (typeof value !== 'object' || value === null) return false
  const { at, firstAt = 0, before = 0 } = value as Readonly<Record<string, unknown>>
  return typeof at === 'number' && typeof firstAt === 'number' && typeof before === 'number'
}

/** The data of a job that is claimed again: with these, and without what the data said of the attempt. */
export function nextData({ data: { at, body, before } }: PgBossClaim, next: Partial<Data>): Data {
  return { at, body, ...(before !== undefined && { before }), ...next }
}

/** The retry state as a part of the data. */
export function stateOf(retryState: Uint8Array | undefined): Pick<Data, 'state'> {
  return retryState === undefined ? {} : { state: encode(retryState) }
}

/** Why a job that Hookline did not write is a dead letter. */
export const FOREIGN_REASON = 'the job was not written by Hookline'

/** The body in the data of a row; of one that Hookline did not write, the data as JSON. */
export function readBody(value: unknown): Uint8Array {
  return decode((value as Partial<Data> | null)?.body) ?? foreignBody(value)
}

/** Reads a dead letter. */
export function readLetter(id: string, value: unknown, failedAt: Date): DeadLetter {
  const { reason, state } = (value ?? {}) as Partial<Record<keyof Data, unknown>>
  return {
    id,
    body: readBody(value),
    reason: readText(reason) ?? FOREIGN_REASON,
    retryState: decode(state),
    failedAt,
  }
}

/** What Hookline did not write, as a body. */
export function foreignBody(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value ?? null))
}

function readText(base64: unknown): string | undefined {
  const bytes = decode(base64)
  return bytes && Buffer.from(bytes).toString()
}

/** Bytes, or text, as base64. */
export function encode(bytes: Uint8Array | string): string {
  if (typeof bytes === 'string') return Buffer.from(bytes).toString('base64')
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}

/** The bytes of base64; undefined for anything else. */
export function decode(text: unknown): Uint8Array | undefined {
  if (typeof text !== 'string' || text.length % 4 !== 0 || !BASE64.test(text)) return undefined
  return Buffer.from(text, 'base64')
}

const BASE64 = /^[\w+/]*={0,2}$/

/** Times that are never the same, in microseconds since the epoch. */
export function createStamps(clock: Clock): () => number {
  let last = 0
  return () => {
    last = Math.max(last + 1, Math.floor(clock.now()) * 1000)
    return last
  }
}

/** A stamp as PostgreSQL reads it. */
export function timestampOf(stamp: number): string {
  const rest = String(stamp % 1000).padStart(3, '0')
  return new Date(Math.floor(stamp / 1000)).toISOString().replace('Z', `${rest}Z`)
}

/** How long until a time, in seconds. PostgreSQL adds it to its own time, so that the clocks need not agree. */
export function secondsUntil(at: Date, clock: Clock): number {
  return Math.ceil(Math.max(0, Math.min(at.getTime() - clock.now(), LONGEST_MS))) / 1000
}

/** A hundred years: the dates of PostgreSQL end. */
const LONGEST_MS = 100 * 365 * 24 * 60 * 60_000

/** Whole seconds, within what a column takes. */
export function secondsOf(ms: number): number {
  return Math.min(Math.ceil(ms / 1000), FOREVER_SECONDS)
}

/** 68 years, the most that a column of whole numbers takes. */
export const FOREVER_SECONDS: number = 2 ** 31 - 1
