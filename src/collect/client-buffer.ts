/** Buffers the recorded calls that are not delivered yet, and decides when they are flushed ("Go client library", Limits). */

import { createFifo } from '../kit/fifo.ts'
import { HooklineError } from '../protocol/error.ts'
import { BatchError, type BatchFailure, count } from './batch-result.ts'
import { type BatchRoute, CALLS_BYTES, postBatch } from './client-batch.ts'
import type { ClientSettings } from './client-options.ts'
import { log, type Report } from './client-report.ts'
import type { BufferedCall } from './recorded-call.ts'

/** Calls that are being posted. */
interface PendingBatch {
  readonly first: number
  readonly calls: readonly BufferedCall[]
  readonly stop: () => void
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
  const pending = new Set<PendingBatch>() // The oldest first.
  let change = Promise.withResolvers<void>() // Resolves when calls were delivered, given up or dropped.
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
  const firstHeld = (): number => [...pending][0]?.first ?? firstWaiting()
  const isFull = ({ bytes }: BufferedCall): boolean => held >= maxQueued || heldBytes + bytes > maxQueuedBytes

  /** Adds a call, and flushes when `flushAt` calls wait. Returns whether it was added. @throws HooklineError `queue_full`. */
  function add(call: BufferedCall): boolean {
    const dropped = isFull(call) ? makeRoom(call) : []
    const isAdded = !isFull(call)
    if (isAdded) hold(call)
    else dropped.push(call)
    if (dropped.length > 0) reportDrop(dropped)
    if (isAdded) flushWhenDue()
    return isAdded
  }

  /** Drops waiting calls, the oldest first, until the new call fits. Pending calls cannot be dropped. */
  function makeRoom(call: BufferedCall): BufferedCall[] {
    // A call that onError records while calls are dropped would be dropped and reported in turn, without end.
    if (whenFull === 'throw' || isReportingDrop) throw new HooklineError('queue_full', fullMessage(held, heldBytes))
    const dropped: BufferedCall[] = []
    while (waiting.size > 0 && isFull(call)) {
      const oldest = waiting.shift() as BufferedCall
      release([oldest])
      dropped.push(oldest)
    }
    return dropped
  }

  function hold(call: BufferedCall): void {
    waiting.push(call)
    added++
    held++
    heldBytes += call.bytes
  }

  function release(calls: readonly BufferedCall[]): void {
    held -= calls.length
    for (const { bytes } of calls) heldBytes -= bytes
    if (held === 0) onEmpty()
    change.resolve()
    change = Promise.withResolvers()
  }

  function reportDrop(calls: readonly BufferedCall[]): void {
    if (log.enabled) log('dropped %d, while %d wait to be delivered', calls.length, held)
    isReportingDrop = true
    report({ error: new BatchError('queue_full', fullMessage(held, heldBytes)), calls })
    isReportingDrop = false
  }

  function flushWhenDue(): void {
    if (added - Math.max(dueBefore, firstWaiting()) >= flushAt) startFlush()
    else timer ??= clock.setTimeout(startFlush, untilNextFlush())
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
      const calls = takeCalls()
      const stop = postBatch(route, calls, `batch ${++batches}`, (failures) => finish(batch, failures))
      const batch = { first, calls, stop }
      pending.add(batch)
    }
  }

  /** Takes the calls of one batch. Those that are not due yet fill it up. */
  function takeCalls(): readonly BufferedCall[] {
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

  function finish(batch: PendingBatch, failures: readonly BatchFailure[]): void {
    pending.delete(batch)
    release(batch.calls)
    for (const failure of failures) report(failure)
    postDue()
  }

  /** Stops posting. Returns what is held, the oldest first. */
  function stop(): readonly BufferedCall[] {
    for (const batch of pending) batch.stop()
    const calls = [...pending].flatMap((batch) => batch.calls)
    for (let call = waiting.shift(); call !== undefined; call = waiting.shift()) calls.push(call)
    pending.clear()
    return calls
  }

  return {
    get size(): number {
      return held
    },
    add,
    /** Flushes. Resolves when every call added before is delivered, given up or dropped. Never rejects. */
    async flush(): Promise<void> {
      const before = added
      startFlush()
      while (firstHeld() < before) await change.promise
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
      return calls
    },
  }
}

function fullMessage(held: number, bytes: number): string {
  return `The buffer of the client is full. Got ${count(held, 'undelivered call')} (${bytes} bytes). Raise \`maxQueued\` or \`maxQueuedBytes\`.`
}
