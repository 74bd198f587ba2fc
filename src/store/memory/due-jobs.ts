/** The order of the jobs of a queue in memory: due ones first in, first out, one of each group at a time; the others in a heap. */

import type { Clock } from '../../kit/clock.ts'
import { createFifo, type Fifo } from '../../kit/fifo.ts'
import { createTimeHeap } from './time-heap.ts'

export interface Waiting {
  readonly group: string | undefined
  dueAt: number
  /** Whether the others of its group wait behind it: it is due, claimed or held. */
  isFirst: boolean
  /** Its place among those that are due. */
  place: number
}

export class DueJobs<Entry extends Waiting> {
  readonly #clock: Clock
  readonly #due = createFifo<Entry>()
  /** Due, too: those that were behind others of their groups, by their places. */
  readonly #next = createTimeHeap<Entry>()
  readonly #later = createTimeHeap<Entry>()
  /** By group, while one of its jobs is due, claimed or held. */
  readonly #behind = new Map<string, Fifo<Entry>>()
  #places = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** How many are due, as of the last {@link moveDue}. */
  get size(): number {
    return this.#due.size + this.#next.size
  }

  /** A job that comes due goes behind those that are due by then. */
  add(entry: Entry): void {
    this.moveDue()
    if (entry.dueAt <= this.#clock.now()) this.#join(entry)
    else this.#later.push(entry, entry.dueAt)
  }

  /** Makes those due whose time has come. */
  moveDue(): void {
    const now = this.#clock.now()
    for (let at = this.#later.nextAt(); at !== undefined && at <= now; at = this.#later.nextAt()) {
      const entry = this.#later.pop()
      if (entry !== undefined) this.#join(entry)
    }
  }

  /** Removes the first of those that are due. */
  shift(): Entry | undefined {
    const place = this.#next.nextAt()
    const isNext = place !== undefined && place < (this.#due.peek()?.place ?? Number.POSITIVE_INFINITY)
    return isNext ? this.#next.pop() : this.#due.shift()
  }

  /** Lets the next one of its group be due, when it was the first one. */
  leave(entry: Entry): void {
    const { group } = entry
    if (group === undefined || !entry.isFirst) return
    entry.isFirst = false
    const first = this.#behind.get(group)?.shift()
    if (first === undefined) return void this.#behind.delete(group)
    first.isFirst = true
    this.#next.push(first, first.place)
  }

  filter(stays: (entry: Entry) => boolean): void {
    for (const jobs of [this.#due, this.#next, this.#later, ...this.#behind.values()]) jobs.filter(stays)
  }

  /** When the next one comes due that is not due yet. */
  laterAt(): number | undefined {
    return this.#later.nextAt()
  }

  /** When the one came due that has been due longest, undefined when none is due. */
  oldestDueAt(): number | undefined {
    const dueAt = [this.#due.peek(), this.#next.peek()].flatMap((entry) => entry?.dueAt ?? [])
    return dueAt.length === 0 ? undefined : Math.min(...dueAt)
  }

  #join(entry: Entry): void {
    const { group, isFirst } = entry
    entry.place = this.#places++
    if (group === undefined || isFirst) return void this.#due.push(entry)
    const line = this.#behind.get(group)
    if (line !== undefined) return void line.push(entry)
    this.#behind.set(group, createFifo())
    entry.isFirst = true
    this.#due.push(entry)
  }
}
