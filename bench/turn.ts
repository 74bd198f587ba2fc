/** What one turn of a contender takes of its own process. */

import { PerformanceObserver } from 'node:perf_hooks'
import { setImmediate as nextTurn } from 'node:timers/promises'

/** What a contender reports of its turn. */
export interface Turn {
  readonly messages: number
  /** From the first message to the end of the last. */
  readonly seconds: number
  /** User and system time of the process, all its threads, in µs. */
  readonly cpu: number
  /** Time that the garbage collector held the process up, in µs. */
  readonly gc: number
  /** How often it did. */
  readonly pauses: number
  /** What else a contender counts. */
  readonly [figure: string]: number
}

let gc = 0
let pauses = 0

const observer = new PerformanceObserver((list) => count(list.getEntries()))
observer.observe({ entryTypes: ['gc'] })

function count(entries: readonly { readonly duration: number }[]): void {
  for (const { duration } of entries) gc += duration * 1000
  pauses += entries.length
}

/** Begins a turn. Returns what ends it. */
export function beginTurn(messages: number): () => Promise<Turn> {
  const before = { gc, pauses, cpu: process.cpuUsage(), start: performance.now() }
  return async () => {
    const seconds = (performance.now() - before.start) / 1000
    const { user, system } = process.cpuUsage(before.cpu)
    await nextTurn() // The last pauses are entered in the next turn of the event loop.
    count(observer.takeRecords())
    return { messages, seconds, cpu: user + system, gc: gc - before.gc, pauses: pauses - before.pauses }
  }
}
