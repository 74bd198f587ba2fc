/** Buffers recorded calls until they are delivered, and decides when to flush them ("Go client library", Limits). */

import { createFifo, type Fifo } from '../kit/fifo.ts'
import { HooklineError } from '../protocol/error.ts'
import { BatchError, type BatchFailure, showCount } from './batch-result.ts'
import { type BatchRoute, CALLS_BYTES, postBatch } from './client-batch.ts'
import type { ClientSettings } from './client-options.ts'
import { log, type Report } from './client-report.ts'
import type { BufferedCall } from './recorded-call.ts'

interface PendingBatch {
  /** The number of the first call of the batch. */
  readonly first: number
  readonly calls: readonly BufferedCall[]
  readonly stop: () => void
}

type Settings = Pick<
  ClientSettings,
  'flushAt' | 'flushAfterMs' | 'maxInFlight' | 'maxQueued' | 'maxQueuedBytes' | 'whenFull'
>

/** A buffer posts in a separate microtask, so that a post neither slows the recording of a call nor makes it fail. */
export class CallBuffer {
  readonly #settings: Settings
  readonly #route: BatchRoute
  readonly #report: Report
  readonly #onEmpty: () => void
  readonly #waiting: Fifo<BufferedCall> = createFifo()
  readonly #pending = new Set<PendingBatch>() // The batches that are being posted, oldest first.
  #change = Promise.withResolvers<void>() // Resolves the next time that calls are delivered, abandoned or dropped.
  #added = 0 // The number of calls added so far. Calls are numbered from 0 in the order in which they were added.
  #dueBefore = 0 // Waiting calls with a lower number are due to be posted.
  #held = 0 // The number of calls that are waiting or pending.
  #heldBytes = 0
  #isReportingDrop = false
  #isPosting = false
  #batches = 0
  #lastFlush: number
  #timer: unknown

  constructor(settings: Settings, route: BatchRoute, report: Report, onEmpty: () => void) {
    this.#settings = settings
    this.#route = route
    this.#report = report
    this.#onEmpty = onEmpty
    this.#lastFlush = route.clock.monotonic()
  }

  get size(): number {
    return this.#held
  }

  /** Adds a call, and flushes when `flushAt` calls are waiting. Returns whether the call was added. @throws HooklineError `queue_full`. */
  add(call: BufferedCall): boolean {
    const dropped = this.#isFull(call) ? this.#makeRoom(call) : []
    const isAdded = !this.#isFull(call)
    if (isAdded) this.#hold(call)
    else dropped.push(call)
    if (dropped.length > 0) this.#reportDrop(dropped)
    if (isAdded) this.#flushWhenDue()
    return isAdded
  }

