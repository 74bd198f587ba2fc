/** Builds a queue on the store of an engine. The queues of all engines share this code. */

import { AsyncLocalStorage } from 'node:async_hooks'
import { isThenable } from '../kit/callbacks.ts'
import { checkOptions, requireFunction, requireInteger, requireText } from '../kit/checks.ts'
import { type Clock, systemClock } from '../kit/clock.ts'
import { readOnError } from '../kit/report.ts'
import { TIMED_OUT, withTimeout } from '../kit/timeout.ts'
import { describeError, HooklineError } from '../protocol/error.ts'
import {
  type CreateQueueOptions,
  isFilter,
  QUEUE_CHECKS,
  readDb,
  readFilter,
  readHistory,
  readIds,
  readJobs,
  readLogPage,
  readPage,
  requireStore,
} from './arguments.ts'
import { changeSome, dropMatching, findIds, forget, rewrite, type Stored } from './drop.ts'
import { Marks, PAUSED } from './marks.ts'
import type { Answer, LogStore, MarkStore, QueueStore } from './queue-store.ts'
import type { ClaimedJob, Job, Queue, QueueLog, QueueUse } from './queue-types.ts'
import { Retention } from './retention.ts'
import { occupy, servesOther } from './use.ts'
import { QueueWorker, RELEASE_MS } from './worker.ts'

/** How long a closing queue waits for a durable store to close, in milliseconds. */
const CLOSE_MS = 300
const GRACE_MS = 10_000
/**
 * How long a failed push makes the process report itself as unhealthy, in milliseconds. Without this limit, a load balancer would send no
 * more messages to the process, and no push could show that the store works again.
 */
const PUSH_FAILURE_MS = 60_000

/**
 * Creates a queue on a store. The queue checks arguments, limits concurrency, renews leases, keeps trying while the engine is unreachable,
 * and implements `pause`, `drain` and `close`. Test your store with `testQueue` of `hookline/testing`.
 *
 * @throws TypeError that names the invalid option.
 * @example
 * const queue = createQueue(createFileStore('jobs.json'), { name: 'orders' })
 */
export function createQueue<Claim extends ClaimedJob>(store: QueueStore<Claim>, options: CreateQueueOptions): Queue {
  checkOptions('createQueue', options, QUEUE_CHECKS)
  requireText('name', options.name)
  requireStore(store)
  return new StoreQueue(store, options)
}

/** A queue on a store. Its methods are properties, so that the queue can be wrapped by spreading it. */
class StoreQueue<Claim extends ClaimedJob> implements Queue {
  readonly leaseMs: number | undefined
  readonly isDurable: boolean
  readonly isTransactional: boolean
  readonly hasGroups: boolean
  readonly log?: QueueLog
  readonly marks?: Marks
  declare readonly rewrite?: NonNullable<Queue['rewrite']>
  readonly #store: QueueStore<Claim>
  readonly #name: string
  readonly #clock: Clock
  readonly #deadLetterRetentionMs: number | undefined
  readonly #report: (error: HooklineError) => void
  readonly #worker: QueueWorker<Claim>
  readonly #retention: Retention
  readonly #stored: Stored
  /** The calls of the store that have not been answered yet. A closing queue waits for them. */
  readonly #calls = new Set<PromiseLike<unknown>>()
  #hasHandler = false
  #lastReported: unknown
  /** The promise that `close` returned; undefined until `close` is called. */
  #closing: Promise<readonly Job[]> | undefined
  /** Whether the store is closing or closed. Until then, background work may call the store. */
  #isClosed = false
  #use: QueueUse | undefined
  #releasePlace = (): void => {}
  #pushFailure: { readonly message: string; readonly at: number } | undefined

