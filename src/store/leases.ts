/** Renews the leases of claims, in stores whose claims lapse, and measures when a blocked event loop kept it from that. */

import { createAlarm } from '../kit/alarm.ts'
import type { Clock } from '../kit/clock.ts'
import { HooklineError } from '../protocol/error.ts'
import type { QueueStore } from './queue-store.ts'
import type { ClaimedJob } from './queue-types.ts'

export interface ReportOptions {
  readonly name: string
  readonly clock: Clock
  readonly onError: (error: unknown) => void
}

/** A claim, and when it began by the monotonic time. */
export interface Held<Claim> {
  readonly claim: Claim
  readonly since: number
}

const MAX_LAPSED = 1_000

/** @param list Lists what this process has claimed. */
export function createLeases<Claim extends ClaimedJob>(
  store: QueueStore<Claim>,
  list: () => readonly Held<Claim>[],
  { name, clock, onError }: ReportOptions,
) {
  const { leaseMs, renewMs } = store
  if (leaseMs === undefined) return undefined
  const everyMs = renewMs ?? Math.floor(leaseMs / 3)
  const lapsed = new Map<string, number>() // By the id of the job, how long the event loop was blocked.
  const alarm = createAlarm(clock, onTime)
  let dueAt: number | undefined // The next renewal, by the monotonic time.
  let renewal: Promise<void> | undefined // In flight.

  function start(): void {
    if (dueAt !== undefined) return
    dueAt = clock.monotonic() + everyMs
    alarm.set(clock.now() + everyMs)
  }

  function stop(): void {
    dueAt = undefined
    alarm.set(undefined)
  }

  function onTime(): void {
    const held = list()
    noteLapses(held, clock.monotonic() - (dueAt as number))
    dueAt = undefined
    renewal ??= renew(held.map(({ claim }) => claim))
    start()
  }

  /** When the timer fired so late that what was renewed last is over, another process may have claimed those jobs. */
  function noteLapses(held: readonly Held<Claim>[], blockedMs: number): void {
    const lateMs = leaseMs as number
    const over = held.filter(({ since }) => clock.monotonic() - since >= lateMs)
    if (blockedMs < lateMs - everyMs || over.length === 0) return
    for (const { claim } of over) {
      lapsed.delete(claim.id)
      lapsed.set(claim.id, blockedMs)
    }
    for (const id of [...lapsed.keys()].slice(0, -MAX_LAPSED)) lapsed.delete(id)
    const found = `an event loop blocked for ${seconds(blockedMs)}, leases over: ${over.length}`
    const advice = 'Move such work to a worker thread, or raise leaseMs: these jobs may be handled again.'
    const message = `Queue ${name}: leases must be renewed every ${seconds(everyMs)}. Got ${found}. ${advice}`
    onError(new HooklineError('lease_lapsed', message))
  }

  async function renew(claims: readonly Claim[]): Promise<void> {
    try {
      await store.renew?.(claims)
    } catch (error) {
      onError(error)
    } finally {
      renewal = undefined
    }
  }

  return {
    start,
    stop,
    blockedMsOf: (id: string) => lapsed.get(id),
    async close(): Promise<void> {
      stop()
      await renewal
    },
  }
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`
}
