/** The inbox and the outboxes of the demo: in files, so that it can be killed at any moment. */

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Queue } from 'hookline/queues'
import { sqliteQueue } from 'hookline/queues/sqlite'

/** The queues of the demo, and where they are. */
export interface Storage {
  readonly folder: string
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
  const [outbox, warehouse, inbox] = ['outbox', 'warehouse', 'inbox'].map(
    (name): Queue =>
      // Only this process has jobs for them: it need not look often for those of others.
      sqliteQueue({ path: join(folder, `${name}.sqlite`), name, pollMs: 10_000 }),
  ) as [Queue, Queue, Queue]
  const left = { outbox: await countLeft(outbox), inbox: await countLeft(inbox) }
  return { folder, outbox, warehouse, inbox, left }
}

async function countLeft(queue: Queue): Promise<number> {
  const { waiting, active } = await queue.counts()
  return waiting + active
}