  constructor(store: QueueStore<Claim>, options: CreateQueueOptions) {
    const { name, pollMs, deadLetterRetentionMs, clock = systemClock } = options
    const onError = (error: unknown): void => this.#reportOnce(error)
    this.leaseMs = store.leaseMs
    this.isDurable = store.isDurable
    this.isTransactional = store.begin !== undefined
    this.hasGroups = store.hasGroups === true
    if (store.log !== undefined) this.log = { list: this.#listOf(store.log) }
    if (store.marks !== undefined) {
      const isShared = pollMs !== undefined
      this.marks = new Marks(this.#marksOf(store.marks), { name, clock, isShared, onError })
    }
    this.#store = store
    this.#name = name
    this.#clock = clock
    this.#deadLetterRetentionMs = deadLetterRetentionMs
    this.#report = readOnError(options, clock)
    this.#worker = new QueueWorker(store, { name, clock, pollMs, onError })
    this.#retention = new Retention(clock, onError)
    this.#stored = {
      deadLetters: this.deadLetters,
      drop: async (ids) => this.#ask(() => store.drop(ids)),
      jobs: () => this.#listJobs(),
      remove: async (ids) => this.#ask(() => store.remove(ids)),
      rewrite: store.rewrite && (async (letters) => this.#ask(() => store.rewrite?.(letters))),
      log: store.log && this.#storedLog(store.log),
    }
    if (store.rewrite !== undefined) this.rewrite = (change) => rewrite(this.#stored, change)
  }

  readonly reserve = (use: QueueUse): void => {
    if (use === this.#use) return
    if (this.#use !== undefined) throw new TypeError(servesOther(this.#name, this.#use, use).message)
    this.#store.reserve?.(use)
    const { place } = this.#store
    if (use === 'destination' && place !== undefined) this.#releasePlace = occupy(place, this.#name)
    this.#use = use
  }

  readonly push: Queue['push'] = async (jobs, options) => {
    const store = this.#store
    const checked = readJobs(jobs, this.#name, store.hasGroups)
    const db = readDb(options, this.#name, store.hasTransactions)
    this.#requireOpen(this.#closing === undefined)
    if (db !== undefined) {
      // The worker is not woken, because no job exists before the transaction of the caller commits. Errors from the transaction are passed
      // on unchanged.
      return this.#track(Promise.resolve(store.push(checked, { db })), (error) => error)
    }
    let known: readonly string[] | undefined
    try {
      const result = this.#ask(() => (checked.length === 0 ? undefined : store.push(checked)))
      if (store.isOrdered === true) this.#worker.wake() // In an ordered store, the claim takes effect after the push.
      known = isThenable(result) ? await result : result
      this.#pushFailure = undefined
    } catch (error) {
      this.#pushFailure = { message: this.#unavailable(error).message, at: this.#clock.monotonic() }
      throw error
    }
    if (store.isOrdered !== true) this.#worker.wake()
    return known
  }

  readonly work: Queue['work'] = (handle, options) => {
    if (this.#hasHandler) {
      const advice = 'Create a separate queue for each destination and each inbox.'
      throw new TypeError(`Queue ${this.#name} already has a handler. ${advice}`)
    }
    if (this.#closing !== undefined) throw new TypeError(`Queue ${this.#name} is closed. Create a new queue.`)
    requireFunction('handle', handle)
    requireInteger('concurrency', options?.concurrency, 1)
    const { log } = this.#store
    const history = options.history && readHistory('history', options.history, this)
    this.#hasHandler = true
    if (this.#deadLetterRetentionMs !== undefined)
      this.#retention.keepLetters(this.#stored, this.#deadLetterRetentionMs)
    if (history !== undefined && log !== undefined) {
      this.#retention.keepLog(async (which) => this.#ask(() => log.trim(which)), history)
    }
    if (options.maxPerSecond !== undefined) this.#store.limit?.(options.maxPerSecond)
    this.#store.onChange?.(this.#worker.wake)
    this.#followMarks()
    // Without `bind`, the handler would run in the async context of the push that wakes the worker.
    this.#worker.start(AsyncLocalStorage.bind(handle), options)
    return this.#worker.wake
  }

  /**
   * Claims nothing until the marks have been read, because a mark may pause the queue or suppress a message. A store in memory has no marks
   * from an earlier process.
   */
  #followMarks(): void {
    const { marks } = this
    if (marks === undefined) return
    this.#worker.setPaused(this.isDurable || marks.has(PAUSED), 'everywhere')
    marks.follow(() => this.#worker.setPaused(marks.has(PAUSED), 'everywhere'))
  }

  readonly pause = (): Promise<void> => this.#worker.pause()

  readonly resume = (): void => this.#worker.resume()

  readonly drain = async (): Promise<void> => {
    if (this.#use === 'inbox' && !this.#hasHandler && this.#closing === undefined) {
      const rule = `\`drain\` of queue ${this.#name} needs a receiver that has been started`
      throw new TypeError(`${rule}. Call receiver.start() first.`)
    }
    await this.#worker.drain(this.#use !== undefined) // The queue of an inbox or a destination also waits for jobs that come due later.
  }

  readonly counts: Queue['counts'] = async () => {
    const [stored] = await Promise.all([this.#ask(() => this.#store.counts()), this.marks?.refresh()])
    const counts = this.marks?.has(PAUSED) ? { ...stored, paused: true } : stored
    const failure = this.#pushFailure
    if (failure === undefined || this.#clock.monotonic() - failure.at >= PUSH_FAILURE_MS) return counts
    return { ...counts, pushError: failure.message }
  }

  readonly deadLetters: Queue['deadLetters'] = async (page = {}) => {
    const checked = readPage(page)
    return this.#ask(() => this.#store.deadLetters(checked))
  }

  readonly redrive: Queue['redrive'] = async (ids) => {
    const checked = readIds(ids)
    this.#requireOpen(this.#closing === undefined)
    const count = await this.#change(checked, async (some) => this.#ask(() => this.#store.redrive(some)))
    this.#worker.wake()
    return count
  }

  readonly drop: Queue['drop'] = async (which) => {
    if (isFilter(which)) return dropMatching(this.#stored, readFilter(which))
    return this.#change(readIds(which), this.#stored.drop)
  }

  readonly forget: Queue['forget'] = async (matches) => {
    requireFunction('matches', matches)
    const forgotten = await forget(this.#stored, matches)
    this.#worker.wake() // A call to `drain` may be waiting for the jobs that were just deleted.
    return forgotten
  }

  readonly close: Queue['close'] = async (options = {}) => {
    const graceMs = requireInteger('graceMs', options.graceMs ?? GRACE_MS, 0)
    this.#closing ??= this.#close(graceMs)
    return this.#closing
  }

  /** Closes the queue within a second after the grace period, even if a durable store no longer responds. */
  async #close(graceMs: number): Promise<readonly Job[]> {
    const endsAt = this.#clock.monotonic() + graceMs + RELEASE_MS
    this.#retention.close()
    this.marks?.close()
    await this.#worker.close(graceMs)
    await withTimeout(Promise.allSettled(this.#calls), Math.max(0, endsAt - this.#clock.monotonic()), this.#clock)
    this.#isClosed = true
    this.#releasePlace()
    try {
      const result = this.#store.close()
      if (!this.#store.isDurable || !isThenable(result)) return await result
      const left = await withTimeout(result, CLOSE_MS, this.#clock)
      return left === TIMED_OUT ? [] : left
    } catch (error) {
      throw this.#unavailable(error)
    }
  }

  /** Changes dead letters in several steps. A closing queue treats the steps as one call, and waits for all of them. */
  #change(ids: readonly string[] | undefined, act: Stored['drop']): Promise<number> {
    const changeAll = async () => changeSome(ids ?? (await findIds(this.deadLetters)), act)
    return this.#track(changeAll(), (error) => error)
  }

  async *#listJobs(): ReturnType<Stored['jobs']> {
    try {
      this.#requireOpen()
      for await (const jobs of this.#store.jobs()) {
        yield jobs
        this.#requireOpen()
      }
    } catch (error) {
      throw this.#unavailable(error)
    }
  }

  #listOf(log: LogStore): QueueLog['list'] {
    return async (page = {}) => {
      const checked = readLogPage(page)
      return this.#ask(() => log.list(checked))
    }
  }

  #marksOf(marks: MarkStore): MarkStore {
    return {
      set: async (...given) => this.#ask(() => marks.set(...given)),
      list: async (...given) => this.#ask(() => marks.list(...given)),
    }
  }

  #storedLog(log: LogStore): NonNullable<Stored['log']> {
    return {
      list: this.#listOf(log),
      remove: async (cursors) => this.#ask(() => log.remove(cursors)),
      rewrite: log.rewrite && (async (entries) => this.#ask(() => log.rewrite?.(entries))),
    }
  }

  /** Calls the store. This is a hot path, so the call runs synchronously if the store answers without a promise. */
  #ask<T>(make: () => Answer<T>): Answer<T> {
    this.#requireOpen()
    try {
      const result = make()
      return isThenable(result) ? this.#track(result, (error) => this.#unavailable(error)) : result
    } catch (error) {
      throw this.#unavailable(error)
    }
  }

  /** Waits for an answer. A closing queue waits until the answer has arrived. */
  async #track<T>(answer: PromiseLike<T>, explain: (error: unknown) => unknown): Promise<T> {
    this.#calls.add(answer)
    try {
      return await answer
    } catch (error) {
      throw explain(error)
    } finally {
      this.#calls.delete(answer)
    }
  }

  #requireOpen(isOpen = !this.#isClosed): void {
    if (!isOpen) throw new HooklineError('shutting_down', `Queue ${this.#name} is closed. Create a new queue.`)
  }

  /**
   * Reports an error, unless it is the error that was reported last. When calls that were sent together fail, all of them reject with the
   * same error.
   */
  #reportOnce(error: unknown): void {
    if (error === this.#lastReported) return
    this.#lastReported = error
    this.#report(this.#unavailable(error))
  }

  #unavailable(error: unknown): HooklineError {
    if (error instanceof HooklineError) return error
    const found = describeError(error).replace(/\.$/, '')
    const message = `Queue ${this.#name}: the engine failed: ${found}. Check that the engine is running and can be reached.`
    return new HooklineError('queue_unavailable', message, { cause: error })
  }
}
