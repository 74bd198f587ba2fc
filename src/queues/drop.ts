/** Deletes by what is stored: dead letters that match, and all that is stored of a user. The same for every engine. */

import { setImmediate as nextTurn } from 'node:timers/promises'
import { requireOneOf, requireText } from '../options/checks.ts'
import type { Clock } from '../time/clock.ts'
import type {
  DeadLetter,
  DeadLetterFilter,
  DeadLetterPage,
  Forgotten,
  StoredDeadLetterFilter,
  StoredJob,
} from './queue.ts'

/** What a queue stores. */
export interface Stored {
  jobs(): AsyncIterable<readonly StoredJob[]>
  remove(ids: readonly string[]): Promise<number>
  deadLetters(page: DeadLetterPage): Promise<readonly DeadLetter[]>
  drop(ids: readonly string[] | 'all'): Promise<number>
}

/** How many dead letters are read at once. */
const PAGE = 500

/** Drops the dead letters that match all that is given. Returns how many. */
export async function dropMatching(
  { deadLetters, drop }: Pick<Stored, 'deadLetters' | 'drop'>,
  { olderThan = FOREVER, reason, matches = () => true }: StoredDeadLetterFilter,
): Promise<number> {
  const isMeant = (letter: DeadLetter): boolean => (reason === undefined || letter.reason === reason) && matches(letter)
  let after: string | undefined // The last one that stays.
  let tried: readonly string[] = [] // One that cannot be dropped is listed again.
  for (let count = 0; ; ) {
    const page = await deadLetters(after === undefined ? { limit: PAGE } : { limit: PAGE, after })
    const old = page.filter(({ failedAt }) => failedAt < olderThan)
    const ids = old.filter((letter) => !tried.includes(letter.id) && isMeant(letter)).map(({ id }) => id)
    if (ids.length > 0) count += await drop(ids)
    const last = old.findLast(({ id }) => !ids.includes(id))?.id ?? after
    if (old.length < page.length || (ids.length === 0 && last === after)) return count
    after = last
    tried = ids
  }
}

const FOREVER = new Date(8.64e15)

/**
 * What to drop, where other reasons are listed than are stored.
 *
 * @param reasons All that are listed. Default: any text is one.
 * @throws TypeError for a reason that is never listed.
 */
export function byListedReason<Reason extends string>(
  which: readonly string[] | 'all' | DeadLetterFilter<Reason>,
  reasonOf: (letter: DeadLetter) => Reason,
  reasons?: readonly Reason[],
): readonly string[] | 'all' | StoredDeadLetterFilter {
  const { reason, ...filter } = Object(which) as DeadLetterFilter<Reason>
  if (reason === undefined) return which
  if (reasons === undefined) requireText('reason', reason, 'handler_failed')
  else requireOneOf('reason', reason, reasons)
  return { ...filter, matches: (letter) => reasonOf(letter) === reason }
}

/** Deletes the jobs that match and wait, and the dead letters that match. */
export async function forget(stored: Stored, matches: (job: StoredJob) => boolean): Promise<Forgotten> {
  const found = new Set<string>()
  for await (const jobs of stored.jobs()) {
    for (const job of jobs) if (matches(job)) found.add(job.id)
    await nextTurn() // To read many must not delay the rest of the process.
  }
  const removed = await stored.remove([...found]) // Also none: a store may have copies of what is complete to overwrite.
  const dropped = await dropMatching(stored, { matches }) // Last: a job that failed meanwhile is among them.
  return { deleted: removed + dropped, active: found.size - removed }
}

/** Dead letters stay at most so much longer, in milliseconds, and never longer than twice. */
const EVERY_MS = 60 * 60_000

/**
 * Creates it; does nothing without `retentionMs`. Its timer does not keep the process alive.
 *
 * @param drop Drops what failed before a time.
 */
export function createRetention(
  retentionMs: number | undefined,
  drop: (olderThan: Date) => Promise<unknown>,
  clock: Clock,
  onError: (error: unknown) => void,
) {
  let timer: unknown
  let isStopped = retentionMs === undefined

  async function dropOld(ms: number): Promise<void> {
    try {
      await drop(new Date(clock.now() - ms))
    } catch (error) {
      if (!isStopped) onError(error)
    }
    if (isStopped) return
    timer = clock.setTimeout(() => void dropOld(ms), Math.min(ms, EVERY_MS))
    ;(timer as { unref?: () => void }).unref?.()
  }

  return {
    /** Drops what is too old now, and from then on in intervals. */
    start(): void {
      if (retentionMs !== undefined) void dropOld(retentionMs)
    },
    stop(): void {
      isStopped = true
      clock.clearTimeout(timer)
    },
  }
}
