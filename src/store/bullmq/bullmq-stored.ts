/** Lists and changes the dead letters, which BullMQ calls failed jobs, and the jobs that wait or are claimed. */

import type { Job, Queue } from 'bullmq'
import type { CheckedPage } from '../queue-store.ts'
import type { DeadLetter, StoredJob } from '../queue-types.ts'
import { PAGE, type PageBounds, takePage } from '../walk.ts'
import { type Connection, unlessRefused } from './bullmq-connection.ts'
import { bodyOf, isOurs, toData, toDeadLetter } from './bullmq-job.ts'

const STATES = ['wait', 'prioritized', 'delayed', 'waiting-children', 'active'] as const

const READ_AT_ONCE = 20
/**
 * A dead letter is first searched for up to this many positions before and after its last known position. If it is not there, all dead
 * letters are searched.
 */
const NEAR = 100

interface Range {
  readonly first: number
  readonly ids: readonly string[]
}

export class StoredJobs {
  readonly #connection: Connection
  readonly #now: () => number
  /** The last dead letter of the page that was listed last, and its position. */
  #lastListed: { readonly id: string; readonly rank: number } | undefined

  constructor(connection: Connection, now: () => number) {
    this.#connection = connection
    this.#now = now
  }

  async deadLetters({ after, newestFirst, ...bounds }: CheckedPage): Promise<readonly DeadLetter[]> {
    const { limit } = bounds
    const { first, ids } =
      after === undefined
        ? { first: 0, ids: await this.#failedIds(0, limit - 1, !newestFirst) }
        : await this.#findAfter(after, limit, !newestFirst)
    for await (const page of this.#readPages(ids, bounds, toDeadLetter)) {
      const id = page.at(-1)?.id ?? ''
      this.#lastListed = { id, rank: first + ids.indexOf(id) }
      return page
    }
    return []
  }

  /** Reads all ids in one step, so that a job that changes its state during the listing is not missed. */
  async *jobs(): AsyncGenerator<readonly StoredJob[]> {
    const ids = await this.#connection.call(({ queue }) => queue.getRanges([...STATES], 0, -1))
    yield* this.#readPages(ids, PAGE, (job) => ({ id: job.id ?? '', body: bodyOf(job) }))
  }

  redrive(ids: readonly string[]): Promise<number> {
    return this.#countEach(ids, async (queue, id) => {
      const job = await queue.getJob(id)
      if (job?.finishedOn === undefined) return false
      await job.updateProgress({ dueAt: this.#now() })
      await job.retry('failed')
      return true
    })
  }

  drop(ids: readonly string[]): Promise<number> {
    return this.#countEach(
      ids,
      async (queue, id) => (await queue.getJobState(id)) === 'failed' && (await queue.remove(id)) === 1,
    )
  }

  /**
   * Replaces bodies and retry states. A dead letter that is redriven at this moment also gets the new retry state, because BullMQ cannot
   * check the state of a job in the step that changes its data.
   */
  async rewrite(letters: readonly DeadLetter[]): Promise<void> {
    const byId = new Map(letters.map((letter) => [letter.id, letter]))
    await this.#countEach([...byId.keys()], async (queue, id) => {
      const [job, letter] = [await queue.getJob(id), byId.get(id)]
      if (letter === undefined || job?.finishedOn === undefined || !isOurs(job)) return false
      await job.updateData(toData(letter.body, letter.retryState))
      return true
    })
  }

  /**
   * Removes jobs. BullMQ reports a job as removed even if it was already gone. A completed job is not counted: its id is still in the
   * dedupe window.
   */
  remove(ids: readonly string[]): Promise<number> {
    return this.#countEach(
      ids,
      async (queue, id) => (await queue.remove(id)) === 1 && (await queue.getDeduplicationJobId(id)) === null,
    )
  }

  #failedIds(first: number, last: number, isAscending: boolean): Promise<readonly string[]> {
    return this.#connection.call(({ queue }) => queue.getRanges(['failed'], first, last, isAscending))
  }

  /**
   * Finds the ids that follow a given id. BullMQ cannot look up the position of an id, so the search begins near the end of the previous
   * page, and then covers all ids.
   */
  async #findAfter(after: string, limit: number, isAscending: boolean): Promise<Range> {
    const near = this.#lastListed?.id === after ? this.#lastListed.rank : 0
    for (const [first, last] of [[Math.max(0, near - NEAR), near + NEAR + limit] as const, [0, -1] as const]) {
      const ids = await this.#failedIds(first, last, isAscending)
      const start = ids.indexOf(after) + 1
      if (start > 0) return { first: first + start, ids: ids.slice(start, start + limit) }
    }
    return { first: 0, ids: await this.#failedIds(0, limit - 1, isAscending) }
  }

  /** Reads jobs in pages, leaving out jobs that are gone. */
  async *#readPages<Entry extends { readonly body: Uint8Array }>(
    ids: readonly string[],
    bounds: PageBounds,
    toEntry: (job: Job) => Entry,
  ): AsyncGenerator<readonly Entry[]> {
    let entries: Entry[] = []
    for (let start = 0; start < ids.length; start += READ_AT_ONCE) {
      const some = ids.slice(start, start + READ_AT_ONCE)
      const jobs = await this.#connection.call(({ queue }) => Promise.all(some.map((id) => queue.getJob(id))))
      entries.push(...jobs.flatMap((job) => (job === undefined ? [] : toEntry(job))))
      for (let page = takePage(entries, bounds); page.length < entries.length; page = takePage(entries, bounds)) {
        yield page
        entries = entries.slice(page.length)
      }
    }
    if (entries.length > 0) yield entries
  }

  async #countEach(ids: readonly string[], act: (queue: Queue, id: string) => Promise<boolean>): Promise<number> {
    const results = await this.#connection.call(({ queue }) =>
      Promise.all(ids.map((id) => unlessRefused(act(queue, id)))),
    )
    return results.filter(Boolean).length
  }
}
