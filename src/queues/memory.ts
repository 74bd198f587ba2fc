/**
 * A queue in the memory of this process: for destinations and inboxes whose jobs need not outlive it.
 *
 * @module hookline/queues/memory
 */

import { HooklineError } from '../protocol/error.ts'
import { readClose, readIds, readJobs, readPage } from './arguments.ts'
import { createLoop } from './loop.ts'
import { type MemoryQueueOptions, readOptions } from './memory-options.ts'
import { createMemoryStore } from './memory-store.ts'
import type { Job, Queue } from './queue.ts'

export type { MemoryQueueOptions } from './memory-options.ts'
export type {
  ClaimedJob,
  CloseOptions,
  DeadJob,
  DeadPage,
  HandleJob,
  Job,
  Outcome,
  Queue,
  QueueCounts,
} from './queue.ts'

/**
 * Makes a queue whose jobs end with the process; close it, and it returns those that were not done.
 *
 * - A job that waits for its time keeps the process alive while somebody works on the queue.
 * - Bodies and states are kept as given, not copied: do not write to them afterwards.
 * - Closing goes on, within its grace, with what is due, and does not wait for what is due later. Jobs that are handed
 *   out when the grace ends are returned too, without the dead: those were reported when they died.
 * - The dead are bounded by `maxDead`, and make way when `maxBytes` leaves no room for a new job: the longest dead is
 *   forgotten first.
 *
 * @throws TypeError that names the option at fault.
 * @example
 * const queue = memoryQueue({ name: 'orders' })
 * queue.work(async (job) => ({ done: true }), { concurrency: 10 })
 * await queue.push([{ id: randomUUID(), body }])
 */
export function memoryQueue(options: MemoryQueueOptions = {}): Queue {
  const settings = readOptions(options)
  const store = createMemoryStore(settings)
  const loop = createLoop(store, { clock: settings.clock, finishesDue: true })
  let closed: Promise<readonly Job[]> | undefined

  function requireOpen(): void {
    if (closed === undefined) return
    throw new HooklineError('shutting_down', `The queue ${settings.name} is closed, and takes no more jobs.`)
  }

  return {
    async push(jobs) {
      const byId = readJobs(jobs)
      requireOpen()
      store.push(byId)
      loop.wake()
    },
    work: loop.work,
    drain: loop.drain,
    counts: async () => store.counts(),
    dead: async (page = {}) => {
      const { after, limit } = readPage(page)
      return store.page(after, limit)
    },
    async redrive(ids) {
      readIds(ids)
      requireOpen()
      const count = store.redrive(ids)
      loop.wake()
      return count
    },
    drop: async (ids) => store.drop(readIds(ids)),
    async close(options) {
      const checked = readClose(options)
      closed ??= loop.close(checked).then(store.empty)
      return closed
    },
  }
}
