/** Of messages that succeed, a sample is kept above 200 a second. What fails, is refused or tried again is always kept. */

import { type Clock, systemClock } from '../time/clock.ts'

/**
 * Counts a message that succeeded. Returns how many of them it stands for: 1 while all are kept; undefined for one that is not. The
 * several events of a message have a sample each, which give the same answer for its key.
 */
export type Sample = (key: string) => number | undefined

const MAX_PER_SECOND = 200

export function createSample(clock: Clock = systemClock): Sample {
  let second = 0
  let count = 0
  let before = 0
  return (key) => {
    const now = Math.floor(clock.monotonic() / 1_000)
    if (now !== second) {
      before = now === second + 1 ? count : 0
      count = 0
      second = now
    }
    count += 1
    const of = Math.ceil(Math.max(count, before) / MAX_PER_SECOND)
    return of === 1 || hashOf(key) * of < 2 ** 32 ? of : undefined
  }
}

/** FNV-1a of 32 bits, whose last characters are mixed in, too. */
function hashOf(key: string): number {
  let hash = 0x811c_9dc5
  for (let index = 0; index < key.length; index += 1) hash = Math.imul(hash ^ key.charCodeAt(index), 0x0100_0193)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b_3c6d)
  return (hash ^ (hash >>> 12)) >>> 0
}
