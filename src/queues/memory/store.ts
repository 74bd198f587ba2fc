/** The store of a queue in memory: due jobs first in, first out; jobs that wait for their time in a heap. */

import { createFifo } from '../../collections/fifo.ts'
import { createSlots } from '../../collections/slots.ts'
import { HooklineError } from '../../message/error.ts'
import type { ClaimedJob, Job } from '../queue.ts'
import type { QueueStore } from '../store.ts'
import { bytesOf, createDeadLetters, unpooled } from './dead-letters.ts'
import { createKnownIds } from './known-ids.ts'
import type { Settings } from './options.ts'
import { createTimeHeap } from './time-heap.ts'

interface Entry {
  readonly id: string
  /** Counts the entries, so that the oldest has the lowest. */
  readonly order: number
  /** Its place among the entries. */
  place: number
  body: Uint8Array
  retryState: Uint8Array | undefined
  claimCount: number
  firstAt: Date
  dueAt: number
}

/** A claim is the entry's, while it says so. */
interface MemoryClaim extends ClaimedJob {
  readonly entry: Entry
}

/** Creates an empty store. */
export function createMemoryStore(options: Settings): QueueStore<MemoryClaim> {
  const { name, maxJobs, maxBytes, maxDeadLetters, dedupeWindowMs, clock } = options
  const entries = createSlots<Entry>() // What waits or is claimed.
  const due = createFifo<Entry>()
  const later = createTimeHeap<Entry>()
  const deadLetters = createDeadLetters(maxDeadLetters)
  const known = createKnownIds({ clock, dedupeWindowMs, most: maxJobs })
  let bytes = 0 // Of entries.
  let order = 0
  let retrying = 0 // Of those that wait.

  function isKnown(id: string): boolean {
    return known.has(id) || deadLetters.has(id)
  }

  function requireRoom(jobs: number, more: number): void {
    if (entries.size + jobs > maxJobs) throw full('maxJobs', maxJobs, `${entries.size + jobs} jobs`)
    if (bytes + more > maxBytes) throw full('maxBytes', maxBytes, `${bytes + more} bytes`)
  }

  function full(bound: string, most: number, found: string): HooklineError {
    const message = `Queue ${name} is full: its ${bound} is ${most}. Got ${found}. Push again later, or raise ${bound}.`
    return new HooklineError('queue_full', message)
  }

  function add({ id, body, notBefore }: Job): void {
    const dueAt = notBefore?.getTime() ?? clock.now()
    order += 1
    const entry = { id, order, place: 0, body, retryState: undefined, claimCount: 0, firstAt: LONG_AGO, dueAt }
    entry.place = entries.add(entry)
    known.add(id)
    bytes += body.byteLength
    enqueue(entry)
  }

  /** A job that comes due goes behind those that are due by then. */
  function enqueue(entry: Entry): void {
    moveDue()
    if (entry.claimCount > 0) retrying += 1
    if (entry.dueAt <= clock.now()) due.push(entry)
    else later.push(entry, entry.dueAt)
  }

  function moveDue(): void {
    for (let at = later.nextAt(); at !== undefined && at <= clock.now(); at = later.nextAt()) {
      due.push(later.pop() as Entry)
    }
  }

  function remove(entry: Entry): void {
    entries.remove(entry.place)
    bytes -= bytesOf(entry)
  }

  function oldestFirst(): Entry[] {
    return entries.list().sort((one, other) => one.order - other.order)
  }

  function claimEntry(entry: Entry): MemoryClaim {
    if (entry.claimCount > 0) retrying -= 1
    else entry.firstAt = new Date(clock.now())
    entry.claimCount += 1
    const { id, body, claimCount, firstAt, retryState, dueAt } = entry
    return { id, body, claimCount, firstAt, retryState, dueAt: new Date(dueAt), entry }
  }

  function retry(entry: Entry, retryAt: Date, retryState: Uint8Array | undefined): void {
    bytes -= bytesOf(entry)
    entry.body = unpooled(entry.body)
    entry.retryState = retryState
    entry.dueAt = retryAt.getTime()
    bytes += bytesOf(entry)
    deadLetters.shrink(maxBytes - bytes)
    enqueue(entry)
  }

  return {
    isDurable: false,
    push(jobs) {
      const fresh = jobs.filter(({ id }) => !isKnown(id))
      const more = fresh.reduce((sum, { body }) => sum + body.byteLength, 0)
      requireRoom(fresh.length, more)
      deadLetters.shrink(maxBytes - bytes - more)
      for (const job of fresh) add(job)
    },
    claim(limit) {
      moveDue()
      const claims: MemoryClaim[] = []
      while (claims.length < limit) {
        const entry = due.shift()
        if (entry === undefined) break
        claims.push(claimEntry(entry))
      }
      return claims
    },
    finish({ entry }, outcome) {
      if ('retryAt' in outcome) return retry(entry, outcome.retryAt, outcome.retryState)
      remove(entry)
      if ('complete' in outcome) return known.complete(entry.id)
      known.delete(entry.id)
      const { deadLetter: reason, retryState } = outcome
      const failedAt = new Date(clock.now())
      deadLetters.add({ id: entry.id, body: unpooled(entry.body), reason, retryState, failedAt })
      deadLetters.shrink(maxBytes - bytes)
    },
    release() {}, // close() returns what is left.
    nextDueAt() {
      const at = due.size > 0 ? undefined : later.nextAt()
      return due.size > 0 ? LONG_AGO : at === undefined ? undefined : new Date(at)
    },
    counts() {
      const waiting = due.size + later.size
      moveDue()
      const oldest = due.peek()
      return {
        waiting,
        retrying,
        active: entries.size - waiting,
        deadLetters: deadLetters.size,
        oldestDueAt: oldest && new Date(oldest.dueAt),
        asOf: new Date(clock.now()),
      }
    },
    deadLetters: ({ after, limit }) => deadLetters.page(after, limit),
    redrive(ids) {
      const found = deadLetters.find(ids)
      requireRoom(found.length, 0) // Their bytes count already.
      deadLetters.remove(found)
      for (const { id, body } of found) add({ id, body })
      return found.length
    },
    drop(ids) {
      const found = deadLetters.find(ids)
      deadLetters.remove(found)
      return found.length
    },
    *jobs() {
      const all = oldestFirst()
      for (let start = 0; start < all.length; start += LISTED_AT_ONCE) yield all.slice(start, start + LISTED_AT_ONCE)
    },
    remove(ids) {
      const wanted = new Set(ids)
      const found: Entry[] = []
      const stays = (entry: Entry): boolean => !wanted.has(entry.id) || found.push(entry) === 0
      due.filter(stays)
      later.filter(stays)
      for (const entry of found) {
        remove(entry)
        if (entry.claimCount > 0) retrying -= 1
        known.delete(entry.id)
      }
      return found.length
    },
    close() {
      const now = clock.now()
      const left = oldestFirst().map(({ id, body, dueAt }) =>
        dueAt > now ? { id, body, notBefore: new Date(dueAt) } : { id, body },
      )
      for (const { place } of entries.list()) entries.remove(place)
      return left
    },
  }
}

const LISTED_AT_ONCE = 500

/** Not the time when it came due: the machine's clock may have been set back since. */
const LONG_AGO = new Date(0)
