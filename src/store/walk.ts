/** Reads all stored entries, however many there are. Reads a few megabytes at a time, and lets other work run between entries. */

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { DeadLetterPage, LogEntry, LogPage, QueueLog } from './queue-types.ts'

/** The limits of a page. The first entry of a page may be larger than `maxBytes`. */
export interface PageBounds {
  readonly limit: number
  readonly maxBytes: number
}

/** The `maxBytes` of a page or a log without a limit. */
export const UNLIMITED: number = Number.MAX_SAFE_INTEGER

export const PAGE: PageBounds = { limit: 500, maxBytes: 2 * 1024 * 1024 }

/**
 * How long all walks together may run in one turn of the event loop, in milliseconds. A turn can take longer, because a message is always
 * parsed to its end.
 */
const SLICE_MS = 5

/** `endsAt` is the time until which the walks may run in this turn. `turns` resolves when the last waiting walk gets its turn. */
let endsAt = 0
let turns: Promise<unknown> = Promise.resolve()

/**
 * Waits for another turn of the event loop if the walks have used up their time in the current turn. If several walks wait, each gets its
 * own turn.
 */
export async function letOthersRun(): Promise<void> {
  if (performance.now() < endsAt) return
  turns = turns.then(() => nextTurn())
  await turns
  endsAt = performance.now() + SLICE_MS
}

/**
 * Yields the entries of pages. Lets other work run before each entry, because the caller may parse it. A caller that parses an entry a
 * second time calls {@link letOthersRun} before that.
 */
export async function* walk<Entry>(
  pages: AsyncIterable<readonly Entry[]> | Iterable<readonly Entry[]>,
): AsyncGenerator<Entry> {
  for await (const page of pages) {
    for (const entry of page) {
      await letOthersRun()
      yield entry
    }
  }
}

/** Lists pages until one is empty. A short page may not be the last one, because it may have reached `maxBytes`. */
export async function* pagesOf<Entry>(
  list: (bounds: PageBounds, last: Entry | undefined) => Promise<readonly Entry[]>,
  bounds: PageBounds = PAGE,
): AsyncGenerator<readonly Entry[]> {
  for (let last: Entry | undefined; ; ) {
    const page = await list(bounds, last)
    if (page.length === 0) return
    yield page
    last = page.at(-1)
  }
}

/** Reads the entries of a log, in their order. */
export function walkLog(
  log: QueueLog,
  page: Pick<LogPage, 'since' | 'until' | 'after'> = {},
  bounds: PageBounds = PAGE,
): AsyncGenerator<LogEntry> {
  const list = (size: PageBounds, last: LogEntry | undefined) =>
    log.list({ ...page, ...size, after: last?.cursor ?? page.after })
  return walk(pagesOf(list, bounds))
}

/** Returns the first entries that fit on a page: at least one, unless the list is empty. */
export function takePage<Entry extends { readonly body: Uint8Array }>(
  entries: Iterable<Entry>,
  { limit, maxBytes }: PageBounds,
): Entry[] {
  const page: Entry[] = []
  let bytes = 0
  for (const entry of entries) {
    bytes += entry.body.byteLength
    if (page.length > 0 && bytes > maxBytes) break
    if (page.push(entry) === limit) break
  }
  return page
}

/** The direction and the starting point of a walk over dead letters. */
export interface LettersFrom {
  readonly newestFirst?: boolean
  readonly after?: string | undefined
}

/**
 * Reads dead letters, each once. If the last letter of a page is gone when the next page is read, the walk starts again, and skips the
 * letters that it has already read. It may then also yield letters from before a given `after`.
 */
export async function* walkLetters<Letter extends { readonly id: string }>(
  list: (page: DeadLetterPage) => Promise<readonly Letter[]>,
  { newestFirst = false, after: first }: LettersFrom = {},
  bounds: PageBounds = PAGE,
): AsyncGenerator<Letter> {
  const seen = new Set<string>()
  const listNext = (size: PageBounds, last: Letter | undefined) => {
    const after = last?.id ?? first
    return list({ ...size, newestFirst, ...(after !== undefined && { after }) })
  }
  for await (const letter of walk(pagesOf(listNext, bounds))) {
    if (seen.has(letter.id)) continue
    seen.add(letter.id)
    yield letter
  }
}
