/** One reader of the stream. It pulls: what has changed is looked up when the last chunk is taken, so a slow one holds a version. */

import type { Clock } from '../../time/clock.ts'
import type { Journal } from '../journal.ts'
import type { Row, StreamEvents } from '../wire.ts'

/** What the stream sends, beside rows, whenever it has changed. */
export interface Source {
  readonly name: Exclude<keyof StreamEvents, 'rows'>
  /** Grows with each change. 0: nothing to send yet. */
  readonly version: number
  read(): StreamEvents[Source['name']]
}

/** What all readers read. */
export interface Feed {
  readonly journal: Journal
  readonly sources: readonly Source[]
  /** The beginning of the ids of events: versions of another process are not those of this one. */
  readonly epoch: string
  /** The clock of the machine, whose timers do not keep the process alive. */
  readonly clock: Clock
}

/** The body of an answer that goes on until it is ended. */
export interface Reader extends AsyncIterable<string> {
  /** Says that something has changed. */
  wake(): void
  end(): void
}

/** Of the rows in one event. */
const MOST_ROWS = 200
/** Between two looks for changes: at most 5 a second. */
const INTERVAL_MS = 200
const HEARTBEAT_MS = 15_000
/** How long a chunk may stay where it is before the reader loses its place. */
const STALLED_MS = 60_000

/**
 * Creates a reader.
 *
 * @param version The version that it has; undefined for none.
 * @param onEnd Is called once.
 */
export function createReader(
  { journal, sources, epoch, clock }: Feed,
  version: number | undefined,
  onEnd: () => void,
): Reader {
  const sent = new Map<Source, number>()
  /** What of the latest rows is not sent yet. */
  let rest: readonly Row[] = []
  let [isFirst, isChanged, isEnded] = [true, true, false]
  let lookedAt = Number.NEGATIVE_INFINITY
  let sentAt = clock.monotonic()
  let resume = (): void => {}
  let stalled: unknown

  function end(): void {
    if (isEnded) return
    isEnded = true
    rest = []
    clock.clearTimeout(stalled)
    resume()
    onEnd()
  }

  /** Waits until something changes, and at most so long. */
  async function pause(ms: number): Promise<void> {
    let timer: unknown
    await new Promise<void>((resolve) => {
      resume = resolve
      timer = clock.setTimeout(resolve, ms)
    })
    clock.clearTimeout(timer)
  }

  /** Undefined: the stream has ended. */
  async function nextChunk(): Promise<string | undefined> {
    while (!isEnded) {
      if (rest.length > 0) return nextRows(false)
      const now = clock.monotonic()
      const waitMs = isChanged ? lookedAt + INTERVAL_MS - now : sentAt + HEARTBEAT_MS - now
      if (waitMs > 0) await pause(waitMs)
      else if (!isChanged) return ':\n\n'
      else {
        lookedAt = now
        const chunk = look()
        if (chunk !== '') return chunk
      }
    }
    return undefined
  }

  function look(): string {
    isChanged = false
    const changes = journal.changesSince(version)
    version = changes.version
    rest = changes.rows
    let text = isFirst ? 'retry: 1000\n\n' : ''
    isFirst = false
    if (changes.isReset || rest.length > 0) text += nextRows(changes.isReset)
    for (const source of sources) {
      if (source.version === 0 || source.version === sent.get(source)) continue
      sent.set(source, source.version)
      text += `event: ${source.name}\ndata: ${JSON.stringify(source.read())}\n\n`
    }
    return text
  }

  /** The last of them has the id: a page that lost the stream before gets all of them again. */
  function nextRows(isReset: boolean): string {
    const rows = rest.slice(0, MOST_ROWS)
    rest = rest.slice(MOST_ROWS)
    const id = rest.length === 0 ? `id: ${epoch}.${version}\n` : ''
    const data: StreamEvents['rows'] = { isReset, rows }
    return `event: rows\n${id}data: ${JSON.stringify(data)}\n\n`
  }

  const iterator: AsyncIterator<string> = {
    async next() {
      clock.clearTimeout(stalled)
      try {
        const value = await nextChunk()
        if (value === undefined) return { done: true, value }
        sentAt = clock.monotonic()
        stalled = clock.setTimeout(end, STALLED_MS)
        return { done: false, value }
      } catch (thrown) {
        end()
        throw thrown
      }
    },
    async return() {
      end()
      return { done: true, value: undefined }
    },
  }

  return {
    wake() {
      isChanged = true
      resume()
    },
    end,
    [Symbol.asyncIterator]: () => iterator,
  }
}
