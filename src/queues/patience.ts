/** How long to wait: for an engine that is away, and for what must end in time. */

import type { Clock } from '../protocol/clock.ts'

/** Waiting, by one clock. */
export interface Patience {
  /** How long to wait after so many failures before this one, in milliseconds: 0.5 seconds, doubling up to 30. */
  delayAfter(failures: number): number
  /** Waits that long, or until the end. */
  wait(failures: number): Promise<void>
  /** Waits for a promise, at most so many milliseconds. */
  waitFor(promise: Promise<unknown>, ms: number): Promise<void>
}

/** Makes it; at the end nobody waits any longer. */
export function createPatience(clock: Clock, end: AbortSignal): Patience {
  function delayAfter(failures: number): number {
    return Math.min(FIRST_MS * 2 ** failures, LONGEST_MS)
  }

  async function waitFor(promise: Promise<unknown>, ms: number): Promise<void> {
    let timer: unknown
    const over = new Promise<void>((resolve) => {
      timer = clock.setTimeout(resolve, ms)
    })
    await Promise.race([promise, over])
    clock.clearTimeout(timer)
  }

  async function wait(failures: number): Promise<void> {
    if (end.aborted) return
    let stop = (): void => {}
    const ended = new Promise<void>((resolve) => {
      stop = resolve
    })
    end.addEventListener('abort', stop)
    await waitFor(ended, delayAfter(failures))
    end.removeEventListener('abort', stop)
  }

  return { delayAfter, wait, waitFor }
}

const FIRST_MS = 500
const LONGEST_MS = 30_000
