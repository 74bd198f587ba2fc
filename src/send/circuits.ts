/**
 * The circuits of a destination's URLs. They decide how many messages may be posted now, and to which URLs. While the destination is
 * disabled, they let no message be posted.
 */

import type { Clock } from '../kit/clock.ts'
import { createTokenBucket, type TokenBucket } from '../kit/token-bucket.ts'
import type { ClaimedJob, Room } from '../store/queue-types.ts'
import { Circuit, type CircuitEvent, type CircuitPolicy, type UrlHealth } from './circuit.ts'
import type { DestinationSettings } from './destination-options.ts'
import { LAST_START_MS, MAX_DELAY_MS } from './schedule.ts'
import type { Attempt } from './sender-types.ts'
import type { Target } from './webhooks.ts'

/**
 * The time from the arrival of a held message, or from the start of the hold if that is later, to the start of its four
 * hours, in milliseconds. Without this delay, a message could fail before a probe notices that its URL has recovered.
 */
const NOTICE_MS = 60_000

const MIN_HOLD_MS = 10_000

interface UrlCircuit {
  readonly target: Target
  readonly circuit: Circuit
  readonly counts: { delivered: number; failed: number; lastFailure?: NonNullable<UrlHealth['lastFailure']> }
}

/** All circuits of a destination. They use the monotonic clock, so that a change of the system time does not end a hold early. */
export class Circuits {
  readonly #clock: Clock
  readonly #policy: CircuitPolicy
  readonly #lastAttempts: TokenBucket
  readonly #onChange: (event: CircuitEvent) => void
  #byId: ReadonlyMap<string, UrlCircuit> = new Map()
  #offSince: number | undefined

