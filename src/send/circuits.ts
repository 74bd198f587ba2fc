/** Where a message may be posted now, and how many more: by the switch of a destination, and by the circuits of its URLs. */

import type { Clock } from '../kit/clock.ts'
import type { ClaimedJob, Room } from '../store/queue-types.ts'
import { Circuit, type CircuitEvent, type CircuitPolicy, createPace, type Pace, type UrlHealth } from './circuit.ts'
import type { DestinationSettings } from './destination-options.ts'
import { LAST_START_MS, MAX_DELAY_MS } from './schedule.ts'
import type { Attempt } from './sender-types.ts'
import type { Target } from './webhooks.ts'

/** How long a held message waits beyond its four hours: a URL that came back within them is noticed meanwhile, in milliseconds. */
const NOTICE_MS = 60_000

const MIN_HOLD_MS = 10_000

/** A URL, its circuit, and its attempts. */
interface Entry {
  readonly target: Target
  readonly circuit: Circuit
  readonly counts: { delivered: number; failed: number; lastFailure?: NonNullable<UrlHealth['lastFailure']> }
}

/** They measure by the monotonic clock: one that is set does not end an outage. */
export class Circuits {
  readonly #clock: Clock
  readonly #policy: CircuitPolicy
  readonly #lastAttempts: Pace
  readonly #onChange: (event: CircuitEvent) => void
  #entries: ReadonlyMap<string, Entry> = new Map()
  #offSince: number | undefined

  /** How many messages may be claimed now, and when it is worth asking again. */
  readonly room: Room = { count: () => this.#findRoom(), nextAt: () => this.#findNextRoom() }

  constructor(settings: DestinationSettings, onChange: (event: CircuitEvent) => void) {
    const { clock, random, maxPerSecond, concurrency, circuit } = settings
    this.#clock = clock
    this.#policy = { ...circuit, maxPerSecond, concurrency, random }
    this.#lastAttempts = createPace(circuit.lastAttemptsPerSecond)
    this.#onChange = onChange
    this.update(settings)
  }

  /** Whether the circuits of all URLs are open. */
  get areOpen(): boolean {
    return this.#openSince() !== undefined
  }

  get urls(): readonly UrlHealth[] {
    const entries = [...this.#entries.values()]
    return entries.map((entry) => ({ ...this.#timesOf(entry), circuit: entry.circuit.state, ...entry.counts }))
  }

  update({ enabled, targets }: DestinationSettings): void {
    this.#offSince = enabled ? undefined : (this.#offSince ?? this.#clock.monotonic())
    this.#entries = new Map(targets.map((target) => [target.id, this.#entries.get(target.id) ?? this.#create(target)]))
  }

  /** Returns those of these URLs that may be tried now. */
  admit(targets: readonly Target[]): readonly Target[] {
    const now = this.#clock.monotonic()
    return targets.filter(({ id }) => (this.#entries.get(id)?.circuit.room(now) ?? 0) > 0)
  }

  /** Begins an attempt, also at a URL that may not be tried. The result must be called when it ends. */
  begin({ id }: Target): (attempt: Attempt) => void {
    const entry = this.#entries.get(id)
    if (entry === undefined) return () => {}
    const end = entry.circuit.begin(this.#clock.monotonic())
    return (attempt) => {
      count(entry, attempt)
      if (!end(attempt, this.#clock.monotonic())) return
      this.#onChange({ ...this.#timesOf(entry), state: entry.circuit.state, cause: attempt })
    }
  }

  /**
   * Returns when the four hours of a message begin that was not tried yet: with its first claim, or now if it was held then; while no
   * URL may be tried, a minute after it arrived or after that began.
   *
   * @param before What this was when the message was held before.
   */
  windowStart({ dueAt, firstAt }: ClaimedJob, before: number | undefined): number {
    const since = this.#heldSince()
    if (since === undefined) return before === undefined ? firstAt.getTime() : this.#clock.now()
    const arrived = before ?? (dueAt ?? firstAt).getTime() + NOTICE_MS
    return Math.max(arrived, this.#dateOf(since).getTime() + NOTICE_MS)
  }

  /** Returns whether a message that runs out may be tried once more, although no URL may be tried. */
  admitLast(): boolean {
    const now = this.#clock.monotonic()
    const isAdmitted = this.#lastAttempts.room(now) > 0
    if (isAdmitted) this.#lastAttempts.take(now)
    return isAdmitted
  }

  /** Returns how long a message that is held waits, in milliseconds: up to half as long as the switch is off, or one of these URLs open. */
  holdMs(targets: readonly Target[]): number {
    const now = this.#clock.monotonic()
    const openMs = targets.map(({ id }) => now - (this.#offSince ?? this.#entries.get(id)?.circuit.openSince ?? now))
    const waitMs = Math.min(MAX_DELAY_MS, Math.max(MIN_HOLD_MS, Math.min(...openMs) / 2))
    return (waitMs * (1 + this.#policy.random())) / 2
  }

  #create(target: Target): Entry {
    return { target, circuit: new Circuit(this.#policy), counts: { delivered: 0, failed: 0 } }
  }

  #findRoom(): number {
    const now = this.#clock.monotonic()
    let most = 0
    for (const { circuit } of this.#usable()) most = Math.max(most, circuit.room(now))
    return most === 0 && now >= this.#sweepAt() ? Number.POSITIVE_INFINITY : most
  }

  #findNextRoom(): Date | undefined {
    const now = this.#clock.monotonic()
    let at = this.#sweepAt()
    for (const { circuit } of this.#usable()) at = Math.min(at, circuit.roomAt(now) ?? at)
    return at === Number.POSITIVE_INFINITY ? undefined : this.#dateOf(at)
  }

  #usable(): Iterable<Entry> {
    return this.#offSince === undefined ? this.#entries.values() : []
  }

  /** Returns when the first held message may run out. From then on all are claimed, each again at its end at the latest. */
  #sweepAt(): number {
    return (this.#heldSince() ?? Number.POSITIVE_INFINITY) + NOTICE_MS + LAST_START_MS
  }

  /** Returns since when no URL could be tried. */
  #heldSince(): number | undefined {
    const opened = this.#openSince()
    const off = this.#offSince
    return off === undefined || opened === undefined ? (off ?? opened) : Math.min(off, opened)
  }

  /** Returns since when all circuits are open; undefined while one is closed. */
  #openSince(): number | undefined {
    let since = Number.NEGATIVE_INFINITY
    for (const { circuit } of this.#entries.values()) {
      if (circuit.openSince === undefined) return undefined
      since = Math.max(since, circuit.openSince)
    }
    return since
  }

  #timesOf({ target: { shown: url }, circuit }: Entry): Pick<UrlHealth, 'url' | 'openSince' | 'probeAt'> {
    if (circuit.openSince === undefined) return { url }
    const openSince = this.#dateOf(circuit.openSince)
    return circuit.probeAt === undefined
      ? { url, openSince }
      : { url, openSince, probeAt: this.#dateOf(circuit.probeAt) }
  }

  #dateOf(time: number): Date {
    return new Date(this.#clock.now() + time - this.#clock.monotonic())
  }
}

/** Counts an attempt. One that `close` ended says nothing of its URL. */
function count({ counts }: Entry, attempt: Attempt): void {
  const { url, ok, body, durationMs, retryAfterMs, ...failure } = attempt
  if (ok) counts.delivered += 1
  else if (failure.error !== 'closed') {
    counts.failed += 1
    counts.lastFailure = failure
  }
}
