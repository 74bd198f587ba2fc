/** `hookline queue … dead`: the dead letters, grouped by their reasons. */

import type { Queue } from '../../queues/queue.ts'
import { escaped, note, paint, print, printJson } from '../terminal.ts'
import { ageOf, groupLetters, nameOf } from './letters.ts'

/** Prints them, at most `limit` of each reason. */
export async function printDead(
  queue: Queue,
  { limit = 3, json = false }: { readonly limit?: number; readonly json?: boolean },
): Promise<void> {
  const groups = await groupLetters(queue, limit)
  if (json) return groups.forEach(printJson)
  if (groups.length === 0) note('No dead letters.')
  const ago = (at: Date): string => `${ageOf(Date.now() - at.getTime())} ago`
  for (const { reason, count, oldest, newest, letters } of groups) {
    print(`${paint('bold', escaped(reason))}: ${count}, the oldest ${ago(oldest)}, the newest ${ago(newest)}`)
    for (const { id, failedAt, ...identity } of letters)
      print(`  ${escaped(id)}  ${ago(failedAt)}  ${nameOf(identity)}`)
    if (count > letters.length && letters.length > 0) print(`  and ${count - letters.length} more: see --limit`)
  }
}
