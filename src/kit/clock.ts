/** Defines the clock that is passed to code that reads the time or waits, so that tests can control the time. */

/** A clock, with timers. Tests pass a manual clock. */
export interface Clock {
  /** Returns the time in milliseconds since the epoch. */
  now(): number
  /**
   * Returns the milliseconds since an arbitrary time. The result never goes back, even when the machine's clock is set. Use it for
   * durations.
   */
  monotonic(): number
  /** Calls `callback` once, after `ms` milliseconds. Returns the handle for {@link Clock.clearTimeout}. */
  setTimeout(callback: () => void, ms: number): unknown
  /** Cancels a timer; does nothing if it has already fired. */
  clearTimeout(timer: unknown): void
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimeout: (callback, ms) => setTimeout(callback, ms),
  clearTimeout: (timer: NodeJS.Timeout) => clearTimeout(timer),
}

/** Returns a clock whose timers do not keep the process alive. */
export function inBackground(clock: Clock): Clock {
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    // The timer is wrapped so that createDeadlines finds no `ref`, which it would call to keep the process alive.
    setTimeout: (callback, ms) => ({ timer: unref(clock.setTimeout(callback, ms)) }),
    clearTimeout: (handle?: { readonly timer: unknown }) => clock.clearTimeout(handle?.timer),
  }
}

/** The maximum wait of a Node.js timer, in milliseconds. With a longer wait, a timer fires immediately. */
export const MAX_TIMER_MS: number = 2 ** 31 - 1

/** Lets the process end while the timer waits. Does nothing for timers without `unref`. */
export function unref<Timer>(timer: Timer): Timer {
  if (typeof timer === 'object' && timer !== null && 'unref' in timer && typeof timer.unref === 'function')
    timer.unref()
  return timer
}
