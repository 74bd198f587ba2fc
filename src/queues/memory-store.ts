/** Where a queue in memory keeps its jobs: what is due stands in line, what waits for its time lies in a heap. */

import { HooklineError } from '../protocol/error.ts'
import { bytesOf, createDeadList } from './dead-list.ts'
import { createFifo } from './fifo.ts'
import { createKnownIds } from './known-ids.ts'
import type { Store } from './loop.ts'
import type { MemoryQueueOptions } from './memory-options.ts'
import type { ClaimedJob, DeadJob, Job, Outcome, QueueCounts } from './queue.ts'
import { createTimeHeap } from './time-heap.ts'

/** The jobs of one queue. */
export interface MemoryStore extends Store {
  /** @throws HooklineError `queue_full`, and nothing was put in. */
  push(jobs: ReadonlyMap<string, Job>): void
  /** @throws HooklineError `queue_full`, and nothing was taken off the list. */
  redrive(ids: readonly string[] | 'all'): number
  drop(ids: readonly string[] | 'all'): number
  page(after: string | undefined, limit: number): readonly DeadJob[]
  counts(): QueueCounts
  /** Takes out everything but the dead, the oldest first. */
  empty(): readonly Job[]
}

interface Entry {
  readonly id: string
  body: Uint8Array
  state: Uint8Array | undefined
  deliveries: number
  firstAt: number
  dueAt: number
}

/** Makes an empty store. */
export function createMemoryStore(options: Required<MemoryQueueOptions>): MemoryStore {
  const { name, maxJobs, maxBytes, maxDead, knownForMs, clock } = options
  const entries = new Map<string, Entry>() // What waits or is handed out, the oldest first.
  let due = createFifo<Entry>()
  let later = createTimeHeap<Entry>()
  const dead = createDeadList(maxDead)
  const done = createKnownIds({ clock, forMs: knownForMs, most: maxJobs })
  let bytes = 0 // Of entries.

  function isKnown(id: string): boolean {
    return entries.has(id) || done.has(id) || dead.has(id)
  }

  function requireRoom(jobs: number, more: number): void {
    const over = entries.size + jobs > maxJobs ? `maxJobs, ${maxJobs}` : `maxBytes, ${maxBytes}`
    if (entries.size + jobs <= maxJobs && bytes + more <= maxBytes) return
    throw new HooklineError('queue_full', `The queue ${name} would go over its ${over}. Push again later, or raise it.`)
  }

  function add({ id, body, notBefore = clock.now() }: Job): void {
    const entry = { id, body, state: undefined, deliveries: 0, firstAt: 0, dueAt: notBefore }
    entries.set(id, entry)
    bytes += body.byteLength
    enqueue(entry)
  }

  /** What comes due goes behind what is due by then. */
  function enqueue(entry: Entry): void {
    ripen()
    if (entry.dueAt <= clock.now()) due.push(entry)
    else later.push(entry, entry.dueAt)
  }

  function ripen(): void {
    for (let at = later.nextAt(); at !== undefined && at <= clock.now(); at = later.nextAt()) {
      due.push(later.pop() as Entry)
    }
  }

  function remove(entry: Entry): void {
    entries.delete(entry.id)
    bytes -= bytesOf(entry)
  }

  function handOut(entry: Entry): ClaimedJob {
    if (entry.deliveries === 0) entry.firstAt = clock.now()
    entry.deliveries += 1
    const { id, body, deliveries, firstAt, state } = entry
    return { id, body, deliveries, firstAt, state }
  }

  function retry(entry: Entry, retryAt: number, state: Uint8Array | undefined): void {
    bytes -= bytesOf(entry)
    entry.body = unpooled(entry.body)
    entry.state = state
    entry.dueAt = retryAt
    bytes += bytesOf(entry)
    dead.shrink(maxBytes - bytes)
    enqueue(entry)
  }

  function bury(entry: Entry, reason: string, state: Uint8Array | undefined): void {
    remove(entry)
    dead.add({ id: entry.id, body: unpooled(entry.body), reason, state, diedAt: clock.now() })
    dead.shrink(maxBytes - bytes)
  }

  return {
    push(jobs) {
      const fresh: Job[] = []
      let more = 0
      for (const job of jobs.values()) {
        if (isKnown(job.id)) continue
        fresh.push(job)
        more += job.body.byteLength
      }
      requireRoom(fresh.length, more)
      dead.shrink(maxBytes - bytes - more)
      for (const job of fresh) add(job)
    },
    claim(limit) {
      ripen()
      const claimed: ClaimedJob[] = []
      while (claimed.length < limit) {
        const entry = due.shift()
        if (entry === undefined) break
        claimed.push(handOut(entry))
      }
      return claimed
    },
    settle(job: ClaimedJob, outcome: Outcome) {
      const entry = entries.get(job.id) as Entry
      if ('done' in outcome) {
        remove(entry)
        done.add(entry.id)
      } else if ('retryAt' in outcome) {
        retry(entry, outcome.retryAt, outcome.state)
      } else {
        bury(entry, outcome.dead, outcome.state)
      }
    },
    release() {}, // What is left is returned by close().
    nextAt: () => (due.size > 0 ? LONG_AGO : later.nextAt()),
    redrive(ids) {
      const jobs = dead.find(ids)
      requireRoom(jobs.length, 0) // Their bytes count already.
      dead.remove(jobs)
      for (const { id, body } of jobs) add({ id, body })
      return jobs.length
    },
    drop(ids) {
      const jobs = dead.find(ids)
      dead.remove(jobs)
      return jobs.length
    },
    page: dead.page,
    counts() {
      const waiting = due.size + later.size
      ripen()
      return { waiting, active: entries.size - waiting, dead: dead.size, oldestDueAt: due.peek()?.dueAt }
    },
    empty() {
      const now = clock.now()
      const left = [...entries.values()].map(({ id, body, dueAt }) =>
        dueAt > now ? { id, body, notBefore: dueAt } : { id, body },
      )
      entries.clear()
      due = createFifo()
      later = createTimeHeap()
      return left
    },
  }
}

/** Not when it came due: somebody may have set the clock back since. */
const LONG_AGO = 0

/** A small Buffer is a view of a pool, all of which it keeps in memory; what stays for long gets bytes of its own. */
function unpooled(bytes: Uint8Array): Uint8Array {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes)
}
