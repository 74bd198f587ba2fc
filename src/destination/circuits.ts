/** Where a message may be posted now, and how many more: by the switch of a destination, and by the circuits of its URLs. */

import type { ClaimedJob } from '../queues/api.ts'
import type { Attempt } from '../sender/api.ts'
import type { Target } from '../sender/webhooks.ts'
import { type Circuit, type CircuitStatus, createCircuit, createPace } from './circuit.ts'
import type { DestinationSettings } from './options.ts'
import { LAST_START_MS, MAX_DELAY_MS } from './schedule.ts'

export type Circuits = ReturnType<typeof createCircuits>

/** How long a held message waits beyond its four hours: a URL that came back within them is noticed meanwhile, in milliseconds. */
const NOTICE_MS = 60_000

const MIN_HOLD_MS = 10_000

export type OnCircuitChange = (status: CircuitStatus, cause: Attempt) => void

/** They measure by the monotonic clock: one that is set does not end an outage. */
export function createCircuits(settings: DestinationSettings, onChange: OnCircuitChange) {
  const { clock, random } = settings
  const lastAttempts = createPace(settings.circuit.lastAttemptsPerSecond)
  let circuits = new Map<string, readonly [Target, Circuit]>()
  let offSince: number | undefined

  const circuitOf = ({ id }: Target): Circuit | undefined => circuits.get(id)?.[1]
  const dateOf = (time: number): Date => new Date(clock.now() + time - clock.monotonic())

  function statusOf([target, circuit]: readonly [Target, Circuit]): CircuitStatus {
    const { state, openSince, probeAt } = circuit
    return {
      url: target.shown,
      state,
      ...(openSince !== undefined && { openSince: dateOf(openSince) }),
      ...(probeAt !== undefined && { probeAt: dateOf(probeAt) }),
    }
  }

  /** Since when all circuits are open; undefined while one is closed. */
  function openSince(): number | undefined {
    let since = Number.NEGATIVE_INFINITY
    for (const [, circuit] of circuits.values()) {
      if (circuit.openSince === undefined) return undefined
      since = Math.max(since, circuit.openSince)
    }
    return since
  }

  /** Since when no URL could be tried. */
  function heldSince(): number | undefined {
    const opened = openSince()
    return offSince === undefined || opened === undefined ? (offSince ?? opened) : Math.min(offSince, opened)
  }

  /** When the first message may run out that is held. From then on all are claimed, each again at its end at the latest. */
  function sweepAt(): number {
    return (heldSince() ?? Number.POSITIVE_INFINITY) + NOTICE_MS + LAST_START_MS
  }

  function usable(): Iterable<readonly [Target, Circuit]> {
    return offSince === undefined ? circuits.values() : []
  }

  function findRoom(): number {
    const now = clock.monotonic()
    let most = 0
    for (const [, circuit] of usable()) most = Math.max(most, circuit.room(now))
    return most === 0 && now >= sweepAt() ? Number.POSITIVE_INFINITY : most
  }

  function update({ enabled, targets, maxPerSecond, concurrency, circuit }: DestinationSettings): void {
    offSince = enabled ? undefined : (offSince ?? clock.monotonic())
    const policy = { ...circuit, concurrency, random }
    circuits = new Map(targets.map((target) => [target.id, [target, circuitOf(target) ?? createCircuit(policy)]]))
    for (const [, each] of circuits.values()) each.setPace(maxPerSecond)
  }

  update(settings)
  return {
    /** How many messages may be claimed now. */
    room: {
      count: findRoom,
      nextAt(): Date | undefined {
        const now = clock.monotonic()
        let at = sweepAt()
        for (const [, circuit] of usable()) at = Math.min(at, circuit.roomAt(now) ?? at)
        return at === Number.POSITIVE_INFINITY ? undefined : dateOf(at)
      },
    },
    get areOpen(): boolean {
      return openSince() !== undefined
    },
    get statuses(): readonly CircuitStatus[] {
      return [...circuits.values()].map(statusOf)
    },
    /** Those of these URLs that may be tried now. */
    admit(targets: readonly Target[]): readonly Target[] {
      const now = clock.monotonic()
      return targets.filter((target) => (circuitOf(target)?.room(now) ?? 0) > 0)
    },
    /** Begins an attempt, also at a URL that may not be tried. The result must be called when it ends. */
    begin(target: Target): (attempt: Attempt) => void {
      const entry = circuits.get(target.id)
      const end = entry?.[1].begin(clock.monotonic())
      return (attempt) => {
        if (entry !== undefined && end?.(attempt, clock.monotonic())) onChange(statusOf(entry), attempt)
      }
    },
    /**
     * When the four hours of a message begin that was not tried yet: with its first claim, or now if it was held then; while no URL
     * may be tried, a minute after it arrived or after that began.
     *
     * @param before What this was when the message was held before.
     */
    windowStart({ dueAt, firstAt }: ClaimedJob, before: number | undefined): number {
      const since = heldSince()
      if (since === undefined) return before === undefined ? firstAt.getTime() : clock.now()
      const arrived = before ?? (dueAt ?? firstAt).getTime() + NOTICE_MS
      return Math.max(arrived, dateOf(since).getTime() + NOTICE_MS)
    },
    /** Whether a message that runs out may be tried once more, although no URL may be tried. */
    admitLast(): boolean {
      const now = clock.monotonic()
      const isAdmitted = lastAttempts.room(now) > 0
      if (isAdmitted) lastAttempts.take(now)
      return isAdmitted
    },
    /** How long a message waits that is held, in milliseconds: up to half as long as the switch is off, or one of these URLs open. */
    holdMs(targets: readonly Target[]): number {
      const now = clock.monotonic()
      const openMs = targets.map((target) => now - (offSince ?? circuitOf(target)?.openSince ?? now))
      const waitMs = Math.min(MAX_DELAY_MS, Math.max(MIN_HOLD_MS, Math.min(...openMs) / 2))
      return (waitMs * (1 + random())) / 2
    },
    update,
  }
}
