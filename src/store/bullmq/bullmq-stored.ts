/** Lists and changes the dead letters, which BullMQ calls failed, and the jobs that wait or are claimed. */

import type { Queue, Job as StoredJob } from 'bullmq'
import type { QueueStore } from '../queue-store.ts'
import { PAGE, type PageBounds, takePage } from '../walk.ts'
import { type Connection, unlessRefused } from './bullmq-connection.ts'
import { bodyOf, toDeadLetter } from './bullmq-job.ts'

const STATES = ['wait', 'prioritized', 'delayed', 'waiting-children', 'active'] as const

const READ_AT_ONCE = 20
/** By so many places, dead letters may move between two pages before the ids of all are read. */
const NEAR = 100

interface Range {
  readonly first: number
  readonly ids: readonly string[]
}

export type Stored = Pick<QueueStore, 'deadLetters' | 'redrive' | 'drop' | 'jobs' | 'remove'>

export function createStored({ call }: Connection, now: () => number): Stored {
  let ended: { readonly id: string; readonly rank: number } | undefined // Where the last page did.

  function failedIds(first: number, last: number, isAscending: boolean): Promise<readonly string[]> {
    return call(({ queue }) => queue.getRanges(['failed'], first, last, isAscending))
  }

  /** BullMQ has no place of an id: it is near where the page with it ended, or is looked for among all. */
  async function findAfter(after: string, limit: number, isAscending: boolean): Promise<Range> {
    const near = ended?.id === after ? ended.rank : 0
    for (const [first, last] of [[Math.max(0, near - NEAR), near + NEAR + limit] as const, [0, -1] as const]) {
      const ids = await failedIds(first, last, isAscending)
      const start = ids.indexOf(after) + 1
      if (start > 0) return { first: first + start, ids: ids.slice(start, start + limit) }
    }
    return { first: 0, ids: await failedIds(0, limit - 1, isAscending) }
  }

  /** Reads jobs in pages, without those that are gone. */
  async function* readPages<Entry extends { readonly body: Uint8Array }>(
    ids: readonly string[],
    bounds: PageBounds,
    toEntry: (job: StoredJob) => Entry,
  ): AsyncGenerator<readonly Entry[]> {
    let entries: Entry[] = []
    for (let start = 0; start < ids.length; start += READ_AT_ONCE) {
      const some = ids.slice(start, start + READ_AT_ONCE)
      const jobs = await call(({ queue }) => Promise.all(some.map((id) => queue.getJob(id))))
      entries.push(...jobs.flatMap((job) => (job === undefined ? [] : toEntry(job))))
      for (let page = takePage(entries, bounds); page.length < entries.length; page = takePage(entries, bounds)) {
        yield page
        entries = entries.slice(page.length)
      }
    }
    if (entries.length > 0) yield entries
  }

  async function countEach(ids: readonly string[], act: (queue: Queue, id: string) => Promise<boolean>) {
    const results = await call(({ queue }) => Promise.all(ids.map((id) => unlessRefused(act(queue, id)))))
    return results.filter(Boolean).length
  }

  async function redriveOne(queue: Queue, id: string): Promise<boolean> {
    const job = await queue.getJob(id)
    if (job?.finishedOn === undefined) return false
    await job.updateProgress({ dueAt: now() })
    await job.retry('failed')
    return true
  }

  async function dropOne(queue: Queue, id: string): Promise<boolean> {
    return (await queue.getJobState(id)) === 'failed' && (await queue.remove(id)) === 1
  }

  /** BullMQ says of a job that is gone, too, that it was removed: one that was handled has left its id in the dedupe window. */
  async function removeOne(queue: Queue, id: string): Promise<boolean> {
    return (await queue.remove(id)) === 1 && (await queue.getDeduplicationJobId(id)) === null
  }

  return {
    async deadLetters({ after, newestFirst, ...bounds }) {
      const { limit } = bounds
      const { first, ids } =
        after === undefined
          ? { first: 0, ids: await failedIds(0, limit - 1, !newestFirst) }
          : await findAfter(after, limit, !newestFirst)
      for await (const page of readPages(ids, bounds, toDeadLetter)) {
        const id = page.at(-1)?.id ?? ''
        ended = { id, rank: first + ids.indexOf(id) }
        return page
      }
      return []
    },
    redrive: (ids) => countEach(ids, redriveOne),
    drop: (ids) => countEach(ids, dropOne),
    /** Reads all ids in one step, so that a job that moves meanwhile is not missed. */
    async *jobs() {
      const ids = await call(({ queue }) => queue.getRanges([...STATES], 0, -1))
      yield* readPages(ids, PAGE, (job) => ({ id: job.id ?? '', body: bodyOf(job) }))
    },
    remove: (ids) => countEach(ids, removeOne),
  }
}
