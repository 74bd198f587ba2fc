/** Renews the leases of claims, in stores whose claims lapse. */

import { createAlarm } from '../time/alarm.ts'
import type { Clock } from '../time/clock.ts'
import type { ClaimedJob } from './queue.ts'
import type { QueueStore } from './store.ts'

/** The leases that are renewed. */
export interface Leases<Claim> {
  add(claims: readonly Claim[]): void
  remove(claim: Claim): void
  /** Renews nothing more. Resolves when the store has answered. */
  close(): Promise<void>
}

/** Creates an empty set of leases; all of them are renewed together. Does nothing for a store without leases. */
export function createLeases<Claim extends ClaimedJob>(
  store: QueueStore<Claim>,
  clock: Clock,
  onError: (error: unknown) => void,
): Leases<Claim> {
  const { leaseMs, renewMs } = store
  if (leaseMs === undefined) return { add() {}, remove() {}, async close() {} }
  const held = new Set<Claim>()
  const everyMs = renewMs ?? Math.floor(leaseMs / 3)
  const alarm = createAlarm(clock, () => {
    isSet = false
    renewal ??= renew()
    setAlarm()
  })
  let isSet = false
  let renewal: Promise<void> | undefined // In flight.

  function setAlarm(): void {
    if (isSet === held.size > 0) return
    isSet = held.size > 0
    alarm.set(isSet ? clock.now() + everyMs : undefined)
  }

  async function renew(): Promise<void> {
    try {
      await store.renew?.([...held])
    } catch (error) {
      onError(error)
    } finally {
      renewal = undefined
    }
  }

  return {
    add(claims) {
      for (const claim of claims) held.add(claim)
      setAlarm()
    },
    remove(claim) {
      held.delete(claim)
      setAlarm()
    },
    async close() {
      held.clear()
      setAlarm()
      await renewal
    },
  }
}
