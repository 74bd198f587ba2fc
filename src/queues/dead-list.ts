/** The dead jobs of a queue in memory, in the order in which they died. */

import type { DeadJob } from './queue.ts'

/** The list of the dead. */
export interface DeadList {
  readonly size: number
  has(id: string): boolean
  add(job: DeadJob): void
  /** These, once each; ids that are not on the list are passed over. */
  find(ids: readonly string[] | 'all'): readonly DeadJob[]
  /** Takes jobs that were found off the list. */
  remove(jobs: readonly DeadJob[]): void
  /** Forgets the longest dead until no more bytes of bodies and states than this are left. */
  shrink(bytes: number): void
  /** Those that died after this one; from the longest dead on when it is not, or no more, on the list. */
  page(after: string | undefined, limit: number): readonly DeadJob[]
}

/** Makes an empty list; past `most` the longest dead is forgotten. */
export function createDeadList(most: number): DeadList {
  const jobs = new Map<string, DeadJob>()
  let bytes = 0 // Of bodies and states.

  function remove(job: DeadJob): void {
    jobs.delete(job.id)
    bytes -= bytesOf(job)
  }

  function forgetOldest(): void {
    remove(jobs.values().next().value as DeadJob)
  }

  return {
    get size() {
      return jobs.size
    },
    has: (id) => jobs.has(id),
    add(job) {
      if (jobs.size === most) forgetOldest()
      jobs.set(job.id, job)
      bytes += bytesOf(job)
    },
    find(ids) {
      if (ids === 'all') return [...jobs.values()]
      return [...new Set(ids)].flatMap((id) => jobs.get(id) ?? [])
    },
    remove(found) {
      for (const job of found) remove(job)
    },
    shrink(limit) {
      while (jobs.size > 0 && bytes > limit) forgetOldest()
    },
    page(after, limit) {
      const page: DeadJob[] = []
      let begun = after === undefined || !jobs.has(after)
      for (const job of jobs.values()) {
        if (page.length === limit) break
        if (begun) page.push(job)
        else begun = job.id === after
      }
      return page
    },
  }
}

/** What a job takes up, in bytes. */
export function bytesOf(job: { readonly body: Uint8Array; readonly state?: Uint8Array | undefined }): number {
  return job.body.byteLength + (job.state?.byteLength ?? 0)
}
