/** A clock that runs as fast as the machine: time is the next timer's. */

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Clock } from 'hookline'

export interface VirtualClock extends Clock {
  /** Runs until this time, in milliseconds since the clock's start. */
  runTo(ms: number): Promise<void>
}

interface Timer {
  isSet: boolean
  readonly callback: () => void
}

/** Timers of one time are kept together: a day has more than a hundred million. */
export function createVirtualClock(start: number): VirtualClock {
  const timers = new Map<number, Timer[]>()
  const times: number[] = [] // A heap, the earliest first.
  let now = start

  function push(time: number): void {
    let index = times.length
    while (index > 0) {
      const parent = (index - 1) >> 1
      if ((times[parent] as number) <= time) break
      times[index] = times[parent] as number
      index = parent
    }
    times[index] = time
  }

  function pop(): void {
    const last = times.pop() as number
    if (times.length === 0) return
    let index = 0
    for (;;) {
      let child = 2 * index + 1
      if (child >= times.length) break
      if (child + 1 < times.length && (times[child + 1] as number) < (times[child] as number)) child += 1
      if ((times[child] as number) >= last) break
      times[index] = times[child] as number
      index = child
    }
    times[index] = last
  }

  return {
    now: () => now,
    monotonic: () => now - start,
    setTimeout(callback, ms) {
      const time = Math.max(now, Math.ceil(now + ms))
      const timer = { isSet: true, callback }
      const others = timers.get(time)
      if (others !== undefined) others.push(timer)
      else {
        timers.set(time, [timer])
        push(time)
      }
      return timer
    },
    clearTimeout(timer) {
      if (timer !== undefined) (timer as Timer).isSet = false
    },
    async runTo(ms) {
      for (let time = times[0]; time !== undefined && time <= start + ms; time = times[0]) {
        pop()
        now = time
        const due = timers.get(time) as Timer[]
        timers.delete(time)
        for (const timer of due) if (timer.isSet) timer.callback()
        await nextTurn()
        await nextTurn() // A worker that has claimed much goes on a turn later.
      }
      now = start + ms
    },
  }
}
