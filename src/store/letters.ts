/** Reads, redrives and drops the dead letters of an owner: an inbox or a destination. */

import {
  invalidOption,
  kindOf,
  requireBoolean,
  requireHandlerName,
  requireOneOf,
  requireOptions,
  requireText,
} from '../kit/checks.ts'
import { readPage } from './arguments.ts'
import { MESSAGE_FILTERS, type MessageFilter, matchMessage, matchTimes, requireFilter } from './filter.ts'
import type { DeadLetter, DeadLetterPage, Queue } from './queue-types.ts'
import { type LettersFrom, letOthersRun, PAGE, type PageBounds, walkLetters } from './walk.ts'

/** Selects the dead letters that match every given condition. */
export interface LetterFilter<Reason extends string = string> extends MessageFilter {
  /** Selects messages that became dead letters for this reason. */
  readonly reason?: Reason
}

/** The number of dead letters that a redrive would make wait again, in total and by reason. */
export interface LetterCount {
  readonly count: number
  /** How many of these dead letters have each reason, keyed by the reason. */
  readonly reasons: Readonly<Record<string, number>>
}

/** The part of an inbox or a destination that reads its dead letters. */
export interface LettersOwner<Seen> {
  readonly readLetter: (letter: DeadLetter) => Seen
  /** Returns the reason of a letter, as the owner shows it. */
  readonly reasonOf: (letter: DeadLetter) => string
  /** Returns the bytes of the message in the body of a job. */
  readonly bodyOf: (body: Uint8Array) => Uint8Array
  /** All reasons, if the owner knows them. */
  readonly reasons?: readonly string[]
  /** The condition that only filters of this owner have. */
  readonly filter: 'handler' | 'url'
  /** Returns whether a letter matches the condition `filter` with this value. */
  readonly isOf: (letter: DeadLetter, value: string) => boolean
}

/** A filter of an inbox, which has `handler`, or of a destination, which has `url`. See {@link LettersOwner.filter}. */
interface OwnedFilter extends LetterFilter {
  readonly handler?: string
  readonly url?: string
}

type Which = readonly string[] | 'all' | OwnedFilter
type Matches = (letter: DeadLetter) => boolean

/** Reads the dead letters that a filter selects, each once. */
export async function* listLetters<Seen>(
  queue: Pick<Queue, 'deadLetters'>,
  owner: LettersOwner<Seen>,
  filter: OwnedFilter & LettersFrom,
): AsyncGenerator<Seen> {
  for await (const letter of walkSelected(queue, owner, filter, PAGE)) yield owner.readLetter(letter)
}

/**
 * Yields the selected letters. Lets other work run before each letter, because the owner parses the letter again after the filter has
 * parsed it.
 */
async function* walkSelected(
  queue: Pick<Queue, 'deadLetters'>,
  owner: LettersOwner<unknown>,
  { after, newestFirst = false, ...filter }: OwnedFilter & LettersFrom,
  bounds: PageBounds,
): AsyncGenerator<DeadLetter> {
  const isSelected = readFilter(owner, 'deadLetters', filter)
  const from = { newestFirst, after }
  readPage(from)
  for await (const letter of walkLetters(queue.deadLetters, from, bounds)) {
    if (!isSelected(letter)) continue
    await letOthersRun()
    yield letter
  }
}

function readFilter(
  { reasonOf, bodyOf, reasons, filter: ownFilter, isOf }: LettersOwner<unknown>,
  call: string,
  filter: OwnedFilter,
  moreOptions: readonly string[] = [],
): Matches {
  requireOptions(call, filter, [...MESSAGE_FILTERS, 'reason', ownFilter, ...moreOptions])
  const { handler, url, ...rest } = filter
  const { reason } = rest
  const ownValue = ownFilter === 'handler' ? handler : url
  requireFilter(call, rest)
  if (reason !== undefined && reasons !== undefined) requireOneOf(`${call}: reason`, reason, reasons)
  else if (reason !== undefined) requireText(`${call}: reason`, reason, 'handler_failed')
  if (handler !== undefined) requireHandlerName(`${call}: handler`, handler)
  if (url !== undefined) requireText(`${call}: url`, url, 'https://example.com/webhooks')
  const matchesTime = matchTimes(rest)
  const matchesMessage = matchMessage(rest)
  return (letter) => {
    if (!matchesTime(letter.failedAt)) return false
    if (reason !== undefined && reasonOf(letter) !== reason) return false
    if (ownValue !== undefined && !isOf(letter, ownValue)) return false
    return matchesMessage(bodyOf(letter.body))
  }
}

