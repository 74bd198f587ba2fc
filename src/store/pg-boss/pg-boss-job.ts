/** A job as pg-boss stores it, and as a worker holds it. */

import type { Job as FetchedJob, JobInsert } from 'pg-boss'
import type { Clock } from '../../kit/clock.ts'
import { digestOf } from '../groups.ts'
import type { ClaimedJob, Job } from '../queue-types.ts'
import type { Note } from './notes.ts'
import { lanesOf } from './pg-boss-tables.ts'

/** The `data` of a job. Bytes are stored as base64, because PostgreSQL accepts no U+0000 in JSON. */
interface Data {
  /** The time of the push, in microseconds since the epoch. Jobs that are claimed together are handled in the order of these times. */
  readonly at: number
  readonly body: string
  /** The first hexadecimal digit of the id. `findJobs` lists the jobs in parts, with one first digit at a time. */
  readonly part: string
  /** The retry state of a job that was redriven. */
  readonly state?: string | undefined
}

/** A claimed job. The `retryCount` is passed to pg-boss with each call, so that pg-boss changes nothing once this claim has ended. */
export interface PgBossClaim extends ClaimedJob {
  readonly retryCount: number
  readonly lane: string
  readonly data: Data
  readonly group: string | undefined
  /** Whether a handler of Hookline can read the job. */
  readonly isOurs: boolean
  note: Note
  /** Whether the note is in the table of notes. */
  isNoted: boolean
}

/** The values of `part`. */
export const PARTS = '0123456789abcdef'

/** A job for one of the two pg-boss queues. */
export interface Pushed extends JobInsert<Data> {
  readonly id: string
}

/**
 * Converts a job to the form that pg-boss stores.
 *
 * @param at The time of the push, in microseconds since the epoch.
 */
export function toPushed({ id, body, notBefore, group }: Job, at: number, clock: Clock): Pushed {
  const job = toInsert(id, body, at)
  if (notBefore !== undefined) job.startAfter = secondsUntil(notBefore, clock)
  return group === undefined ? job : inGroup(job, digestOf(group))
}

export function toInsert(id: string, body: Uint8Array, at: number, state?: Uint8Array | null): Pushed {
  return { id, data: { at, body: encode(body), part: id.charAt(0), state: state ? encode(state) : undefined } }
}

/** Puts a job into a group. pg-boss handles jobs with the same `singletonKey` in order, and returns the group with a claimed job. */
export function inGroup(job: Pushed, digest: string): Pushed {
  return { ...job, singletonKey: digest, group: { id: digest } }
}

/** Returns the name of the pg-boss queue for a job: the one for jobs without a group, or the one for jobs with a group. */
export function laneOf(name: string, { singletonKey }: Pushed): string {
  const [alone, grouped] = lanesOf(name)
  return singletonKey === undefined ? alone : grouped
}

export function isOurs(job: FetchedJob<unknown>): job is FetchedJob<Data> {
  const { at, body, part }: Partial<Record<keyof Data, unknown>> = job.data ?? {}
  return typeof at === 'number' && typeof body === 'string' && part === job.id.charAt(0)
}

/**
 * Returns the claim for a job that pg-boss has fetched.
 *
 * @param stored The note of earlier claims. If all earlier claims lapsed, there is no note, and the time of the first claim is estimated
 *   from the leases.
 */
export function toClaim(
  job: FetchedJob<unknown>,
  { lane, leaseMs, stored, now }: { lane: string; leaseMs: number; stored: Note | undefined; now: number },
): PgBossClaim {
  const { id, retryCount, groupId } = job
  const isKnown = isOurs(job)
  const asForeign = (): Data => ({ at: now * 1000, body: encode(JSON.stringify(job.data ?? null)), part: id.charAt(0) })
  const data = isKnown ? job.data : asForeign()
  const pushedAt = data.at / 1000
  const { uncounted = 0, state = data.state === undefined ? null : decode(data.state) } = stored ?? {}
  const unseenMs = (retryCount - uncounted) * leaseMs
  const firstAt = stored?.first ?? new Date(Math.max(Math.min(pushedAt, now), now - unseenMs))
  const claim = {
    id,
    body: decode(data.body),
    claimCount: retryCount + 1 - uncounted,
    firstAt,
    retryState: state ?? undefined,
    retryCount,
    lane,
    data,
    group: groupId ?? undefined,
    isOurs: isKnown,
    note: { first: firstAt, uncounted, state },
    isNoted: stored !== undefined,
  }
  // The time at which a retry came due is unknown, because pg-boss does not report it.
  return retryCount === 0 ? { ...claim, dueAt: new Date(pushedAt) } : claim
}

/** Returns how many seconds are left until a time. PostgreSQL adds the seconds to its own time, so the two clocks need not agree. */
export function secondsUntil(at: Date, clock: Clock): number {
  return Math.ceil(Math.max(0, Math.min(at.getTime() - clock.now(), MAX_MS))) / 1000
}

/** The maximum delay: 100 years, which keeps every date well within the range of PostgreSQL. */
const MAX_MS = 100 * 365 * 24 * 60 * 60_000

export function encode(value: Uint8Array | string): string {
  return Buffer.from(value).toString('base64')
}

export function decode(value: string): Buffer {
  return Buffer.from(value, 'base64')
}
