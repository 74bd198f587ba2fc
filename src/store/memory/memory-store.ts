/** The store of a queue in memory: due jobs first in, first out; jobs that wait for their time in a heap. */

import { type Clock, systemClock } from '../../kit/clock.ts'
import { createFifo, type Fifo } from '../../kit/fifo.ts'
import { HooklineError } from '../../protocol/error.ts'
import type { CheckedLogPage, QueueStore } from '../queue-store.ts'
import type { ClaimedJob, DeadLetter, Job, LogEntry } from '../queue-types.ts'
import { takePage } from '../walk.ts'
import { createTimeHeap } from './time-heap.ts'

interface Entry {
  readonly id: string
  body: Uint8Array
  retryState: Uint8Array | undefined
  isClaimed: boolean
  claimCount: number
  firstAt: Date
  dueAt: number
  readonly group: string | undefined
  /** Whether the others of its group wait behind it: it is due, claimed or held. */
  isFirst: boolean
  /** Its place among those that are due. */
  place: number
}

/** What `memoryQueue` takes. */
export interface MemoryQueueOptions {
  /** Names the queue in its errors. Default `memory`. */
  readonly name?: string
  /** The most jobs that wait or are claimed. Default 100 000. */
  readonly maxJobs?: number
  /** The most bytes of bodies and retry states. Default 256 MiB. The log and dead letters count too, but make way for new jobs. */
  readonly maxBytes?: number
  /** The most dead letters; past that the oldest is forgotten. Default 10 000. */
  readonly maxDeadLetters?: number
  /**
   * How long the id of a completed job is remembered, in milliseconds, from its completion. Default 24 hours. At most
   * `maxJobs` ids are remembered, the latest.
   */
  readonly dedupeWindowMs?: number
  /**
   * How long dead letters are kept, in milliseconds. A queue with a handler drops older ones once an hour, or once in this time
   * when that is shorter. Default: for ever.
   */
  readonly deadLetterRetentionMs?: number
  /** Where time comes from. Default: the machine's clock. */
  readonly clock?: Clock
}

interface MemoryClaim extends ClaimedJob {
  readonly entry: Entry
}

interface Letter extends DeadLetter {
  readonly group: string | undefined
}

/** Not the time when it came due: the machine's clock may have been set back since. */
const LONG_AGO = new Date(0)
const NEVER = new Date(8.64e15)

