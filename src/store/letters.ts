/** The dead letters of an inbox or a destination, as its owner sees and selects them: by their ids, all, or by a filter. */

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

/** Which dead letters are meant: those that match all that is given. */
export interface LetterFilter<Reason extends string = string> extends MessageFilter {
  /** Those that became dead letters for this reason. */
  readonly reason?: Reason
}

/** What a redrive would do. */
export interface LetterCount {
  readonly count: number
  /** How many there are of each reason. */
  readonly reasons: Readonly<Record<string, number>>
}

export interface LettersOwner<Seen> {
  readonly read: (letter: DeadLetter) => Seen
  /** Why it failed, as {@link LettersOwner.read} says. */
  readonly reasonOf: (letter: DeadLetter) => string
  readonly bodyOf: (body: Uint8Array) => Uint8Array
  /** All reasons, where they are known. */
  readonly reasons?: readonly string[]
  /** The filter that only this owner has. */
  readonly filter: 'handler' | 'url'
  readonly isOf: (letter: DeadLetter, value: string) => boolean
}

/** A filter of any owner: {@link LettersOwner.filter} says which of the two it has. */
interface OwnedFilter extends LetterFilter {
  readonly handler?: string
  readonly url?: string
}

type Which = readonly string[] | 'all' | OwnedFilter
type Matches = (letter: DeadLetter) => boolean

/** Reads the dead letters that a filter means, each once. */
export async function* listLetters<Seen>(
  queue: Pick<Queue, 'deadLetters'>,
  owner: LettersOwner<Seen>,
  filter: OwnedFilter & LettersFrom,
): AsyncGenerator<Seen> {
  for await (const letter of walkMeant(queue, owner, filter, PAGE)) yield owner.read(letter)
}

/** Stops for others before each: its owner parses it again. */
async function* walkMeant(
  queue: Pick<Queue, 'deadLetters'>,
  owner: LettersOwner<unknown>,
  { after, newestFirst = false, ...filter }: OwnedFilter & LettersFrom,
  bounds: PageBounds,
): AsyncGenerator<DeadLetter> {
  const isMeant = readFilter(owner, 'deadLetters', filter)
  const from = { newestFirst, after }
  readPage(from)
  for await (const letter of walkLetters(queue.deadLetters, from, bounds)) {
    if (!isMeant(letter)) continue
    await letOthersRun()
    yield letter
  }
}

function readFilter(
  { reasonOf, bodyOf, reasons, filter: own, isOf }: LettersOwner<unknown>,
  call: string,
  filter: OwnedFilter,
  more: readonly string[] = [],
): Matches {
  requireOptions(call, filter, [...MESSAGE_FILTERS, 'reason', own, ...more])
  const { handler, url, ...rest } = filter
  const { reason } = rest
  const owned = own === 'handler' ? handler : url
  requireFilter(call, rest)
  if (reason !== undefined && reasons !== undefined) requireOneOf(`${call}: reason`, reason, reasons)
  else if (reason !== undefined) requireText(`${call}: reason`, reason, 'handler_failed')
  if (owned !== undefined && own === 'handler') requireHandlerName(`${call}: handler`, owned)
  else if (owned !== undefined) requireText(`${call}: url`, owned, 'https://example.com/webhooks')
  const isThen = matchTimes(rest)
  const matches = matchMessage(rest)
  return (letter) => {
    if (!isThen(letter.failedAt)) return false
    if (reason !== undefined && reasonOf(letter) !== reason) return false
    if (owned !== undefined && !isOf(letter, owned)) return false
    return matches(bodyOf(letter.body))
  }
}

function selectorOf(owner: LettersOwner<unknown>, call: string, which: Which): Matches {
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
    const isMeant = selectorOf(owner, 'redrive', which)
    for await (const letter of walkLetters(queue.deadLetters)) {
      if (!isMeant(letter)) continue
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
      const isAll = Object.keys(others).length === 0
      const bounds = { limit: Math.min(limit, PAGE.limit), maxBytes: Math.min(maxBytes, PAGE.maxBytes) }
      const found: Seen[] = []
      let bytes = 0
      for await (const letter of walkMeant(queue, owner, filter, isAll ? bounds : PAGE)) {
        bytes += letter.body.byteLength
        if (found.length > 0 && bytes > maxBytes) break
        if (found.push(owner.read(letter)) === limit) break
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

/** @throws TypeError for a filter whose values are all undefined: a parameter that is missing must not mean all. */
function requireAny(call: string, filter: object): void {
  const isFilter = typeof filter === 'object' && filter !== null
  if (isFilter && Object.values(filter).some((value) => value !== undefined)) return
  const found = isFilter ? 'a filter without a value' : kindOf(filter)
  throw invalidOption(call, "must be given ids, 'all' or a filter", found, `To ${call} all dead letters, pass 'all'.`)
}
