/** How many jobs a queue has, and its next number: read when a transaction begins, written when it ends. */

import type { DatabaseSync } from 'node:sqlite'

/** The figures of one queue. */
export interface Tally {
  next: number
  waiting: number
  active: number
  dead: number
  /** Reads them, in a transaction. */
  load(): void
  /** Writes them where they changed. */
  save(): void
}

/** Makes it over an open file. */
export function createTally(database: DatabaseSync, queue: number): Tally {
  const read = database.prepare('SELECT next, waiting, active, dead FROM hookline_queues WHERE queue = ?')
  const write = database.prepare(
    'UPDATE hookline_queues SET next = ?, waiting = ?, active = ?, dead = ? WHERE queue = ?',
  )
  let before = ''
  const tally: Tally = {
    next: 1,
    waiting: 0,
    active: 0,
    dead: 0,
    load() {
      const row = read.get(queue)
      if (row === undefined) throw new Error('the queue is no longer in its file')
      Object.assign(tally, row)
      before = print()
    },
    save() {
      if (print() !== before) write.run(tally.next, tally.waiting, tally.active, tally.dead, queue)
    },
  }
  const print = (): string => `${tally.next} ${tally.waiting} ${tally.active} ${tally.dead}`
  return tally
}