  /** Tells the queue how many messages it may claim now, and when to ask again. */
  readonly room: Room = { count: () => this.#findRoom(), nextAt: () => this.#findNextRoom() }

  constructor(settings: DestinationSettings, onChange: (event: CircuitEvent) => void) {
    const { clock, random, maxPerSecond, concurrency, circuit } = settings
    this.#clock = clock
    this.#policy = { ...circuit, maxPerSecond, concurrency, random }
    this.#lastAttempts = createTokenBucket(circuit.lastAttemptsPerSecond)
    this.#onChange = onChange
    this.update(settings)
  }

  /** Whether every circuit is open or half-open. */
  get areOpen(): boolean {
    return this.#openSince() !== undefined
  }

  get urls(): readonly UrlHealth[] {
    const all = [...this.#byId.values()]
    return all.map((each) => ({ ...this.#describeTimes(each), circuit: each.circuit.state, ...each.counts }))
  }

  /** Adopts new settings. A URL that is also in the new settings keeps its circuit. */
  update({ enabled, targets }: DestinationSettings): void {
    this.#offSince = enabled ? undefined : (this.#offSince ?? this.#clock.monotonic())
    this.#byId = new Map(targets.map((target) => [target.id, this.#byId.get(target.id) ?? this.#create(target)]))
  }

  /** Returns the URLs that may be tried now. */
  admit(targets: readonly Target[]): readonly Target[] {
    const now = this.#clock.monotonic()
    return targets.filter(({ id }) => (this.#byId.get(id)?.circuit.room(now) ?? 0) > 0)
  }

  /** Begins an attempt, even at a URL that may not be tried. The caller must call the returned function when the attempt ends. */
  begin({ id }: Target): (attempt: Attempt) => void {
    const found = this.#byId.get(id)
    if (found === undefined) return () => {}
    const endAttempt = found.circuit.begin(this.#clock.monotonic())
    return (attempt) => {
      countAttempt(found, attempt)
      const hasChanged = endAttempt(attempt, this.#clock.monotonic())
      if (hasChanged) this.#onChange({ ...this.#describeTimes(found), state: found.circuit.state, cause: attempt })
    }
  }

  /**
   * Returns when the four hours begin for a message that has not been posted yet. If a URL may be tried, they begin at the first claim or,
   * for a message that was held, now. Otherwise, they begin a minute after the message arrived or after the hold began, whichever is later.
   *
   * @param before The result of the previous call for this message; undefined when the message was never held.
   */
  windowStart({ dueAt, firstAt }: ClaimedJob, before: number | undefined): number {
    const heldSince = this.#heldSince()
    if (heldSince === undefined) return before === undefined ? firstAt.getTime() : this.#clock.now()
    const afterArrival = before ?? (dueAt ?? firstAt).getTime() + NOTICE_MS
    return Math.max(afterArrival, this.#toDate(heldSince).getTime() + NOTICE_MS)
  }

  /**
   * Returns whether a message whose four hours end gets a last attempt although no URL may be tried. At most `lastAttemptsPerSecond`
   * messages per second get this attempt.
   */
  admitLast(): boolean {
    const now = this.#clock.monotonic()
    const isAdmitted = this.#lastAttempts.count(now) > 0
    if (isAdmitted) this.#lastAttempts.take(now)
    return isAdmitted
  }

  /**
   * Returns how long a held message waits, in milliseconds: a quarter to half of the length of the hold, at least 5 seconds and at most 30
   * minutes. The hold began when the destination was disabled or, if it is enabled, when the last circuit of these URLs opened.
   */
  holdMs(targets: readonly Target[]): number {
    const now = this.#clock.monotonic()
    const openMs = targets.map(({ id }) => now - (this.#offSince ?? this.#byId.get(id)?.circuit.openSince ?? now))
    const waitMs = Math.min(MAX_DELAY_MS, Math.max(MIN_HOLD_MS, Math.min(...openMs) / 2))
    return (waitMs * (1 + this.#policy.random())) / 2
  }

  #create(target: Target): UrlCircuit {
    return { target, circuit: new Circuit(this.#policy), counts: { delivered: 0, failed: 0 } }
  }

  /**
   * Returns how many messages may be claimed now. Each message needs only one URL, so the URL with the most room decides. When held
   * messages are due to fail and no URL has room, all of them may be claimed.
   */
  #findRoom(): number {
    const now = this.#clock.monotonic()
    let room = 0
    for (const { circuit } of this.#usable()) room = Math.max(room, circuit.room(now))
    return room === 0 && now >= this.#sweepAt() ? Number.POSITIVE_INFINITY : room
  }

  #findNextRoom(): Date | undefined {
    const now = this.#clock.monotonic()
    let at = this.#sweepAt()
    for (const { circuit } of this.#usable()) at = Math.min(at, circuit.roomAt(now) ?? at)
    return at === Number.POSITIVE_INFINITY ? undefined : this.#toDate(at)
  }

  #usable(): Iterable<UrlCircuit> {
    return this.#offSince === undefined ? this.#byId.values() : []
  }

  /**
   * Returns the earliest time at which the four hours of a held message may end. From then on, all held messages are claimed, so that each
   * fails in time.
   */
  #sweepAt(): number {
    return (this.#heldSince() ?? Number.POSITIVE_INFINITY) + NOTICE_MS + LAST_START_MS
  }

  /**
   * Returns the start of the current hold: the time at which the destination was disabled or the last of its circuits opened, whichever is
   * earlier. Returns undefined while the destination is enabled and a circuit is closed.
   */
  #heldSince(): number | undefined {
    const openSince = this.#openSince()
    const offSince = this.#offSince
    return offSince === undefined || openSince === undefined ? (offSince ?? openSince) : Math.min(offSince, openSince)
  }

  /** Returns the time at which the last circuit opened; undefined while any circuit is closed. */
  #openSince(): number | undefined {
    let since = Number.NEGATIVE_INFINITY
    for (const { circuit } of this.#byId.values()) {
      if (circuit.openSince === undefined) return undefined
      since = Math.max(since, circuit.openSince)
    }
    return since
  }

  #describeTimes({ target: { shown: url }, circuit }: UrlCircuit): Pick<UrlHealth, 'url' | 'openSince' | 'probeAt'> {
    if (circuit.openSince === undefined) return { url }
    const openSince = this.#toDate(circuit.openSince)
    return circuit.probeAt === undefined
      ? { url, openSince }
      : { url, openSince, probeAt: this.#toDate(circuit.probeAt) }
  }

  #toDate(monotonic: number): Date {
    return new Date(this.#clock.now() + monotonic - this.#clock.monotonic())
  }
}

/** Counts an attempt, unless `close` ended it: such an attempt says nothing about its URL. */
function countAttempt({ counts }: UrlCircuit, attempt: Attempt): void {
  const { url, ok, body, durationMs, retryAfterMs, ...failure } = attempt
  if (ok) counts.delivered += 1
  else if (failure.error !== 'closed') {
    counts.failed += 1
    counts.lastFailure = failure
  }
}
