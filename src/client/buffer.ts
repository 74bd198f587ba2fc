/** Buffers the recorded calls that are not delivered yet, and decides when they are flushed ("Go client library", Limits). */

import { createFifo } from '../collections/fifo.ts'
import { HooklineError } from '../message/error.ts'
import { type BatchRoute, type PendingBatch, postBatch } from './batch.ts'
import { BatchError, type BatchFailure, count } from './batch-result.ts'
import type { BufferedCall } from './call.ts'
import type { ClientSettings } from './options.ts'
import { log, type Report } from './report.ts'

interface NumberedBatch extends PendingBatch {
  readonly first: number
}

interface Waiter {
  readonly before: number
  readonly resolve: () => void
}

type Settings = Pick<
  ClientSettings,
  'flushAt' | 'flushAfterMs' | 'maxInFlight' | 'maxQueued' | 'maxQueuedBytes' | 'whenFull'
>

/**
 * Creates an empty buffer. It posts in a microtask of its own: adding a call is never slower, and never fails, because
 * of it.
 */
export function createCallBuffer(settings: Settings, route: BatchRoute, report: Report, onEmpty: () => void) {
  const { flushAt, flushAfterMs, maxInFlight, maxQueued, maxQueuedBytes, whenFull } = settings
  const { clock } = route
  const waiting = createFifo<BufferedCall>()
  const pending = new Set<NumberedBatch>() // The oldest first.
  let waiters: readonly Waiter[] = []
  let added = 0 // Calls are numbered in this order.
  let dueBefore = 0 // Waiting calls with a lower number are to be posted.
  let held = 0 // Calls that are waiting or pending.
  let heldBytes = 0
  let isReportingDrop = false
  let isPosting = false
  let batches = 0
  let lastFlush = clock.monotonic()
  let timer: unknown

  const firstWaiting = (): number => added - waiting.size
  const isFull = ({ bytes }: BufferedCall): boolean => held >= maxQueued || heldBytes + bytes > maxQueuedBytes

  function release(calls: readonly BufferedCall[]): void {
    held -= calls.length
    for (const { bytes } of calls) heldBytes -= bytes
    if (held === 0) onEmpty()
  }

  /** Drops waiting calls, the oldest first, until the new call fits. Pending calls cannot be dropped. */
  function dropOldest(call: BufferedCall): readonly BufferedCall[] {
    const dropped: BufferedCall[] = []
    while (waiting.size > 0 && isFull(call)) {
      const oldest = waiting.shift() as BufferedCall
      release([oldest])
      dropped.push(oldest)
    }
    return dropped
  }

  function reportDrop(calls: readonly BufferedCall[]): void {
    if (log.enabled) log('dropped %d, while %d wait to be delivered', calls.length, held)
    isReportingDrop = true
    report({ error: new BatchError('queue_full', fullMessage(held, heldBytes)), calls })
    isReportingDrop = false
  }

  /** An interval without calls counts as a flush of none. */
  function untilNextFlush(): number {
    return flushAfterMs - ((clock.monotonic() - lastFlush) % flushAfterMs)
  }

  function startFlush(): void {
    if (timer !== undefined) clock.clearTimeout(timer)
    timer = undefined
    lastFlush = clock.monotonic()
    dueBefore = added
    if (isPosting) return
    isPosting = true
    queueMicrotask(() => {
      isPosting = false
      postDue()
    })
  }

  function postDue(): void {
    while (pending.size < maxInFlight && firstWaiting() < dueBefore) {
      const first = firstWaiting()
      // Calls that are not due yet fill the batch up.
      const posted = postBatch(route, waiting, flushAt, `batch ${++batches}`, (failures) => finish(batch, failures))
      const batch = { ...posted, first }
      pending.add(batch)
    }
  }

  function finish(batch: NumberedBatch, failures: readonly BatchFailure[]): void {
    pending.delete(batch)
    release(batch.calls)
    for (const failure of failures) report(failure)
    postDue()
    resolveWaiters()
  }

  function stop(): readonly BufferedCall[] {
    for (const batch of pending) batch.stop()
    const calls = [...pending].flatMap((batch) => batch.calls)
    for (let call = waiting.shift(); call !== undefined; call = waiting.shift()) calls.push(call)
    pending.clear()
    return calls
  }

  function resolveWaiters(): void {
    const [oldest] = pending
    const first = oldest?.first ?? firstWaiting()
    const done = waiters.filter(({ before }) => before <= first)
    waiters = waiters.filter(({ before }) => before > first)
    for (const { resolve } of done) resolve()
  }

  return {
    get size(): number {
      return held
    },
    /** Adds a call, and flushes when `flushAt` calls wait. Returns whether it was added. @throws HooklineError `queue_full`. */
    add(call: BufferedCall): boolean {
      let dropped: readonly BufferedCall[] = []
      if (isFull(call)) {
        // A call that onError records while calls are dropped would be dropped and reported in turn, without end.
        if (whenFull === 'throw' || isReportingDrop) throw new HooklineError('queue_full', fullMessage(held, heldBytes))
        dropped = dropOldest(call)
      }
      const isAdded = !isFull(call)
      if (isAdded) {
        waiting.push(call)
        added++
        held++
        heldBytes += call.bytes
      } else dropped = [...dropped, call]
      if (dropped.length > 0) reportDrop(dropped)
      if (!isAdded) return false
      if (added - Math.max(dueBefore, firstWaiting()) >= flushAt) startFlush()
      else timer ??= clock.setTimeout(startFlush, untilNextFlush())
      if (waiters.length > 0) resolveWaiters() // A flush may have waited for calls that were dropped.
      return true
    },
    /** Flushes. Resolves when every call added before is delivered, given up or dropped. Never rejects. */
    flush(): Promise<void> {
      startFlush()
      return new Promise((resolve) => {
        waiters = [...waiters, { before: added, resolve }]
        resolveWaiters()
      })
    },
    /** Stops posting: calls on their way wait again, before the others, for the next flush. */
    suspend(): void {
      for (const call of stop()) waiting.push(call)
      dueBefore = firstWaiting()
      if (waiting.size > 0) timer ??= clock.setTimeout(startFlush, untilNextFlush())
    },
    abort(): readonly BufferedCall[] {
      const calls = stop()
      release(calls)
      resolveWaiters()
      return calls
    },
  }
}

function fullMessage(held: number, bytes: number): string {
  return `The buffer of the client is full. Got ${count(held, 'undelivered call')} (${bytes} bytes). Raise \`maxQueued\` or \`maxQueuedBytes\`.`
}
