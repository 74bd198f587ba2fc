/** The calls that are recorded and not delivered yet: how many there may be, and what gives way when there is no room. */

import { HooklineError } from '../protocol/error.ts'
import { createFifo } from '../queues/fifo.ts'
import { takeBatch } from './batch.ts'
import { DeliveryError } from './delivery-error.ts'
import type { Entry } from './entry.ts'
import type { Report } from './failure-report.ts'
import { log } from './log.ts'
import type { ClientSettings } from './options.ts'

/** The calls of a client, first in, first out. */
export interface Backlog {
  /** How many came before the first one that waits. Places never change. */
  readonly firstPlace: number
  /** How many came in at all. */
  readonly places: number
  /**
   * Lets one in. Returns false when it was dropped in place of others.
   *
   * @throws HooklineError `queue_full`.
   */
  add(entry: Entry): boolean
  /** Takes the entries of the next batch; they count until {@link settle}. */
  take(most: number): readonly Entry[]
  /** These are delivered or given up. */
  settle(entries: readonly Entry[]): void
  /** Takes all that wait. */
  empty(): readonly Entry[]
}

type Bounds = Pick<ClientSettings, 'maxQueued' | 'maxQueuedBytes' | 'whenFull'>

/** Makes an empty one. */
export function createBacklog({ maxQueued, maxQueuedBytes, whenFull }: Bounds, report: Report): Backlog {
  const line = createFifo<Entry>()
  let places = 0
  let held = 0
  let heldBytes = 0
  let dropping = false

  const isFull = (entry: Entry): boolean => held >= maxQueued || heldBytes + entry.bytes > maxQueuedBytes

  function release({ bytes }: Entry): void {
    held--
    heldBytes -= bytes
  }

  function drop(entries: readonly Entry[]): void {
    if (log.enabled) log('dropped %d, while %d wait to be delivered', entries.length, held)
    const message = `no room beside ${held} that wait to be delivered.`
    dropping = true
    report(new DeliveryError('queue_full', message), entries)
    dropping = false
  }

  /** Drops the oldest until there is room. What is on its way already cannot give way. */
  function dropOldest(entry: Entry): readonly Entry[] {
    const dropped: Entry[] = []
    while (isFull(entry)) {
      const oldest = line.shift()
      if (oldest === undefined) break
      release(oldest)
      dropped.push(oldest)
    }
    return dropped
  }

  return {
    get firstPlace() {
      return places - line.size
    },
    get places() {
      return places
    },
    add(entry) {
      let dropped: readonly Entry[] = []
      if (isFull(entry)) {
        // What onError records again of what is dropped would be dropped again, and told, and so on.
        if (whenFull === 'throw' || dropping) throw queueFull(held, heldBytes)
        if (whenFull === 'drop-oldest') dropped = dropOldest(entry)
      }
      const fits = !isFull(entry)
      if (fits) {
        line.push(entry)
        places++
        held++
        heldBytes += entry.bytes
      } else dropped = [...dropped, entry]
      if (dropped.length > 0) drop(dropped)
      return fits
    },
    take: (most) => takeBatch(line, most),
    settle(entries) {
      for (const entry of entries) release(entry)
    },
    empty() {
      const entries: Entry[] = []
      for (let entry = line.shift(); entry !== undefined; entry = line.shift()) entries.push(entry)
      return entries
    },
  }
}

function queueFull(held: number, bytes: number): HooklineError {
  const message = `${held} calls (${bytes} bytes) wait to be delivered already. See whenFull, maxQueued and maxQueuedBytes.`
  return new HooklineError('queue_full', message)
}
