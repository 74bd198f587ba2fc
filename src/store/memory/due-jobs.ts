/**
 * The order of the jobs of a queue in memory. Due jobs are handled first in, first out, one job of each group at a time. Jobs that are not
 * due yet are in a heap, ordered by their times.
 */

import type { Clock } from '../../kit/clock.ts'
import { createFifo, type Fifo } from '../../kit/fifo.ts'
import { createTimeHeap } from './time-heap.ts'

export interface Waiting {
  readonly group: string | undefined
  dueAt: number
  /** Whether the job is the first of its group: it is due, is claimed, or waits for its retry. The other jobs wait for it. */
  isFirst: boolean
  /** The position of the job in the order of the due jobs. */
  place: number
}

export class DueJobs<Entry extends Waiting> {
  readonly #clock: Clock
  readonly #due = createFifo<Entry>()
  /**
   * The due jobs that used to wait behind other jobs of their groups, ordered by `place`. They are kept apart, because they may belong
   * before jobs in `#due`.
   */
  readonly #advanced = createTimeHeap<Entry>()
  readonly #later = createTimeHeap<Entry>()
  /** The jobs that wait behind the first job of each group, keyed by group. */
  readonly #behind = new Map<string, Fifo<Entry>>()
  #places = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** How many jobs are due, as of the last {@link moveDue}. */
  get size(): number {
    return this.#due.size + this.#advanced.size
  }

  /** Adds a job, behind the jobs that are already due. */
  add(entry: Entry): void {
    this.moveDue()
    if (entry.dueAt <= this.#clock.now()) this.#join(entry)
    else this.#later.push(entry, entry.dueAt)
  }

  /** Moves the jobs whose time has come to the due jobs. */
  moveDue(): void {
    const now = this.#clock.now()
    for (let at = this.#later.nextAt(); at !== undefined && at <= now; at = this.#later.nextAt()) {
      const entry = this.#later.pop()
      if (entry !== undefined) this.#join(entry)
    }
  }

  /** Removes and returns the first due job. */
  shift(): Entry | undefined {
    const place = this.#advanced.nextAt()
    const isAdvanced = place !== undefined && place < (this.#due.peek()?.place ?? Number.POSITIVE_INFINITY)
    return isAdvanced ? this.#advanced.pop() : this.#due.shift()
  }

  /** Makes the next job of a group due, if the given job was the first one. Call this when the job has ended or was removed. */
  leaveGroup(entry: Entry): void {
    const { group } = entry
    if (group === undefined || !entry.isFirst) return
    entry.isFirst = false
    const next = this.#behind.get(group)?.shift()
    if (next === undefined) return void this.#behind.delete(group)
    next.isFirst = true
    this.#advanced.push(next, next.place)
  }

  filter(keep: (entry: Entry) => boolean): void {
    for (const jobs of [this.#due, this.#advanced, this.#later, ...this.#behind.values()]) jobs.filter(keep)
  }

  /** Returns the time at which the next job comes due; undefined if no job comes due later. */
  laterAt(): number | undefined {
    return this.#later.nextAt()
  }

  /** Returns the time at which the oldest due job came due; undefined if no job is due. */
  oldestDueAt(): number | undefined {
    const dueAt = [this.#due.peek(), this.#advanced.peek()].flatMap((entry) => entry?.dueAt ?? [])
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
