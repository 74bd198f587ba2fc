/** The dead letters of an inbox or a destination, as its owner sees and selects them: by their ids, all, or by a filter. */

import {
  invalidOption,
  kindOf,
  requireBoolean,
  requireInteger,
  requireOneOf,
  requireOptions,
  requireText,
} from '../options/checks.ts'
import type { DeadLetter, DeadLetterPage, Queue } from './api.ts'
import { MESSAGE_FILTERS, type MessageFilter, matchMessage, requireFilter } from './filter.ts'

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

interface Owner<Seen> {
  readonly read: (letter: DeadLetter) => Seen
  readonly bodyOf: (body: Uint8Array) => Uint8Array
  /** All reasons, where they are known. */
  readonly reasons?: readonly string[]
  /** The filter that only this owner has. */
  readonly filter: 'handler' | 'url'
  readonly isOf: (seen: Seen, value: string) => boolean
}

type Which<Filter> = readonly string[] | 'all' | Filter

/** The bodies of so many are in memory at once. */
const PAGE = 500

export function createLetters<Seen extends { readonly reason: string }, Filter extends LetterFilter>(
  queue: Pick<Queue, 'deadLetters' | 'redrive' | 'drop'>,
  { read, bodyOf, reasons, filter: own, isOf }: Owner<Seen>,
) {
  function readFilter(call: string, filter: object, more: readonly string[] = []): (letter: DeadLetter) => boolean {
    requireOptions(call, filter, [...MESSAGE_FILTERS, 'reason', own, ...more])
    const { [own]: owned, ...rest } = filter as MessageFilter & { reason?: string; handler?: string; url?: string }
    const { reason, since, until } = rest
    requireFilter(call, rest)
    if (reason !== undefined && reasons !== undefined) requireOneOf(`${call}: reason`, reason, reasons)
    else if (reason !== undefined) requireText(`${call}: reason`, reason, 'handler_failed')
    if (owned !== undefined)
      requireText(`${call}: ${own}`, owned, own === 'url' ? 'https://example.com/webhooks' : 'crm')
    const matches = matchMessage(rest)
    return (letter) => {
      if ((since !== undefined && letter.failedAt < since) || (until !== undefined && letter.failedAt >= until))
        return false
      if (!matches(bodyOf(letter.body))) return false
      if (reason === undefined && owned === undefined) return true
      const seen = read(letter)
      return (reason === undefined || seen.reason === reason) && (owned === undefined || isOf(seen, owned))
    }
  }

  function selectorOf(call: string, which: Which<Filter>): (letter: DeadLetter) => boolean {
    if (which === 'all') return () => true
    if (Array.isArray(which)) {
      const ids = new Set(which)
      return ({ id }) => ids.has(id)
    }
    requireAny(call, which as Filter)
    return readFilter(call, which as Filter)
  }

  async function redrive(which: Which<Filter>): Promise<number>
  async function redrive(which: Which<Filter>, options: { readonly dryRun: true }): Promise<LetterCount>
  async function redrive(
    which: Which<Filter>,
    options: { readonly dryRun?: boolean } = {},
  ): Promise<number | LetterCount> {
    requireOptions('redrive', options, ['dryRun'])
    const { dryRun = false } = options
    requireBoolean('redrive: dryRun', dryRun)
    if (!dryRun && (which === 'all' || Array.isArray(which))) return queue.redrive(which)
    const counts: Record<string, number> = {}
    const ids: string[] = []
    const isMeant = selectorOf('redrive', which)
    for await (const letter of walkLetters(queue.deadLetters)) {
      if (!isMeant(letter)) continue
      ids.push(letter.id)
      const { reason } = read(letter)
      counts[reason] = (counts[reason] ?? 0) + 1
    }
    if (dryRun) return { count: ids.length, reasons: counts }
    let count = 0
    for (let start = 0; start < ids.length; start += PAGE) count += await queue.redrive(ids.slice(start, start + PAGE))
    return count
  }

  return {
    async deadLetters(
      page: DeadLetterPage & Partial<Filter> = {} as DeadLetterPage & Partial<Filter>,
    ): Promise<readonly Seen[]> {
      const { after, limit = 100, newestFirst = false, ...filter } = page
      if (Object.keys(filter).length === 0) return (await queue.deadLetters(page)).map(read)
      const isMeant = readFilter('deadLetters', filter)
      requireInteger('deadLetters: limit', limit, 1)
      const found: Seen[] = []
      for await (const letter of walkLetters(queue.deadLetters, { after, newestFirst })) {
        if (isMeant(letter) && found.push(read(letter)) === limit) break
      }
      return found
    },
    redrive,
    async drop(which: Which<Filter & { readonly olderThan?: Date }>): Promise<number> {
      if (typeof which !== 'object' || which === null || Array.isArray(which)) {
        return queue.drop(which as readonly string[] | 'all')
      }
      requireAny('drop', which)
      const { olderThan, ...filter } = which as LetterFilter & { readonly olderThan?: Date }
      const matches = readFilter('drop', filter, ['olderThan'])
      return queue.drop({ matches, ...(olderThan !== undefined && { olderThan }) })
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

interface Walk {
  readonly newestFirst?: boolean
  readonly after?: string | undefined
}

/** Reads dead letters page by page, each once: when the last one of a page is gone, the next page begins anew. */
export async function* walkLetters<Letter extends { readonly id: string }>(
  list: (page: DeadLetterPage) => Promise<readonly Letter[]>,
  { newestFirst = false, after }: Walk = {},
  limit: number = PAGE,
): AsyncGenerator<Letter> {
  const seen = new Set<string>()
  for (let last = after; ; ) {
    const page = await list({ limit, newestFirst, ...(last !== undefined && { after: last }) })
    for (const letter of page) if (seen.size < seen.add(letter.id).size) yield letter
    last = page.at(-1)?.id
    if (page.length < limit) return
    await new Promise((resolve) => setTimeout(resolve)) // A queue in memory answers at once, and others would wait for all of it.
  }
}
