/** Does something so many times, so many at once. */

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
