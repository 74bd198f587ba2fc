/** Renews the leases of claims, in stores whose claims lapse, and measures when a blocked event loop kept it from that. */

import { HooklineError } from '../message/error.ts'
import { createAlarm } from '../time/alarm.ts'
import type { Clock } from '../time/clock.ts'
import type { ClaimedJob } from './api.ts'
import type { QueueStore } from './store.ts'

export interface ReportOptions {
  readonly name: string
  readonly clock: Clock
  readonly onError: (error: unknown) => void
}

const MAX_LAPSED = 1_000

export function createLeases<Claim extends ClaimedJob>(
  store: QueueStore<Claim>,
  { name, clock, onError }: ReportOptions,
) {
  const { leaseMs, renewMs } = store
  if (leaseMs === undefined) return undefined
  const held = new Map<Claim, number>() // When it was claimed, by the monotonic time.
  const lapsed = new Map<string, number>() // By the id of the job, how long the event loop was blocked.
  const everyMs = renewMs ?? Math.floor(leaseMs / 3)
  const alarm = createAlarm(clock, () => {
    isSet = false
    noteLapses()
    renewal ??= renew()
    setAlarm()
  })
  let isSet = false
  let dueAt = 0 // The next renewal, by the monotonic time.
  let renewal: Promise<void> | undefined // In flight.

  function setAlarm(): void {
    if (isSet === held.size > 0) return
    isSet = held.size > 0
    dueAt = clock.monotonic() + everyMs
    alarm.set(isSet ? clock.now() + everyMs : undefined)
  }

  /** When the timer fired so late that what was renewed last is over: another process may have claimed those jobs. */
  function noteLapses(): void {
    const now = clock.monotonic()
    const blockedMs = now - dueAt
    if (blockedMs < (leaseMs as number) - everyMs) return
    const over = [...held].filter(([, since]) => now - since >= (leaseMs as number))
    if (over.length === 0) return
    for (const [{ id }] of over) {
      lapsed.delete(id)
      lapsed.set(id, blockedMs)
    }
    for (const id of [...lapsed.keys()].slice(0, -MAX_LAPSED)) lapsed.delete(id)
    const found = `an event loop blocked for ${seconds(blockedMs)}, leases over: ${over.length}`
    const advice = 'Move such work to a worker thread, or raise leaseMs: these jobs may be handled again.'
    const message = `Queue ${name}: leases must be renewed every ${seconds(everyMs)}. Got ${found}. ${advice}`
    onError(new HooklineError('lease_lapsed', message))
  }

  async function renew(): Promise<void> {
    try {
      await store.renew?.([...held.keys()])
    } catch (error) {
      onError(error)
    } finally {
      renewal = undefined
    }
  }

  return {
    add(claims: readonly Claim[]): void {
      const now = clock.monotonic()
      for (const claim of claims) held.set(claim, now)
      setAlarm()
    },
    remove(claim: Claim): void {
      held.delete(claim)
      setAlarm()
    },
    blockedMsOf: (id: string) => lapsed.get(id),
    async close(): Promise<void> {
      held.clear()
      setAlarm()
      await renewal
    },
  }
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`
}
