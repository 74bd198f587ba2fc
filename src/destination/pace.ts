/** At most so many a second on average, of which a tenth may come at once. */

/** How many may begin. Every time is in milliseconds, by the monotonic clock. */
export interface Pace {
  room(now: number): number
  roomAt(now: number): number
  take(now: number): void
}

export const UNLIMITED: Pace = { room: () => Number.POSITIVE_INFINITY, roomAt: (now) => now, take() {} }

export function createPace(perSecond: number): Pace {
  const most = Math.max(1, perSecond / 10)
  let left = most
  let at = Number.NEGATIVE_INFINITY

  function refill(now: number): number {
    left = Math.min(most, left + ((now - at) * perSecond) / 1_000)
    at = now
    return left + 1e-6 // Parts that were added may sum up to a little less.
  }

  return {
    room: (now) => Math.max(0, Math.floor(refill(now))),
    roomAt: (now) => now + Math.max(0, Math.ceil(((1 - refill(now)) * 1_000) / perSecond)),
    take(now) {
      refill(now)
      left -= 1
    },
  }
}
