/** Does something so many times: so many at once, in parts, or until as many are counted. */

/** How many requests are under way at once, and how many connections there are. */
export const CONCURRENCY = 50

/** Runs it `times` times, {@link CONCURRENCY} at once. */
export async function inParallel(times: number, run: () => Promise<void>): Promise<void> {
  let left = times
  const loop = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      await run()
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, loop))
}

/** Calls `put` with parts of `count`, until all are put. */
export async function inChunks(
  count: number,
  put: (chunk: number) => Promise<unknown>,
  most: number = 500,
): Promise<void> {
  for (let left = count; left > 0; left -= most) await put(Math.min(most, left))
}

/** Waits until something happened so many times. */
export interface Countdown {
  /** Resolves when it happened `count` times more. What happened beyond the count before is part of it. */
  start(count: number): Promise<void>
  /** It happened. */
  tick(): void
}

export function createCountdown(): Countdown {
  let left = 0
  let over = Promise.withResolvers<void>()
  return {
    start(count) {
      left += count
      over = Promise.withResolvers()
      if (left <= 0) over.resolve()
      return over.promise
    },
    tick() {
      left -= 1
      if (left === 0) over.resolve()
    },
  }
}
