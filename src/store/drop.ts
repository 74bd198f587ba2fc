/**
 * Drops dead letters that match a filter, deletes everything that is stored about a user, and changes stored bytes. The queues of all
 * engines share this code.
 */

import type {
  ChangeBytes,
  DeadLetter,
  Forgotten,
  LogEntry,
  Queue,
  QueueLog,
  StoredBytes,
  StoredDeadLetterFilter,
  StoredJob,
} from './queue-types.ts'
import { PAGE, pagesOf, walk, walkLetters, walkLog } from './walk.ts'

export interface Stored extends Pick<Queue, 'deadLetters'> {
  jobs(): AsyncIterable<readonly StoredJob[]>
  remove(ids: readonly string[]): Promise<number>
  drop(ids: readonly string[]): Promise<number>
  readonly rewrite: ((letters: readonly DeadLetter[]) => Promise<void>) | undefined
  readonly log: StoredLog | undefined
}

interface StoredLog extends QueueLog {
  remove(cursors: readonly string[]): Promise<number>
  readonly rewrite: ((entries: readonly LogEntry[]) => Promise<void>) | undefined
}

export async function dropMatching(
  { deadLetters, drop }: Pick<Stored, 'deadLetters' | 'drop'>,
  filter: StoredDeadLetterFilter,
): Promise<number> {
  return changeSome(await findIds(deadLetters, filter), drop)
}

/**
 * Finds the ids of all dead letters that a filter selects. A change begins only afterwards, because a walk cannot
 * continue from a dead letter that is gone.
 */
export async function findIds(
  deadLetters: Stored['deadLetters'],
  { olderThan = new Date(8.64e15), reason, matches = () => true }: StoredDeadLetterFilter = {},
): Promise<string[]> {
  const isSelected = (letter: DeadLetter): boolean =>
    (reason === undefined || letter.reason === reason) && matches(letter)
  const ids: string[] = []
  for await (const letter of walkLetters(deadLetters)) {
    if (letter.failedAt >= olderThan) break
    if (isSelected(letter)) ids.push(letter.id)
  }
  return ids
}

/** Changes jobs or log entries, at most 500 in each call to `change`. Returns how many were changed. */
export async function changeSome(
  ids: readonly string[],
  change: (ids: readonly string[]) => Promise<number>,
): Promise<number> {
  let count = 0
  for (let start = 0; start < ids.length; start += PAGE.limit) {
    count += await change(ids.slice(start, start + PAGE.limit))
  }
  return count
}

export async function forget(stored: Stored, matches: (job: StoredJob) => boolean): Promise<Forgotten> {
  const found = new Set<string>()
  for await (const job of walk(stored.jobs())) if (matches(job)) found.add(job.id)
  // The store is called even without ids, because it may still have to erase older copies of deleted data.
  const removed = found.size === 0 ? await stored.remove([]) : await changeSome([...found], stored.remove)
  // Dead letters and the log come last, so that they include jobs that failed or were completed in the meantime.
  const dropped = await dropMatching(stored, { matches })
  const logged = await removeLogged(stored, matches)
  return { deleted: removed + dropped + logged, active: found.size - removed }
}

async function removeLogged({ log }: Stored, matches: (job: StoredJob) => boolean): Promise<number> {
  if (log === undefined) return 0
  const cursors: string[] = []
  for await (const entry of walkLog(log)) if (matches(entry)) cursors.push(entry.cursor)
  return changeSome(cursors, log.remove)
}

const KINDS = ['body', 'retryState', 'note'] as const

/** Changes the bytes of a job. Returns the same object if no bytes change. */
export function changeStored<Stored extends StoredBytes>(stored: Stored, change: ChangeBytes): Stored {
  let changed = stored
  for (const kind of KINDS) {
    const bytes = stored[kind]
    const next = bytes && change(kind, stored.id, bytes)
    if (next !== bytes) changed = { ...changed, [kind]: next }
  }
  return changed
}

/**
 * Changes the bytes of dead letters and log entries in place, as far as the store can. Returns how many dead letters and entries it
 * changed.
 */
export async function rewrite({ deadLetters, rewrite, log }: Stored, change: ChangeBytes): Promise<number> {
  const letters = pagesOf<DeadLetter>((page, last) => deadLetters({ ...page, ...(last && { after: last.id }) }))
  const changed = rewrite === undefined ? 0 : await rewritePages(letters, change, rewrite)
  if (log?.rewrite === undefined) return changed
  const entries = pagesOf<LogEntry>((page, last) => log.list({ ...page, after: last?.cursor }))
  return changed + (await rewritePages(entries, change, log.rewrite))
}

async function rewritePages<Stored extends StoredBytes>(
  pages: AsyncIterable<readonly Stored[]>,
  change: ChangeBytes,
  write: (changed: readonly Stored[]) => Promise<void>,
): Promise<number> {
  let count = 0
  for await (const page of pages) {
    const changed = page.map((stored) => changeStored(stored, change)).filter((stored, index) => stored !== page[index])
    if (changed.length > 0) await write(changed)
    count += changed.length
  }
  return count
}
