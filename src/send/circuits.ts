/** Where a message may be posted now, and how many more: by the switch of a destination, and by the circuits of its URLs. */

import type { ClaimedJob } from '../store/queue-types.ts'
import { type Circuit, type CircuitEvent, createCircuit, createPace, type UrlHealth } from './circuit.ts'
import type { DestinationSettings } from './destination-options.ts'
import { LAST_START_MS, MAX_DELAY_MS } from './schedule.ts'
import type { Attempt } from './sender-types.ts'
import type { Target } from './webhooks.ts'

export type Circuits = ReturnType<typeof createCircuits>

/** How long a held message waits beyond its four hours: a URL that came back within them is noticed meanwhile, in milliseconds. */
const NOTICE_MS = 60_000

const MIN_HOLD_MS = 10_000

interface Entry {
  readonly target: Target
  readonly circuit: Circuit
  delivered: number
  failed: number
  lastFailure?: UrlHealth['lastFailure']
}

/** They measure by the monotonic clock: one that is set does not end an outage. */
export function createCircuits(settings: DestinationSettings, onChange: (event: CircuitEvent) => void) {
  const { clock, random, maxPerSecond, concurrency } = settings
  const policy = { ...settings.circuit, maxPerSecond, concurrency, random }
  const lastAttempts = createPace(settings.circuit.lastAttemptsPerSecond)
  let circuits = new Map<string, Entry>()
  let offSince: number | undefined

  const circuitOf = ({ id }: Target): Circuit | undefined => circuits.get(id)?.circuit
  const dateOf = (time: number): Date => new Date(clock.now() + time - clock.monotonic())

  function timesOf({ target, circuit }: Entry): Pick<UrlHealth, 'url' | 'openSince' | 'probeAt'> {
    const { openSince, probeAt } = circuit
    return {
      url: target.shown,
      ...(openSince !== undefined && { openSince: dateOf(openSince) }),
      ...(probeAt !== undefined && { probeAt: dateOf(probeAt) }),
    }
  }

  function readHealth(entry: Entry): UrlHealth {
    const { circuit, delivered, failed, lastFailure } = entry
    const counts = { delivered, failed, ...(lastFailure && { lastFailure }) }
    return { ...timesOf(entry), circuit: circuit.state, ...counts }
  }

  /** An attempt that `close` ended says nothing of its URL. */
  function count(entry: Entry, { ok, at, status, error, reason }: Attempt): void {
    if (ok) entry.delivered += 1
    else if (error !== 'closed') {
      entry.failed += 1
      const how = status === undefined ? { error, reason } : { status }
      entry.lastFailure = { at, ...how } as NonNullable<Entry['lastFailure']>
    }
  }

  /** Since when all circuits are open; undefined while one is closed. */
  function openSince(): number | undefined {
    let since = Number.NEGATIVE_INFINITY
    for (const { circuit } of circuits.values()) {
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

  function usable(): Iterable<Entry> {
    return offSince === undefined ? circuits.values() : []
  }

  function findRoom(): number {
    const now = clock.monotonic()
    let most = 0
    for (const { circuit } of usable()) most = Math.max(most, circuit.room(now))
    return most === 0 && now >= sweepAt() ? Number.POSITIVE_INFINITY : most
  }

  function update({ enabled, targets }: DestinationSettings): void {
    offSince = enabled ? undefined : (offSince ?? clock.monotonic())
    const create = (target: Target): Entry => ({ target, circuit: createCircuit(policy), delivered: 0, failed: 0 })
    circuits = new Map(targets.map((target) => [target.id, circuits.get(target.id) ?? create(target)]))
  }

  update(settings)
  return {
    /** How many messages may be claimed now. */
    room: {
      count: findRoom,
      nextAt(): Date | undefined {
        const now = clock.monotonic()
        let at = sweepAt()
        for (const { circuit } of usable()) at = Math.min(at, circuit.roomAt(now) ?? at)
        return at === Number.POSITIVE_INFINITY ? undefined : dateOf(at)
      },
    },
    get areOpen(): boolean {
      return openSince() !== undefined
    },
    get urls(): readonly UrlHealth[] {
      return [...circuits.values()].map(readHealth)
    },
    /** Those of these URLs that may be tried now. */
    admit(targets: readonly Target[]): readonly Target[] {
      const now = clock.monotonic()
      return targets.filter((target) => (circuitOf(target)?.room(now) ?? 0) > 0)
    },
    /** Begins an attempt, also at a URL that may not be tried. The result must be called when it ends. */
    begin(target: Target): (attempt: Attempt) => void {
      const entry = circuits.get(target.id)
      const end = entry?.circuit.begin(clock.monotonic())
      return (attempt) => {
        if (entry === undefined) return
        count(entry, attempt)
        if (!end?.(attempt, clock.monotonic())) return
        onChange({ ...timesOf(entry), state: entry.circuit.state, cause: attempt })
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
