/**
 * Checks the use of a queue by an inbox or a destination. Without this check, a destination that opened the queue of an inbox would post
 * the messages that the inbox received. An observer declares no use.
 */

import { show } from '../kit/checks.ts'
import { HooklineError } from '../protocol/error.ts'
import type { Queue, QueueUse } from './queue-types.ts'

/** Creates the error for calls on a queue whose jobs are reserved for the other use. */
export function servesOther(name: string, found: string, use: QueueUse): HooklineError {
  const advice = 'Give each inbox and each destination a queue with its own name.'
  const message = `Queue ${name} serves ${withArticle(found)}, so ${withArticle(use)} cannot use it. ${advice}`
  return new HooklineError('queue_unavailable', message)
}

function withArticle(use: string): string {
  return `${/^[aeiou]/.test(use) ? 'an' : 'a'} ${use}`
}

const destinations = new Set<string>()

/**
 * Reserves the jobs at a place for one destination of this process. Returns a function that ends the reservation.
 *
 * @throws TypeError if another destination of this process already uses the jobs.
 */
export function occupy(place: string, name: string): () => void {
  if (destinations.has(place)) {
    const advice = 'Give each destination a queue with its own name, or close the other destination first.'
    throw new TypeError(`Queue ${name} already serves a destination of this process. ${advice}`)
  }
  destinations.add(place)
  return () => void destinations.delete(place)
}

/**
 * Checks the format version and the use that an engine has stored for a queue.
 *
 * @throws HooklineError if the version is not `version`, or if the use is not `use`.
 */
export function requireNote(name: string, version: number, note: object | undefined, use?: QueueUse): void {
  if (note === undefined) return
  const { version: found, use: foundUse }: { readonly version?: unknown; readonly use?: unknown } = note
  if (found !== version) {
    const advice = 'Use the release that wrote the jobs, or give the queue another name.'
    const format = found === undefined ? 'no format version' : `format version ${found}`
    const message = `Queue ${name}: its jobs have ${format}, but this release of Hookline reads version ${version}. ${advice}`
    throw new HooklineError('queue_unavailable', message)
  }
  if (use !== undefined && foundUse !== use) throw servesOther(name, `${foundUse}`, use)
}

function listNames(names: readonly string[]): string {
  const most = 10
  const rest = names.length > most ? ` and ${names.length - most} more` : ''
  return names.length === 0
    ? 'No queue exists yet'
    : `Existing queues: ${names.slice(0, most).map(show).join(', ')}${rest}`
}

export function doesNotExist(name: string, names: readonly string[]): HooklineError {
  const message = `Queue ${name} does not exist. ${listNames(names)}. Check the name, or first start the app that pushes to the queue.`
  return new HooklineError('queue_unavailable', message)
}

/** Returns the queue for an observer: one that refuses `reserve`, `work`, and a push with `db`. */
export function asObserver(queue: Queue, name: string): Queue {
  function refuse(found: string): never {
    throw new TypeError(
      `Queue ${name} is open as an observer, which does not allow ${found}. Open the queue without \`observe\`.`,
    )
  }
  return {
    ...queue,
    reserve: (use) => refuse(`${withArticle(use)} to use the queue`),
    push: async (jobs, options) => (options?.db === undefined ? queue.push(jobs) : refuse('a push with `db`')),
    work: () => refuse('a handler'),
  }
}
