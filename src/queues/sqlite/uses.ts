/** What the queues of a file are reserved for. */

import type { DatabaseSync } from 'node:sqlite'
import { HooklineError } from '../../message/error.ts'
import { cannotUse } from '../../sqlite/advice.ts'
import { servesOther } from '../use.ts'
import type { QueueSettings } from './rpc.ts'
import { inFile } from './tables.ts'

/** A queue, and what it is reserved for, if it is. */
export type Reservation = Pick<QueueSettings, 'name' | 'use'>

/**
 * Creates a function that keeps a queue for its use, over an open file. The first to reserve it says what it is for.
 *
 * @throws HooklineError (the function) `queue_unavailable` when the queue has another use.
 */
export function createReserve(database: DatabaseSync): (reservation: Reservation) => void {
  const insert = database.prepare('INSERT OR IGNORE INTO hookline_queue_uses (name, use) VALUES (?, ?)')
  const read = database.prepare('SELECT use FROM hookline_queue_uses WHERE name = ?')
  const known = new Set<string>()

  return ({ name, use }) => {
    const key = `${use} ${name}`
    if (use === undefined || known.has(key)) return
    if (read.get(name) === undefined) insert.run(name, use)
    const found = read.get(name)?.use
    if (found !== use) throw servesOther(name, `${found}`, use)
    known.add(key)
  }
}

/**
 * The same in a file that is not open here, so that another use is refused when the queue is given to it.
 *
 * @throws HooklineError `queue_unavailable`, also when the file cannot be used.
 */
export function reserveInFile(path: string, reservation: Reservation): void {
  try {
    inFile(path, (database) => createReserve(database)(reservation))
  } catch (cause) {
    if (cause instanceof HooklineError) throw cause
    throw new HooklineError('queue_unavailable', cannotUse(`Queue ${reservation.name}`, path, cause), { cause })
  }
}
