/** The inbox, the outboxes and the clock of the demo: in files, so that it can be killed at any moment. */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Queue } from 'hookline/queues'
import { sqliteQueue } from 'hookline/queues/sqlite'
import { type ManualClock, manualClock } from 'hookline/testing'

/** The queues and the clock of the demo, and where they are. */
export interface Storage {
  readonly folder: string
  readonly clock: ManualClock
  /** How far it is ahead of the machine's, because the page moved it: what waits is due by this one. */
  readonly aheadMs: number
  /** Messages that the destination has to deliver. */
  readonly outbox: Queue
  /** The same of the destination that is a warehouse. */
  readonly warehouse: Queue
  /** Messages that the receiver has accepted and has to handle. */
  readonly inbox: Queue
  /** How many messages the demo before this one left in the outbox and the inbox. */
  readonly left: { readonly outbox: number; readonly inbox: number }
}

/** Opens them in the folder DATA, by default `demo-data`. */
export async function openStorage(): Promise<Storage> {
  const folder = process.env.DATA || 'demo-data'
  mkdirSync(folder, { recursive: true })
  const { clock, aheadMs } = openClock(join(folder, 'clock'))
  const [outbox, warehouse, inbox] = ['outbox', 'warehouse', 'inbox'].map(
    (name): Queue =>
      // Only this process has jobs for them: it need not look often for those of others.
      sqliteQueue({ path: join(folder, `${name}.sqlite`), name, clock, pollMs: 10_000 }),
  ) as [Queue, Queue, Queue]
  const left = { outbox: await countLeft(outbox), inbox: await countLeft(inbox) }
  return { folder, clock, aheadMs, outbox, warehouse, inbox, left }
}

/** Starts at the time of the machine, or where the page has moved it: a file says where, each second. */
function openClock(path: string): Pick<Storage, 'clock' | 'aheadMs'> {
  const now = Date.now()
  let moved = 0
  try {
    moved = Number(readFileSync(path, 'utf8')) || 0
  } catch {} // It was never moved.
  const clock = manualClock(Math.max(now, moved))
  const save = (): void => {
    if (clock.now() > Date.now()) writeFileSync(path, String(clock.now() + SAVE_EVERY_MS))
  }
  setInterval(save, SAVE_EVERY_MS).unref()
  follow(clock)
  return { clock, aheadMs: clock.now() - now }
}

const SAVE_EVERY_MS = 1_000

/** Moves a clock along with that of the machine. */
function follow(clock: ManualClock): void {
  let since = performance.now()
  const move = (): void => {
    const ms = Math.floor(performance.now() - since)
    since += ms
    void clock.advance(Math.min(ms, MAX_MS))
  }
  setInterval(move, 10).unref()
}

/** At once: a computer that slept does not make up for it. */
const MAX_MS = 1_000

async function countLeft(queue: Queue): Promise<number> {
  const { waiting, active } = await queue.counts()
  return waiting + active
}
