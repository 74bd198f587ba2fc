/** Decides when what waits is sent, in which batches, and who waits for that. */

import { createBacklog } from './backlog.ts'
import { writeBatch } from './batch.ts'
import { type Carrier, type Delivery, deliver, type Ending } from './delivery.ts'
import { reportEnding } from './ending.ts'
import type { Entry } from './entry.ts'
import type { Report } from './failure-report.ts'
import { log } from './log.ts'
import type { ClientSettings } from './options.ts'

/** The calls of a client, on their way out. */
export interface Outbox {
  /**
   * Lets one in. Returns false when it was dropped in place of others.
   *
   * @throws HooklineError `queue_full`.
   */
  add(entry: Entry): boolean
  /** Sends what waits. Resolves when everything added before is delivered or given up. Never rejects. */
  flush(): Promise<void>
  /** Stops what is on its way. Returns what is neither delivered nor given up, in order. */
  abort(): readonly Entry[]
}

interface Batch {
  /** The place of its first entry. */
  readonly place: number
  readonly entries: readonly Entry[]
  readonly delivery: Delivery
}

interface Waiter {
  /** Waits for the entries of all places before this. */
  readonly place: number
  readonly resolve: () => void
}

type Settings = Pick<
  ClientSettings,
  'flushAt' | 'flushAfterMs' | 'maxInFlight' | 'maxQueued' | 'maxQueuedBytes' | 'whenFull' | 'clock'
>

/** Makes one. It sends in a microtask of its own: recording a call is never slower, and never fails, because of it. */
export function createOutbox(settings: Settings, carrier: Carrier, report: Report): Outbox {
  const { flushAt, flushAfterMs, maxInFlight, clock } = settings
  const { timers } = carrier
  const backlog = createBacklog(settings, report)
  const batches = new Set<Batch>() // The oldest first.
  let waiters: readonly Waiter[] = []
  let duePlace = 0 // What waits before this place is to be sent.
  let sending = false
  let sent = 0
  let lastFlush = clock.monotonic()
  let timer: object | undefined

  /** An interval in which nothing was recorded counts as a flush of nothing. */
  function untilNextFlush(): number {
    return flushAfterMs - ((clock.monotonic() - lastFlush) % flushAfterMs)
  }

  function startFlush(): void {
    if (timer !== undefined) timers.clear(timer)
    timer = undefined
    lastFlush = clock.monotonic()
    duePlace = backlog.places
    if (sending) return
    sending = true
    queueMicrotask(() => {
      sending = false
      sendDue()
    })
  }

  function sendDue(): void {
    while (batches.size < maxInFlight && backlog.firstPlace < duePlace) sendBatch()
  }

  function sendBatch(): void {
    const place = backlog.firstPlace
    const entries = backlog.take(flushAt) // What is not due yet fills it up.
    const body = writeBatch(entries, clock.now())
    const name = `batch ${++sent}`
    if (log.enabled) log('%s: flushed, calls %d, bytes %d', name, entries.length, body.length)
    const delivery = deliver(carrier, name, body, (ending) => settle(batch, ending))
    const batch = { place, entries, delivery }
    batches.add(batch)
  }

  function settle(batch: Batch, ending: Ending): void {
    batches.delete(batch)
    backlog.settle(batch.entries)
    reportEnding(ending, batch.entries, report)
    sendDue()
    resolveWaiters()
  }

  function resolveWaiters(): void {
    const [oldest] = batches
    const place = oldest?.place ?? backlog.firstPlace
    const done = waiters.filter((waiter) => waiter.place <= place)
    waiters = waiters.filter((waiter) => waiter.place > place)
    for (const { resolve } of done) {
      timers.release()
      resolve()
    }
  }

  return {
    add(entry) {
      if (!backlog.add(entry)) return false
      if (backlog.places - Math.max(duePlace, backlog.firstPlace) >= flushAt) startFlush()
      else timer ??= timers.set(startFlush, untilNextFlush())
      if (waiters.length > 0) resolveWaiters() // Room may have been made by dropping what somebody waits for.
      return true
    },
    flush() {
      startFlush()
      return new Promise((resolve) => {
        timers.hold()
        waiters = [...waiters, { place: backlog.places, resolve }]
        resolveWaiters()
      })
    },
    abort() {
      for (const { delivery } of batches) delivery.stop()
      const underWay = [...batches].flatMap(({ entries }) => entries)
      const entries = [...underWay, ...backlog.empty()]
      batches.clear()
      backlog.settle(entries)
      resolveWaiters()
      return entries
    },
  }
}
