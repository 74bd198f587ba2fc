/** When a batch that failed goes again: pure policy. */

/** Most of the first wait, in milliseconds; each wait after that may be twice as long. */
const FIRST_MS = 1_000

/** Most of any wait, in milliseconds. */
const MOST_MS = 60_000

/** Most that a `Retry-After` is followed, in milliseconds: a date far off must not hold the calls for a day. */
const MOST_ASKED_MS = 5 * 60_000

/**
 * How long to wait: exponential backoff with full jitter, and no less than the answer asked for.
 *
 * @param attempts How often the batch was sent.
 * @param askedMs What `Retry-After` of the answer said, in milliseconds.
 * @param random From 0 up to 1.
 */
export function backoff(attempts: number, askedMs: number | undefined, random: () => number): number {
  const most = Math.min(MOST_MS, FIRST_MS * 2 ** (attempts - 1))
  return Math.max(Math.floor(random() * most), Math.min(askedMs ?? 0, MOST_ASKED_MS))
}