/** Returns a function that tells whether a letter is selected by the ids or the filter of a call. */
function readWhich(owner: LettersOwner<unknown>, call: string, which: Which): Matches {
  if (which === 'all') return () => true
  if (areIds(which)) {
    const ids = new Set(which)
    return ({ id }) => ids.has(id)
  }
  requireAny(call, which)
  return readFilter(owner, call, which)
}

function areIds(which: Which): which is readonly string[] | 'all' {
  return which === 'all' || Array.isArray(which)
}

export function createLetters<Seen>(queue: Pick<Queue, 'deadLetters' | 'redrive' | 'drop'>, owner: LettersOwner<Seen>) {
  async function redrive(which: Which): Promise<number>
  async function redrive(which: Which, options: { readonly dryRun: true }): Promise<LetterCount>
  async function redrive(which: Which, options: { readonly dryRun?: boolean } = {}): Promise<number | LetterCount> {
    requireOptions('redrive', options, ['dryRun'])
    const { dryRun = false } = options
    requireBoolean('redrive: dryRun', dryRun)
    if (!dryRun && areIds(which)) return queue.redrive(which)
    const counts: Record<string, number> = {}
    const ids: string[] = []
    const isSelected = readWhich(owner, 'redrive', which)
    for await (const letter of walkLetters(queue.deadLetters)) {
      if (!isSelected(letter)) continue
      ids.push(letter.id)
      const reason = owner.reasonOf(letter)
      counts[reason] = (counts[reason] ?? 0) + 1
    }
    if (dryRun) return { count: ids.length, reasons: counts }
    return queue.redrive(ids)
  }

  return {
    async deadLetters(page: DeadLetterPage & OwnedFilter = {}): Promise<readonly Seen[]> {
      const { limit, maxBytes } = readPage(page)
      const { limit: _, maxBytes: __, ...filter } = page
      const { after, newestFirst, ...others } = filter
      // If the filter has conditions, full pages are read whatever the limit is, because most dead letters may not match.
      const hasFilter = Object.keys(others).length > 0
      const bounds = { limit: Math.min(limit, PAGE.limit), maxBytes: Math.min(maxBytes, PAGE.maxBytes) }
      const found: Seen[] = []
      let bytes = 0
      for await (const letter of walkSelected(queue, owner, filter, hasFilter ? PAGE : bounds)) {
        bytes += letter.body.byteLength
        if (found.length > 0 && bytes > maxBytes) break
        if (found.push(owner.readLetter(letter)) === limit) break
      }
      return found
    },
    redrive,
    async drop(which: Which | (OwnedFilter & { readonly olderThan?: Date })): Promise<number> {
      if (areIds(which)) return queue.drop(which)
      requireAny('drop', which)
      const { olderThan, ...filter }: OwnedFilter & { readonly olderThan?: Date } = which
      const matches = readFilter(owner, 'drop', filter, ['olderThan'])
      return queue.drop(olderThan === undefined ? { matches } : { matches, olderThan })
    },
  }
}

/**
 * Checks that a filter has at least one condition. A filter whose values are all undefined must not select everything.
 *
 * @throws TypeError if the filter has no condition, or is not an object.
 */
function requireAny(call: string, filter: object): void {
  const isFilter = typeof filter === 'object' && filter !== null
  if (isFilter && Object.values(filter).some((value) => value !== undefined)) return
  const found = isFilter ? 'a filter without conditions' : kindOf(filter)
  throw invalidOption(call, "must be given ids, 'all' or a filter", found, `To ${call} all dead letters, pass 'all'.`)
}
