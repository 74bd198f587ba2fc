/** The store of a queue in memory: its jobs, dead letters and log, with limits on their number and size. */

import { type Clock, systemClock } from '../../kit/clock.ts'
import { createFifo } from '../../kit/fifo.ts'
import { HooklineError } from '../../protocol/error.ts'
import type { CreateQueueOptions } from '../arguments.ts'
import type { CheckedLogPage, LogStore, Mark, MarkStore, QueueStore } from '../queue-store.ts'
import type { ClaimedJob, DeadLetter, Job, LogEntry } from '../queue-types.ts'
import { takePage } from '../walk.ts'
import { DueJobs, type Waiting } from './due-jobs.ts'

/** A job that waits or is claimed. */
interface Entry extends Waiting {
  readonly id: string
  body: Uint8Array
  retryState: Uint8Array | undefined
  isClaimed: boolean
  claimCount: number
  firstAt: Date
}

/** The options of `memoryQueue`. */
export interface MemoryQueueOptions extends Pick<CreateQueueOptions, 'deadLetterRetentionMs' | 'clock'> {
  /** The name of the queue in error messages. Default `memory`. */
  readonly name?: string
  /** The maximum number of jobs that wait or are claimed. Default 100 000. */
  readonly maxJobs?: number
  /**
   * The maximum total size of bodies and retry states, in bytes. The log and dead letters also count, but are dropped to make room for new
   * jobs. Default 256 MiB.
   */
  readonly maxBytes?: number
  /** The maximum number of dead letters. When it is exceeded, the oldest dead letter is forgotten. Default 10 000. */
  readonly maxDeadLetters?: number
  /**
   * How long the id of a completed job is remembered, in milliseconds from its completion. Only the latest `maxJobs` ids are remembered.
   * Default 24 hours.
   */
  readonly dedupeWindowMs?: number
}

interface MemoryClaim extends ClaimedJob {
  readonly entry: Entry
}

interface Letter extends DeadLetter {
  readonly group: string | undefined
}

/** The time that `nextDueAt` returns if a job is due. The job's own time may be in the future if the machine's clock was set back. */
const LONG_AGO = new Date(0)
const NEVER = new Date(8.64e15)

type Store = QueueStore<MemoryClaim>

export function createMemoryStore(options: MemoryQueueOptions = {}): Store {
  return new MemoryStore(options)
}

/** The methods are properties, so that a store can be wrapped by spreading it. */
class MemoryStore implements Store {
  readonly isDurable = false
  readonly hasGroups = true
  readonly #settings: Required<Omit<MemoryQueueOptions, 'deadLetterRetentionMs'>>
  readonly #clock: Clock
  /** The jobs that wait or are claimed, the oldest first. */
  readonly #entries = new Map<string, Entry>()
  readonly #due: DueJobs<Entry>
  /** The dead letters, the oldest first. */
  readonly #letters = new Map<string, Letter>()
  /** The ids in the dedupe window. */
  readonly #completedIds = new Set<string>()
  readonly #completed = createFifo<{ readonly id: string; readonly until: number }>()
  /** The entries of the log, keyed by their numbers, which are also their cursors. */
  readonly #log = new Map<number, LogEntry>()
  /** The marks, in the order in which they were last set. */
  readonly #marks = new Map<string, Mark & { readonly version: number }>()
  #lastVersion = 0
  #lastSequence = 0
  #logBytes = 0
  #entryBytes = 0
  #letterBytes = 0
  #active = 0
  /** How many waiting jobs were claimed before. */
  #retrying = 0

  constructor(options: MemoryQueueOptions) {
    const { name = 'memory', maxJobs = 100_000, maxBytes = 256 * 1024 * 1024, maxDeadLetters = 10_000 } = options
    const { dedupeWindowMs = 24 * 60 * 60_000, clock = systemClock } = options
    this.#settings = { name, maxJobs, maxBytes, maxDeadLetters, dedupeWindowMs, clock }
    this.#clock = clock
    this.#due = new DueJobs(clock)
  }

