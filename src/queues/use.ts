/** What a queue is used for. The jobs of an inbox are no destination's: one would post what the other received. */

import { HooklineError } from '../message/error.ts'
import type { QueueUse } from './queue.ts'

/** The error of each call on a queue whose jobs have another use. */
export function servesOther(name: string, found: string, use: QueueUse): HooklineError {
  const advice = 'Give each inbox and each destination a queue of its own name.'
  const message = `Queue ${name} serves ${withArticle(found)}. Got ${withArticle(use)}. ${advice}`
  return new HooklineError('queue_unavailable', message)
}

function withArticle(use: string): string {
  return `${/^[aeiou]/.test(use) ? 'an' : 'a'} ${use}`
}

const destinations = new Set<string>()

/**
 * Notes that a destination of this process uses these jobs. A second one would post the messages of the first to its own URLs.
 *
 * @param place Where the jobs are: the same text for each queue over them.
 * @returns What frees the place again.
 * @throws TypeError when one uses them already.
 */
export function occupy(place: string, name: string): () => void {
  if (destinations.has(place)) {
    const advice = 'Give each destination a queue of its own name, or close the other one first.'
    throw new TypeError(`Queue ${name} can serve one destination of a process. Got a second one. ${advice}`)
  }
  destinations.add(place)
  return () => void destinations.delete(place)
}
