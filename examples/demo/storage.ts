/** Where the demo keeps its inbox and its outbox: two SQLite files, so that it can be killed at any moment. */

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Queue } from 'hookline/queues/memory'
import { sqliteQueue } from 'hookline/queues/sqlite'

/** The queues of the demo, and where they are. */
export interface Storage {
  readonly folder: string
  /** Messages that the destination has to deliver. */
  readonly outbox: Queue
  /** Messages that the receiver has answered for, and has to hand to its handlers. */
  readonly inbox: Queue
  /** How many messages the demo before this one left in each. */
  readonly left: { readonly outbox: number; readonly inbox: number }
}

/** Opens both in the folder DATA, by default `demo-data`. */
export async function openStorage(): Promise<Storage> {
  const folder = process.env.DATA || 'demo-data'
  mkdirSync(folder, { recursive: true })
  // What was under way when the demo was killed goes on after this time.
  const leaseMs = 2_000
  const outbox = sqliteQueue({ path: join(folder, 'outbox.sqlite'), name: 'outbox', leaseMs })
  const inbox = sqliteQueue({ path: join(folder, 'inbox.sqlite'), name: 'inbox', leaseMs })
  return { folder, outbox, inbox, left: { outbox: await countLeft(outbox), inbox: await countLeft(inbox) } }
}

async function countLeft(queue: Queue): Promise<number> {
  const { waiting, active } = await queue.counts()
  return waiting + active
}