  readonly push: Store['push'] = (jobs) => {
    this.#forgetCompleted()
    const fresh = jobs.filter(({ id }) => !this.#isKnown(id))
    const known = jobs.filter(({ id }) => this.#isKnown(id)).map(({ id }) => id)
    const bytes = fresh.reduce((sum, { body }) => sum + body.byteLength, 0)
    this.#requireRoom(fresh.length, bytes)
    this.#shrink(bytes)
    for (const job of fresh) this.#addJob(job)
    return known
  }

  readonly claim: Store['claim'] = (limit) => {
    this.#due.moveDue()
    const claims: MemoryClaim[] = []
    while (claims.length < limit) {
      const entry = this.#due.shift()
      if (entry === undefined) break
      claims.push(this.#claimEntry(entry))
    }
    return claims
  }

  /** Does nothing: if a claim ends without an outcome, the process has ended, and the job is lost in any case. */
  readonly save = (): void => {}

  readonly finish: Store['finish'] = ({ entry }, outcome) => {
    this.#active -= 1
    if ('retryAt' in outcome) return this.#retry(entry, outcome.retryAt, outcome.retryState)
    this.#remove(entry)
    this.#due.leaveGroup(entry)
    const { id, group } = entry
    if ('complete' in outcome) {
      const { maxJobs, dedupeWindowMs } = this.#settings
      if (outcome.log !== undefined) this.#append(entry, outcome.log)
      this.#forgetCompleted(maxJobs - 1)
      this.#completed.push({ id, until: this.#clock.monotonic() + dedupeWindowMs })
      this.#completedIds.add(id)
      return
    }
    const { deadLetter: reason, retryState } = outcome
    const failedAt = new Date(this.#clock.now())
    this.#addLetter({ id, body: unpooled(entry.body), reason, retryState, failedAt, group })
  }

  /** Does nothing: the queue calls this only when it closes, and `close` then returns the jobs that are left. */
  readonly release = (): void => {}

  readonly nextDueAt: Store['nextDueAt'] = () => {
    if (this.#due.size > 0) return LONG_AGO
    const at = this.#due.laterAt()
    return at === undefined ? undefined : new Date(at)
  }

  readonly counts: Store['counts'] = () => {
    this.#due.moveDue()
    const dueAt = this.#due.oldestDueAt()
    return {
      waiting: this.#entries.size - this.#active,
      retrying: this.#retrying,
      active: this.#active,
      deadLetters: this.#letters.size,
      oldestDueAt: dueAt === undefined ? undefined : new Date(dueAt),
      asOf: new Date(this.#clock.now()),
    }
  }

  readonly deadLetters: Store['deadLetters'] = ({ after, newestFirst, ...bounds }) => {
    const all = [...this.#letters.values()]
    if (newestFirst) all.reverse()
    return takePage(all.slice(all.findIndex(({ id }) => id === after) + 1), bounds)
  }

  readonly redrive: Store['redrive'] = (ids) => {
    const found = this.#findLetters(ids)
    this.#requireRoom(found.length, 0) // The bytes of dead letters are already counted.
    for (const letter of found) {
      this.#removeLetter(letter)
      this.#addJob(letter, letter.retryState)
    }
    return found.length
  }

  readonly drop: Store['drop'] = (ids) => {
    const found = this.#findLetters(ids)
    for (const letter of found) this.#removeLetter(letter)
    return found.length
  }

  /** Lists all jobs in one page, because their bodies are already in memory. */
  readonly jobs: Store['jobs'] = () => [[...this.#entries.values()]]

  readonly remove: Store['remove'] = (ids) => {
    const found = new Set(ids.flatMap((id) => this.#entries.get(id) ?? []).filter(({ isClaimed }) => !isClaimed))
    this.#due.filter((entry) => !found.has(entry))
    for (const entry of found) {
      this.#remove(entry)
      this.#due.leaveGroup(entry)
      if (entry.claimCount > 0) this.#retrying -= 1
    }
    return found.size
  }

  readonly log: LogStore = {
    list: (page) => takePage(this.#loggedAfter(page), page),
    trim: ({ before, maxBytes, limit }) => {
      let dropped = 0
      for (const entry of this.#log.values()) {
        if (dropped === limit || (entry.handledAt >= before && this.#logBytes <= maxBytes)) return dropped
        this.#removeLogged(entry)
        dropped += 1
      }
      return dropped
    },
    remove: (cursors) => {
      const found = cursors.flatMap((cursor) => this.#log.get(Number(cursor)) ?? [])
      for (const entry of found) this.#removeLogged(entry)
      return found.length
    },
  }

  readonly marks: MarkStore = {
    set: (marks, endedBefore) => {
      for (const { key, until } of this.#marks.values()) if (until < endedBefore) this.#marks.delete(key)
      for (const mark of marks) {
        this.#marks.delete(mark.key)
        this.#lastVersion += 1
        this.#marks.set(mark.key, { ...mark, version: this.#lastVersion })
      }
    },
    list: (after, limit) => [...this.#marks.values()].filter(({ version }) => version > after).slice(0, limit),
  }

  readonly close: Store['close'] = () => {
    const now = this.#clock.now()
    const left = [...this.#entries.values()].map(({ id, body, dueAt, group }) => ({
      id,
      body,
      ...(dueAt > now && { notBefore: new Date(dueAt) }),
      ...(group !== undefined && { group }),
    }))
    this.#entries.clear()
    return left
  }

  #isKnown(id: string): boolean {
    return this.#entries.has(id) || this.#letters.has(id) || this.#completedIds.has(id)
  }

  /** Forgets ids whose dedupe window is over, and the oldest ids while there are more than `maxIds`. */
  #forgetCompleted(maxIds = Number.POSITIVE_INFINITY): void {
    const now = this.#clock.monotonic()
    for (let oldest = this.#completed.peek(); oldest !== undefined; oldest = this.#completed.peek()) {
      if (this.#completed.size <= maxIds && oldest.until > now) return
      this.#completed.shift()
      this.#completedIds.delete(oldest.id)
    }
  }

  #requireRoom(jobs: number, bytes: number): void {
    if (jobs === 0) return // The queue may be over `maxBytes` already, because retry states are always kept.
    const { maxJobs, maxBytes } = this.#settings
    const allJobs = this.#entries.size + jobs
    const allBytes = this.#entryBytes + bytes
    if (allJobs > maxJobs) throw this.#full('maxJobs', maxJobs, `${allJobs} jobs`)
    if (allBytes > maxBytes) throw this.#full('maxBytes', maxBytes, `${allBytes} bytes`)
  }

  #full(bound: string, limit: number, found: string): HooklineError {
    const message = `Queue ${this.#settings.name} is full: it would hold ${found}, and ${bound} allows ${limit}. Push again later, or raise ${bound}.`
    return new HooklineError('queue_full', message)
  }

  #addJob({ id, body, notBefore, group }: Job, retryState?: Uint8Array): void {
    const dueAt = notBefore?.getTime() ?? this.#clock.now()
    const entry: Entry = {
      id,
      body,
      retryState,
      dueAt,
      group,
      isClaimed: false,
      claimCount: 0,
      firstAt: LONG_AGO, // The first claim sets this.
      isFirst: false,
      place: 0,
    }
    this.#entries.set(id, entry)
    this.#entryBytes += bytesOf(entry)
    this.#due.add(entry)
  }

  #remove(entry: Entry): void {
    this.#entries.delete(entry.id)
    this.#entryBytes -= bytesOf(entry)
  }

  #claimEntry(entry: Entry): MemoryClaim {
    if (entry.claimCount > 0) this.#retrying -= 1
    else entry.firstAt = new Date(this.#clock.now())
    entry.claimCount += 1
    this.#active += 1
    entry.isClaimed = true
    const { id, body, claimCount, firstAt, retryState, dueAt } = entry
    return { id, body, claimCount, firstAt, retryState, dueAt: new Date(dueAt), entry }
  }

  #retry(entry: Entry, retryAt: Date, retryState: Uint8Array | undefined): void {
    this.#entryBytes -= bytesOf(entry)
    entry.body = unpooled(entry.body)
    entry.retryState = retryState
    entry.isClaimed = false
    entry.dueAt = retryAt.getTime()
    this.#entryBytes += bytesOf(entry)
    this.#retrying += 1
    this.#shrink(0)
    this.#due.add(entry)
  }

  #addLetter(letter: Letter): void {
    this.#letters.set(letter.id, letter)
    this.#letterBytes += bytesOf(letter)
    this.#shrink(0)
  }

  #removeLetter(letter: Letter): void {
    this.#letters.delete(letter.id)
    this.#letterBytes -= bytesOf(letter)
  }

  #findLetters(ids: readonly string[]): Letter[] {
    return ids.flatMap((id) => this.#letters.get(id) ?? [])
  }

  #append({ id, body }: Entry, note: Uint8Array): void {
    this.#lastSequence += 1
    const handledAt = new Date(this.#clock.now())
    this.#log.set(this.#lastSequence, { id, body: unpooled(body), note, handledAt, cursor: `${this.#lastSequence}` })
    this.#logBytes += body.byteLength
    this.#shrink(0)
  }

  #removeLogged({ cursor, body }: LogEntry): void {
    this.#log.delete(Number(cursor))
    this.#logBytes -= body.byteLength
  }

  *#loggedAfter({ since = LONG_AGO, until = NEVER, after = '0' }: CheckedLogPage): Generator<LogEntry> {
    const last = Number(after)
    for (const [sequence, entry] of this.#log) {
      if (sequence > last && entry.handledAt >= since && entry.handledAt < until) yield entry
    }
  }

  /**
   * Drops the oldest entries of the log until this many more bytes fit. Then drops the oldest dead letters until the bytes fit and at most
   * `maxDeadLetters` are left.
   */
  #shrink(bytes: number): void {
    const { maxBytes, maxDeadLetters } = this.#settings
    for (const entry of this.#log.values()) {
      if (this.#entryBytes + this.#letterBytes + this.#logBytes + bytes <= maxBytes) break
      this.#removeLogged(entry)
    }
    for (const letter of this.#letters.values()) {
      const fits = this.#entryBytes + this.#letterBytes + bytes <= maxBytes
      if (fits && this.#letters.size <= maxDeadLetters) return
      this.#removeLetter(letter)
    }
  }
}

function bytesOf(job: { readonly body: Uint8Array; readonly retryState?: Uint8Array | undefined }): number {
  return job.body.byteLength + (job.retryState?.byteLength ?? 0)
}

/**
 * Copies bytes that are kept for a long time, unless they fill their own memory: a small Buffer is a view of a pool, and would keep the
 * whole pool in memory.
 */
function unpooled(bytes: Uint8Array): Uint8Array {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes)
}
