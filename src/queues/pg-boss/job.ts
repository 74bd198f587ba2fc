/** A job as pg-boss has it, and as a worker holds it. */

import type { Job as FetchedJob, JobInsert } from 'pg-boss'
import type { Clock } from '../../time/clock.ts'
import type { ClaimedJob, Job } from '../api.ts'
import { digestOf } from '../groups.ts'
import { lanesOf } from './tables.ts'

/** The `data` of a job. Bytes are base64, because U+0000 in JSON fails an insert. */
interface Data {
  /** When it was pushed, in microseconds since the epoch: orders jobs that are claimed together. */
  readonly at: number
  readonly body: string
  /** The first digit of its id: `findJobs` lists the jobs of one digit at a time. */
  readonly part: string
  /** The retry state of a job that was redriven. */
  readonly state?: string
}

/** Which attempt of which job: the calls of pg-boss change nothing once it is over. */
export interface Attempt {
  readonly id: string
  readonly retryCount: number
  readonly lane: string
}

export interface PgBossClaim extends ClaimedJob, Attempt {
  readonly data: Data
  readonly group: string | undefined
  /** How many of its claims no handler saw. */
  readonly uncounted: number
  /** Whether there is a row of it in `hookline_retry`. */
  hasNote: boolean
  /** The retry state that was saved last. */
  saved?: Uint8Array
}

/** The state of a job between its claims that pg-boss cannot keep. */
export interface Note {
  /** When a handler saw it first. */
  readonly first: Date | null
  readonly uncounted: number
  readonly state: Uint8Array | null
}

export const PARTS = '0123456789abcdef'

/** A job for one of the two queues of pg-boss. */
export interface Pushed extends JobInsert<Data> {
  readonly id: string
}

export function toPushed({ id, body, notBefore, group }: Job, at: number, clock: Clock): Pushed {
  const data = { at, body: encode(body), part: id.charAt(0) }
  return {
    id,
    data,
    ...(notBefore !== undefined && { startAfter: secondsUntil(notBefore, clock) }),
    ...(group !== undefined && inGroup(digestOf(group))),
  }
}

/** The key is for the policy of the queue; the group comes back with the job. */
export function inGroup(digest: string): Pick<Pushed, 'singletonKey' | 'group'> {
  return { singletonKey: digest, group: { id: digest } }
}

export function laneOf(name: string, { singletonKey }: Pushed): string {
  const [alone, grouped] = lanesOf(name)
  return singletonKey === undefined ? alone : grouped
}

/** Whether a handler of Hookline can read it. */
export function isOurs({ data }: FetchedJob<unknown>): boolean {
  const { at, body } = (data ?? {}) as Partial<Record<keyof Data, unknown>>
  return typeof at === 'number' && typeof body === 'string' && Buffer.from(body, 'base64').toString('base64') === body
}

/** @param note Of its earlier claims. One that lapsed left none: then its first time is about that of its lease. */
export function toClaim(
  { id, data, retryCount, groupId }: FetchedJob<unknown>,
  { lane, leaseMs, note, now }: { lane: string; leaseMs: number; note: Note | undefined; now: number },
): PgBossClaim {
  const ours = data as Data
  const { uncounted = 0 } = note ?? {}
  const state = note === undefined ? ours.state && Buffer.from(ours.state, 'base64') : note.state
  const unseenMs = (retryCount - uncounted) * leaseMs
  const firstAt = note?.first ?? new Date(Math.max(Math.min(ours.at / 1000, now), now - unseenMs))
  return {
    id,
    body: Buffer.from(ours.body, 'base64'),
    claimCount: retryCount + 1 - uncounted,
    firstAt,
    ...(retryCount === 0 && { dueAt: new Date(ours.at / 1000) }),
    retryState: state || undefined,
    retryCount,
    lane,
    data: ours,
    group: groupId ?? undefined,
    uncounted,
    hasNote: note !== undefined,
  }
}

/** A time in microseconds, later than all before. */
export function createStamps(clock: Clock): () => number {
  let last = 0
  return () => {
    last = Math.max(last + 1, Math.floor(clock.now()) * 1000)
    return last
  }
}

/** How long until a time, in seconds. PostgreSQL adds it to its own time, so that the clocks need not agree. */
export function secondsUntil(at: Date, clock: Clock): number {
  return Math.ceil(Math.max(0, Math.min(at.getTime() - clock.now(), MAX_MS))) / 1000
}

/** A hundred years: the dates of PostgreSQL end. */
const MAX_MS = 100 * 365 * 24 * 60 * 60_000

export function encode(value: Uint8Array | string): string {
  return Buffer.from(value as string).toString('base64')
}
