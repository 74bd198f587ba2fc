/** The inbox and the outbox of the demo: two SQLite files, so that it can be killed at any moment. */

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Queue } from 'hookline/queues'
import { sqliteQueue } from 'hookline/queues/sqlite'

/** The queues of the demo, and where they are. */
export interface Storage {
  readonly folder: string
  /** Messages that the destination has to deliver. */
  readonly outbox: Queue
  /** Messages that the receiver has accepted and has to handle. */
  readonly inbox: Queue
  /** How many messages the demo before this one left in each. */
  readonly left: { readonly outbox: number; readonly inbox: number }
}

/** Opens both in the folder DATA, by default `demo-data`. */
export async function openStorage(): Promise<Storage> {
  const folder = process.env.DATA || 'demo-data'
  mkdirSync(folder, { recursive: true })
  const outbox = sqliteQueue({ path: join(folder, 'outbox.sqlite'), name: 'outbox' })
  const inbox = sqliteQueue({ path: join(folder, 'inbox.sqlite'), name: 'inbox' })
  return { folder, outbox, inbox, left: { outbox: await countLeft(outbox), inbox: await countLeft(inbox) } }
}

async function countLeft(queue: Queue): Promise<number> {
  const { waiting, active } = await queue.counts()
  return waiting + active
}
