/** Time as an argument: what reads the time or waits takes a clock. */

/** The time and its timers. Tests pass a manual one. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Milliseconds since whenever; never goes back, also when somebody sets the clock. Ages are measured with it. */
  monotonic(): number
  /** Calls `callback` once, `ms` milliseconds from now. Returns what {@link clearTimeout} takes. */
  setTimeout(callback: () => void, ms: number): unknown
  /** Cancels a timer; does nothing for one that has fired. */
  clearTimeout(timer: unknown): void
}

/** The clock of the machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimeout: (callback, ms) => setTimeout(callback, ms),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
}
