/** What is under way on real sockets: requests that the collector answers, and rounds of the destination. */

import { setImmediate as nextTurn } from 'node:timers/promises'
import { within } from '../../time/timeout.ts'
import { machineClock } from './machine-clock.ts'

/** What is under way. */
export interface Activity {
  readonly isBusy: boolean
  /** Notes work until it ends. */
  track<T>(work: Promise<T>): Promise<T>
  /** Resolves when nothing is under way but what has taken so many milliseconds, and nothing follows from what has ended. */
  calm(timeoutMs: number): Promise<void>
}

/** So many turns of the event loop without work: what has ended has had its effects. */
const CALM_TURNS = 4

/** Creates an activity, with nothing under way. */
export function createActivity(): Activity {
  const works = new Map<Promise<unknown>, number>()

  return {
    get isBusy() {
      return works.size > 0
    },
    async track(work) {
      works.set(work, machineClock.monotonic())
      try {
        return await work
      } finally {
        works.delete(work)
      }
    },
    async calm(timeoutMs) {
      for (let turns = 0; turns < CALM_TURNS; turns += 1) {
        const ages = [...works].map(([work, since]) => [work, machineClock.monotonic() - since] as const)
        const [work, age] = ages.find(([, age]) => age < timeoutMs) ?? []
        if (work === undefined) await nextTurn()
        else {
          turns = -1
          await within(
            work.catch(() => {}),
            timeoutMs - (age ?? 0),
            machineClock,
          )
        }
      }
    },
  }
}