  /** Posts the waiting calls. Resolves when every call added so far is delivered, abandoned or dropped. Never rejects. */
  async flush(): Promise<void> {
    const before = this.#added
    this.#startFlush()
    while (this.#firstHeld() < before) await this.#change.promise
  }

  /** Stops posting. Pending calls return to the front of the waiting calls, for the next flush. */
  suspend(): void {
    for (const call of this.#stopAll()) this.#waiting.push(call)
    this.#dueBefore = this.#firstWaiting()
    if (this.#waiting.size > 0) this.#startTimer()
  }

  /** Stops posting permanently. Returns the calls that were still held, oldest first. */
  abort(): readonly BufferedCall[] {
    const calls = this.#stopAll()
    this.#release(calls)
    return calls
  }

  #isFull({ bytes }: BufferedCall): boolean {
    const { maxQueued, maxQueuedBytes } = this.#settings
    return this.#held >= maxQueued || this.#heldBytes + bytes > maxQueuedBytes
  }

  /** Drops waiting calls, oldest first, until the new call fits. Pending calls cannot be dropped. */
  #makeRoom(call: BufferedCall): BufferedCall[] {
    // While a drop is reported, `onError` may record a call. If this call caused another drop, the reports could continue endlessly.
    if (this.#settings.whenFull === 'throw' || this.#isReportingDrop) {
      throw new HooklineError('queue_full', fullMessage(this.#held, this.#heldBytes))
    }
    const dropped: BufferedCall[] = []
    while (this.#isFull(call)) {
      const oldest = this.#waiting.shift()
      if (oldest === undefined) break
      this.#release([oldest])
      dropped.push(oldest)
    }
    return dropped
  }

  #hold(call: BufferedCall): void {
    this.#waiting.push(call)
    this.#added++
    this.#held++
    this.#heldBytes += call.bytes
  }

  /** Frees the space of calls that were delivered, abandoned, dropped or returned by `abort`. */
  #release(calls: readonly BufferedCall[]): void {
    this.#held -= calls.length
    for (const { bytes } of calls) this.#heldBytes -= bytes
    if (this.#held === 0) this.#onEmpty()
    this.#change.resolve()
    this.#change = Promise.withResolvers()
  }

  #reportDrop(calls: readonly BufferedCall[]): void {
    if (log.enabled) log('dropped %d, while %d wait to be delivered', calls.length, this.#held)
    this.#isReportingDrop = true
    this.#report({ error: new BatchError('queue_full', fullMessage(this.#held, this.#heldBytes)), calls })
    this.#isReportingDrop = false
  }

  #flushWhenDue(): void {
    const notDue = this.#added - Math.max(this.#dueBefore, this.#firstWaiting())
    if (notDue >= this.#settings.flushAt) this.#startFlush()
    else this.#startTimer()
  }

  /** Flushes at the end of the current interval. Intervals follow one another from the last flush on, even while no call is added. */
  #startTimer(): void {
    if (this.#timer !== undefined) return
    const { clock } = this.#route
    const { flushAfterMs } = this.#settings
    const untilNextMs = flushAfterMs - ((clock.monotonic() - this.#lastFlush) % flushAfterMs)
    this.#timer = clock.setTimeout(() => this.#startFlush(), untilNextMs)
  }

  /** Makes all waiting calls due, and posts them in a microtask. */
  #startFlush(): void {
    const { clock } = this.#route
    if (this.#timer !== undefined) clock.clearTimeout(this.#timer)
    this.#timer = undefined
    this.#lastFlush = clock.monotonic()
    this.#dueBefore = this.#added
    if (this.#isPosting) return
    this.#isPosting = true
    queueMicrotask(() => {
      this.#isPosting = false
      this.#postDue()
    })
  }

  #postDue(): void {
    while (this.#pending.size < this.#settings.maxInFlight && this.#firstWaiting() < this.#dueBefore) {
      const first = this.#firstWaiting()
      const calls = this.#takeCalls()
      const name = `batch ${++this.#batches}`
      const stop = postBatch(this.#route, calls, name, (failures) => this.#endBatch(batch, failures))
      const batch = { first, calls, stop }
      this.#pending.add(batch)
    }
  }

  /** Takes the calls of one batch from the waiting calls. Calls that are not yet due are included if the batch has room. */
  #takeCalls(): readonly BufferedCall[] {
    const waiting = this.#waiting
    const { flushAt } = this.#settings
    const calls: BufferedCall[] = []
    let bytes = 0
    for (let next = waiting.peek(); next !== undefined && calls.length < flushAt; next = waiting.peek()) {
      bytes += next.bytes + 1
      if (bytes > CALLS_BYTES) break
      waiting.shift()
      calls.push(next)
    }
    return calls
  }

  #endBatch(batch: PendingBatch, failures: readonly BatchFailure[]): void {
    this.#pending.delete(batch)
    this.#release(batch.calls)
    for (const failure of failures) this.#report(failure)
    this.#postDue()
  }

  /** Stops all pending batches, and empties the buffer. Returns the calls that it held, oldest first. */
  #stopAll(): readonly BufferedCall[] {
    for (const batch of this.#pending) batch.stop()
    const calls = [...this.#pending].flatMap((batch) => batch.calls)
    for (let call = this.#waiting.shift(); call !== undefined; call = this.#waiting.shift()) calls.push(call)
    this.#pending.clear()
    return calls
  }

  /** Returns the number of the oldest waiting call, or the next number if none waits. */
  #firstWaiting(): number {
    return this.#added - this.#waiting.size
  }

  #firstHeld(): number {
    const [oldest] = this.#pending
    return oldest?.first ?? this.#firstWaiting()
  }
}

function fullMessage(held: number, bytes: number): string {
  return `The buffer of the client is full: it holds ${showCount(held, 'undelivered call')} (${bytes} bytes). Raise \`maxQueued\` or \`maxQueuedBytes\`.`
}
