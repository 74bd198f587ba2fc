/** Reads all that is stored, however much it is: some megabytes at a time, one entry after the other, with turns for other work between. */

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { DeadLetterPage, LogEntry, LogPage, QueueLog } from './queue-types.ts'

/** The bounds of a page. Its first entry may have more bytes than `maxBytes`. */
export interface PageBounds {
  readonly limit: number
  readonly maxBytes: number
}

/** The `maxBytes` of a page or a log without a limit. */
export const UNLIMITED: number = Number.MAX_SAFE_INTEGER

export const PAGE: PageBounds = { limit: 500, maxBytes: 2 * 1024 * 1024 }

/** How long walks go on in one turn of the event loop. With the message that is parsed at the end, a turn may take twice as long. */
const SLICE_MS = 5

/** When the time of all walks in this turn ends, and the turns that they wait for. */
let endsAt = 0
let turns: Promise<unknown> = Promise.resolve()

/** Waits for another turn of the event loop once walks have used up their time of this one. Each of several walks gets a turn of its own. */
export async function letOthersRun(): Promise<void> {
  if (performance.now() < endsAt) return
  turns = turns.then(() => nextTurn())
  await turns
  endsAt = performance.now() + SLICE_MS
}

/** Yields the entries of pages. Lets others run before each: its caller may parse it. Before the caller parses it again, it calls {@link letOthersRun}. */
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

/** Lists pages until one is empty. A short page is not the last one: it may be full of bytes. */
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

/** Reads the entries of a log, in their sequence. */
export function walkLog(
  log: QueueLog,
  page: Pick<LogPage, 'since' | 'until' | 'after'> = {},
  bounds: PageBounds = PAGE,
): AsyncGenerator<LogEntry> {
  const list = (size: PageBounds, last: LogEntry | undefined) =>
    log.list({ ...page, ...size, after: last?.cursor ?? page.after })
  return walk(pagesOf(list, bounds))
}

/** Returns the first entries that fit on a page, at least one. */
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

/** The direction and the beginning of a walk over dead letters. */
export interface LettersFrom {
  readonly newestFirst?: boolean
  readonly after?: string | undefined
}

/**
 * Reads dead letters, each once. When the letter to go on from is gone meanwhile, the list begins anew, without those that were read. With
 * a given `after`, it then has some from before it.
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
