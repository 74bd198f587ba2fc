/** Deletes by what is stored: dead letters that match, and all that is stored of a user. The same for every engine. */

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { DeadLetter, Forgotten, Queue, StoredDeadLetterFilter, StoredJob } from './api.ts'

export interface Stored extends Pick<Queue, 'deadLetters'> {
  jobs(): AsyncIterable<readonly StoredJob[]>
  remove(ids: readonly string[]): Promise<number>
  drop(ids: readonly string[] | 'all'): Promise<number>
}

const PAGE = 500

export async function dropMatching(
  { deadLetters, drop }: Pick<Stored, 'deadLetters' | 'drop'>,
  { olderThan = new Date(8.64e15), reason, matches = () => true }: StoredDeadLetterFilter,
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
