/** The queues of a file: their counts and next numbers, read when a transaction needs them and written when it ends; their uses. */

import type { DatabaseSync } from 'node:sqlite'
import { inTransaction, UnusableFile } from '../../sqlite/file.ts'
import { listNames, servesOther } from '../use.ts'
import type { QueueSettings } from './rpc.ts'

/** The phases of a job: due, waiting for its time, claimed, or a dead letter. Stored, so the numbers stay. */
export const PHASE = { due: 0, later: 1, claimed: 2, deadLetter: 3 } as const

/** The row of one queue, during a transaction. */
export interface QueueRow {
  readonly queue: number
  readonly name: string
  /** The next number: of a job, or of a place. */
  next: number
  waiting: number
  active: number
  deadLetters: number
}

/** The rows of the queues of one file. */
export interface Counts {
  /** Adds the queues that are not in the file yet, and counts their jobs. */
  enter(names: readonly string[]): void
  /** @throws UnusableFile that lists the queues that are in the file. */
  find(name: string): QueueRow
  /** All that are in the file. */
  names(): string[]
  /** Begins a transaction: forgets the rows of the one before, which another process may have changed. */
  begin(): void
  /** Of a queue that was entered. */
  numberOf(name: string): number
  rowOf(name: string): QueueRow
  rowAt(queue: number): QueueRow
  /** Writes the rows that changed. */
  save(): void
}

/** Creates it over an open file. */
export function createCounts(database: DatabaseSync): Counts {
  const insert = database.prepare(`
    INSERT INTO hookline_queues (name, next, waiting, active, dead_letters) VALUES (?, 1, 0, 0, 0)
    ON CONFLICT (name) DO NOTHING`)
  const recount = database.prepare(`
    UPDATE hookline_queues AS q SET
      waiting = (SELECT count(*) FROM hookline_queue_jobs WHERE queue = q.queue AND phase = ${PHASE.due})
              + (SELECT count(*) FROM hookline_queue_jobs WHERE queue = q.queue AND phase = ${PHASE.later}),
      active = (SELECT count(*) FROM hookline_queue_jobs WHERE queue = q.queue AND phase = ${PHASE.claimed}),
      dead_letters = (SELECT count(*) FROM hookline_queue_jobs WHERE queue = q.queue AND phase = ${PHASE.deadLetter})
    WHERE name = ? RETURNING queue`)
  const read = database.prepare(`
    SELECT queue, name, next, waiting, active, dead_letters AS deadLetters FROM hookline_queues WHERE queue = ?`)
  const write = database.prepare(`
    UPDATE hookline_queues SET next = ?, waiting = ?, active = ?, dead_letters = ? WHERE queue = ?`)
  const find = database.prepare('SELECT queue FROM hookline_queues WHERE name = ?')
  const names = (): string[] => {
    const list = database.prepare('SELECT name FROM hookline_queues ORDER BY queue')
    return list.all().map(({ name }) => `${name}`)
  }
  const numbers = new Map<string, number>()
  const rows = new Map<number, { readonly row: QueueRow; readonly before: string }>()

  function rowAt(queue: number): QueueRow {
    const loaded = rows.get(queue)
    if (loaded !== undefined) return loaded.row
    const found = read.get(queue)
    if (found === undefined) {
      throw new UnusableFile('the queue is no longer in it. Got no row for it. Create the queue again.')
    }
    const row = { ...found } as unknown as QueueRow
    rows.set(queue, { row, before: print(row) })
    return row
  }

  return {
    enter(names) {
      const missing = names.filter((name) => !numbers.has(name))
      if (missing.length === 0) return
      const entered = inTransaction(database, () =>
        missing.map((name) => {
          insert.run(name)
          return [name, Number(recount.get(name)?.queue)] as const
        }),
      )
      for (const [name, queue] of entered) numbers.set(name, queue)
    },
    find(name) {
      const found = find.get(name)
      if (found !== undefined) return rowAt(found.queue as number)
      const advice = 'Check the name, or start what pushes to it first.'
      throw new UnusableFile(`it does not have this queue. Got ${listNames(names())}. ${advice}`)
    },
    names,
    begin: () => rows.clear(),
    numberOf: (name) => numbers.get(name) as number,
    rowOf: (name) => rowAt(numbers.get(name) as number),
    rowAt,
    save() {
      for (const { row, before } of rows.values()) {
        if (print(row) !== before) write.run(row.next, row.waiting, row.active, row.deadLetters, row.queue)
      }
    },
  }
}

function print({ next, waiting, active, deadLetters }: QueueRow): string {
  return `${next} ${waiting} ${active} ${deadLetters}`
}

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
