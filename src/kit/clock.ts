/** Time as an argument: what reads the time or waits takes a clock. */

/** The time and its timers. Tests pass a manual one. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Milliseconds since an arbitrary time. Never goes back, also when the machine's clock is set. Measures ages. */
  monotonic(): number
  /** Calls `callback` once, `ms` milliseconds from now. Returns what {@link clearTimeout} takes. */
  setTimeout(callback: () => void, ms: number): unknown
  /** Cancels a timer; does nothing for one that has fired. */
  clearTimeout(timer: unknown): void
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimeout: (callback, ms) => setTimeout(callback, ms),
  clearTimeout: (timer: NodeJS.Timeout) => clearTimeout(timer),
}

export function inBackground(clock: Clock): Clock {
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    // A timer of its own, without a `ref` to call: deadlines keep the process alive otherwise.
    setTimeout: (callback, ms) => ({ timer: unref(clock.setTimeout(callback, ms)) }),
    clearTimeout: (handle?: { readonly timer: unknown }) => clock.clearTimeout(handle?.timer),
  }
}

export const MAX_TIMER_MS: number = 2 ** 31 - 1

export function unref<Timer>(timer: Timer): Timer {
  if (typeof timer === 'object' && timer !== null && 'unref' in timer && typeof timer.unref === 'function')
    timer.unref()
  return timer
}