export function createMemoryStore(options: MemoryQueueOptions = {}): QueueStore<MemoryClaim> {
  const { name = 'memory', maxJobs = 100_000, maxBytes = 256 * 1024 * 1024, maxDeadLetters = 10_000 } = options
  const { dedupeWindowMs = 24 * 60 * 60_000, clock = systemClock } = options
  const entries = new Map<string, Entry>() // What waits or is claimed, the oldest first.
  const due = createFifo<Entry>()
  const next = createTimeHeap<Entry>() // Due, too: those that were behind others of their groups, by their places.
  const later = createTimeHeap<Entry>()
  const behind = new Map<string, Fifo<Entry>>() // By group, while one of its jobs is due, claimed or held.
  const letters = new Map<string, Letter>() // The oldest first.
  const completedIds = new Set<string>() // In the dedupe window.
  const completed = createFifo<{ readonly id: string; readonly until: number }>()
  const log = new Map<number, LogEntry>() // In their sequence, which is their cursor.
  let logged = 0 // So far.
  let logBytes = 0
  let entryBytes = 0
  let letterBytes = 0
  let active = 0
  let places = 0
  let retrying = 0 // Of those that wait.

  function isKnown(id: string): boolean {
    return entries.has(id) || letters.has(id) || completedIds.has(id)
  }

  function forgetCompleted(most = Number.POSITIVE_INFINITY): void {
    const now = clock.monotonic()
    for (let oldest = completed.peek(); oldest !== undefined; oldest = completed.peek()) {
      if (completed.size <= most && oldest.until > now) return
      completed.shift()
      completedIds.delete(oldest.id)
    }
  }

  function requireRoom(jobs: number, bytes: number): void {
    if (entries.size + jobs > maxJobs) throw full('maxJobs', maxJobs, `${entries.size + jobs} jobs`)
    if (entryBytes + bytes > maxBytes) throw full('maxBytes', maxBytes, `${entryBytes + bytes} bytes`)
  }

  function full(bound: string, most: number, found: string): HooklineError {
    const message = `Queue ${name} is full: its ${bound} is ${most}. Got ${found}. Push again later, or raise ${bound}.`
    return new HooklineError('queue_full', message)
  }

  function add({ id, body, notBefore, group }: Job, retryState?: Uint8Array): void {
    const dueAt = notBefore?.getTime() ?? clock.now()
    const entry = {
      id,
      body,
      retryState,
      isClaimed: false,
      claimCount: 0,
      firstAt: LONG_AGO,
      dueAt,
      group,
      isFirst: false,
      place: 0,
    }
    entries.set(id, entry)
    entryBytes += bytesOf(entry)
    enqueue(entry)
  }

  /** A job that comes due goes behind those that are due by then. */
  function enqueue(entry: Entry): void {
    moveDue()
    if (entry.claimCount > 0) retrying += 1
    if (entry.dueAt <= clock.now()) join(entry)
    else later.push(entry, entry.dueAt)
  }

  function moveDue(): void {
    for (let at = later.nextAt(); at !== undefined && at <= clock.now(); at = later.nextAt()) {
      join(later.pop() as Entry)
    }
  }

  function join(entry: Entry): void {
    const { group, isFirst } = entry
    entry.place = places++
    if (group === undefined || isFirst) return void due.push(entry)
    const line = behind.get(group)
    if (line !== undefined) return void line.push(entry)
    behind.set(group, createFifo())
    entry.isFirst = true
    due.push(entry)
  }

  /** When it was the first one of its group, the next one is due. */
  function leave(entry: Entry): void {
    const { group } = entry
    if (group === undefined || !entry.isFirst) return
    entry.isFirst = false
    const first = behind.get(group)?.shift()
    if (first === undefined) return void behind.delete(group)
    first.isFirst = true
    next.push(first, first.place)
  }

  function remove(entry: Entry): void {
    entries.delete(entry.id)
    entryBytes -= bytesOf(entry)
  }

  function claimEntry(entry: Entry): MemoryClaim {
    if (entry.claimCount > 0) retrying -= 1
    else entry.firstAt = new Date(clock.now())
    entry.claimCount += 1
    active += 1
    entry.isClaimed = true
    const { id, body, claimCount, firstAt, retryState, dueAt } = entry
    return { id, body, claimCount, firstAt, retryState, dueAt: new Date(dueAt), entry }
  }

  function retry(entry: Entry, retryAt: Date, retryState: Uint8Array | undefined): void {
    entryBytes -= bytesOf(entry)
    entry.body = unpooled(entry.body)
    entry.retryState = retryState
    entry.isClaimed = false
    entry.dueAt = retryAt.getTime()
    entryBytes += bytesOf(entry)
    shrink(0)
    enqueue(entry)
  }

  function addLetter(letter: Letter): void {
    letters.set(letter.id, letter)
    letterBytes += bytesOf(letter)
    shrink(0)
  }

  function removeLetter(letter: Letter): void {
    letters.delete(letter.id)
    letterBytes -= bytesOf(letter)
  }

  function append({ id, body }: Entry, note: Uint8Array): void {
    log.set(++logged, { id, body: unpooled(body), note, handledAt: new Date(clock.now()), cursor: `${logged}` })
    logBytes += body.byteLength
    shrink(0)
  }

  function removeLogged({ cursor, body }: LogEntry): void {
    log.delete(Number(cursor))
    logBytes -= body.byteLength
  }

  function* loggedAfter({ since = LONG_AGO, until = NEVER, after = '0' }: CheckedLogPage): Generator<LogEntry> {
    const last = Number(after)
    for (const [sequence, entry] of log) {
      if (sequence > last && entry.handledAt >= since && entry.handledAt < until) yield entry
    }
  }

  function findLetters(ids: readonly string[]): Letter[] {
    return ids.flatMap((id) => letters.get(id) ?? [])
  }

  function shrink(bytes: number): void {
    for (const entry of log.values()) {
      if (entryBytes + letterBytes + logBytes + bytes <= maxBytes) break
      removeLogged(entry)
    }
    for (const letter of letters.values()) {
      if (letters.size <= maxDeadLetters && entryBytes + letterBytes + bytes <= maxBytes) return
      removeLetter(letter)
    }
  }

  return {
    isDurable: false,
    hasGroups: true,
    push(jobs) {
      forgetCompleted()
      const { fresh = [], known = [] } = Object.groupBy(jobs, ({ id }) => (isKnown(id) ? 'known' : 'fresh'))
      const bytes = fresh.reduce((sum, { body }) => sum + body.byteLength, 0)
      requireRoom(fresh.length, bytes)
      shrink(bytes)
      for (const job of fresh) add(job)
      return known.map(({ id }) => id)
    },
    claim(limit) {
      moveDue()
      const claims: MemoryClaim[] = []
      while (claims.length < limit && due.size + next.size > 0) {
        const isNext = next.size > 0 && Number(next.nextAt()) < (due.peek()?.place ?? Number.POSITIVE_INFINITY)
        claims.push(claimEntry((isNext ? next.pop() : due.shift()) as Entry))
      }
      return claims
    },
    save() {}, // A claim without an outcome ends with the process.
    finish({ entry }, outcome) {
      active -= 1
      if ('retryAt' in outcome) return retry(entry, outcome.retryAt, outcome.retryState)
      remove(entry)
      leave(entry)
      const { id, group } = entry
      if ('complete' in outcome) {
        if (outcome.log !== undefined) append(entry, outcome.log)
        forgetCompleted(maxJobs - 1)
        completed.push({ id, until: clock.monotonic() + dedupeWindowMs })
        completedIds.add(id)
        return
      }
      const { deadLetter: reason, retryState } = outcome
      addLetter({ id, body: unpooled(entry.body), reason, retryState, failedAt: new Date(clock.now()), group })
    },
    release() {}, // close() returns what is left.
    nextDueAt() {
      const isDue = due.size + next.size > 0
      const at = isDue ? undefined : later.nextAt()
      return isDue ? LONG_AGO : at === undefined ? undefined : new Date(at)
    },
    counts() {
      moveDue()
      const dueAt = [due.peek(), next.peek()].flatMap((entry) => entry?.dueAt ?? [])
      return {
        waiting: entries.size - active,
        retrying,
        active,
        deadLetters: letters.size,
        oldestDueAt: dueAt.length === 0 ? undefined : new Date(Math.min(...dueAt)),
        asOf: new Date(clock.now()),
      }
    },
    deadLetters({ after, newestFirst, ...bounds }) {
      const all = [...letters.values()]
      if (newestFirst) all.reverse()
      return takePage(all.slice(all.findIndex(({ id }) => id === after) + 1), bounds)
    },
    redrive(ids) {
      const found = findLetters(ids)
      requireRoom(found.length, 0) // Their bytes count already.
      for (const letter of found) {
        removeLetter(letter)
        add(letter, letter.retryState)
      }
      return found.length
    },
    drop(ids) {
      const found = findLetters(ids)
      for (const letter of found) removeLetter(letter)
      return found.length
    },
    *jobs() {
      yield [...entries.values()] // Their bodies are in memory already.
    },
    log: {
      list: (page) => takePage(loggedAfter(page), page),
      trim({ before, maxBytes: most, limit }) {
        let dropped = 0
        for (const entry of log.values()) {
          if (dropped === limit || (entry.handledAt >= before && logBytes <= most)) return dropped
          removeLogged(entry)
          dropped += 1
        }
        return dropped
      },
      remove(cursors) {
        const found = cursors.flatMap((cursor) => log.get(Number(cursor)) ?? [])
        for (const entry of found) removeLogged(entry)
        return found.length
      },
    },
    remove(ids) {
      const found = new Set(ids.flatMap((id) => entries.get(id) ?? []).filter(({ isClaimed }) => !isClaimed))
      due.filter((entry) => !found.has(entry))
      next.filter((entry) => !found.has(entry))
      later.filter((entry) => !found.has(entry))
      for (const line of behind.values()) line.filter((entry) => !found.has(entry))
      for (const entry of found) {
        remove(entry)
        leave(entry)
        if (entry.claimCount > 0) retrying -= 1
      }
      return found.size
    },
    close() {
      const now = clock.now()
      const left = [...entries.values()].map(({ id, body, dueAt, group }) => ({
        ...{ id, body },
        ...(dueAt > now && { notBefore: new Date(dueAt) }),
        ...(group !== undefined && { group }),
      }))
      entries.clear()
      return left
    },
  }
}

function bytesOf(job: { readonly body: Uint8Array; readonly retryState?: Uint8Array | undefined }): number {
  return job.body.byteLength + (job.retryState?.byteLength ?? 0)
}

/** A small Buffer is a view of a pool, all of which it keeps in memory; what stays for long gets bytes of its own. */
function unpooled(bytes: Uint8Array): Uint8Array {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes)
}
