/**
 * The circuit of a URL: closed, it sends; open, it holds; half-open, it probes with one message. After a success it closes at a
 * ramp: as many attempts at a time as the URL has shown to bear.
 */

import { backoff } from '../kit/backoff.ts'
import { requireInteger, requireOptions } from '../kit/checks.ts'
import { isTransient } from '../kit/retry.ts'
import type { Attempt } from './sender-types.ts'

/**
 * The state of a URL. `closed`: messages are sent. `open`: they are held, because the URL failed too often in a row or asked to
 * wait. `half_open`: one message is tried; a success closes the circuit.
 */
export type CircuitState = 'closed' | 'open' | 'half_open'

interface CircuitTimes {
  /** The webhook URL. Its query reads `?…`, because it may hold a token. */
  readonly url: string
  /** Since when its circuit is not closed. */
  readonly openSince?: Date
  /** When it gets one message next, to try it; set while its circuit is `open`. */
  readonly probeAt?: Date
}

/** How a URL stands. The figures count attempts of this process since the URL is in the settings. */
export interface UrlHealth extends CircuitTimes {
  readonly circuit: CircuitState
  /** How many attempts it accepted. */
  readonly delivered: number
  /** How many attempts failed. */
  readonly failed: number
  /** The last attempt that failed. Undefined while none has. */
  readonly lastFailure?: Pick<Attempt, 'at' | 'status' | 'error' | 'reason'>
}

/** `hookline:circuit`, and what `onCircuit` receives: a circuit opened or closed. */
export interface CircuitEvent extends CircuitTimes {
  readonly state: CircuitState
  /** The attempt that opened or closed it. */
  readonly cause: Attempt
}

/** When circuits open, and how they probe. */
export interface CircuitOptions {
  /** A circuit opens after so many failed attempts in a row. Default 10. */
  readonly failures?: number
  /** The longest time between two probes, in milliseconds; the first follows after a second. Default 30 000. */
  readonly maxProbeMs?: number
  /** The most messages a second that are tried once more when their four hours end while all circuits are open. Default 1. */
  readonly lastAttemptsPerSecond?: number
}

export interface CircuitPolicy extends Required<Pick<CircuitOptions, 'failures' | 'maxProbeMs'>> {
  readonly maxPerSecond: number | undefined
  readonly concurrency: number
  readonly random: () => number
}

const FIRST_PROBE_MS = 1_000

/** The longest `Retry-After` that holds a URL, in milliseconds. A message of its own may wait longer. */
const MAX_PAUSE_MS = 30 * 60_000

/** Every time is by the monotonic clock, in milliseconds. */
export class Circuit {
  readonly #policy: CircuitPolicy
  readonly #pace: Pace
  #state: CircuitState = 'closed'
  #openSince: number | undefined
  #probeAt = 0
  #openings = 0 // Since the last success.
  #epoch = 0 // An attempt that began before the circuit opened says nothing of the URL now.
  #failures = 0 // In a row.
  #active = 0
  #bearable: number // How many attempts at a time, while it is closed.

  constructor(policy: CircuitPolicy) {
    this.#policy = policy
    this.#pace = policy.maxPerSecond === undefined ? UNLIMITED : createPace(policy.maxPerSecond)
    this.#bearable = policy.concurrency
  }

  get state(): CircuitState {
    return this.#state
  }

  /** Since when it is not closed. */
  get openSince(): number | undefined {
    return this.#openSince
  }

  /** When it probes next; set while it is open. */
  get probeAt(): number | undefined {
    return this.#state === 'open' ? this.#probeAt : undefined
  }

  /** How many attempts may begin now. */
  room(now: number): number {
    if (this.#state === 'half_open') return 0
    const paced = this.#pace.room(now)
    if (this.#state === 'open') return now >= this.#probeAt ? Math.min(1, paced) : 0
    return Math.max(0, Math.min(Math.floor(this.#bearable) - this.#active, paced))
  }

  /** When there is room although no attempt has ended; undefined when one has to end first. */
  roomAt(now: number): number | undefined {
    const isWaiting = this.#state === 'closed' && this.#active >= Math.floor(this.#bearable)
    if (isWaiting || this.#state === 'half_open') return undefined
    return Math.max(this.#pace.roomAt(now), this.probeAt ?? now)
  }

  /** Begins an attempt, also without room. The result must be called when it ends, and says whether the circuit opened or closed. */
  begin(now: number): (attempt: Attempt, now: number) => boolean {
    this.#pace.take(now)
    this.#active += 1
    if (this.#state === 'open') this.#state = 'half_open'
    const began = this.#epoch
    return (attempt, at) => {
      this.#active -= 1
      const wasOpen = this.#openSince !== undefined
      if (began === this.#epoch) this.#judge(attempt, at)
      return wasOpen !== (this.#openSince !== undefined)
    }
  }

  #judge(attempt: Attempt, now: number): void {
    const { status, error } = attempt
    if (error === 'closed') this.#state = this.#state === 'half_open' ? 'open' : this.#state
    else if (status === undefined || isTransient(status)) this.#fail(attempt, now)
    else this.#succeed()
  }

  #succeed(): void {
    const { concurrency } = this.#policy
    this.#bearable = this.#state === 'half_open' ? 1 : Math.min(concurrency, this.#bearable + 1 / this.#bearable)
    this.#failures = 0
    this.#openings = 0
    this.#state = 'closed'
    this.#openSince = undefined
  }

  #fail({ status, retryAfterMs }: Attempt, now: number): void {
    const { failures, concurrency } = this.#policy
    this.#failures += 1
    if (this.#bearable < concurrency) this.#bearable = Math.max(1, this.#bearable - 1 / this.#bearable)
    const asksToWait = status === 429 || retryAfterMs !== undefined
    const mayOpen = failures !== Number.POSITIVE_INFINITY
    if (this.#state === 'half_open' || this.#failures >= failures || (asksToWait && mayOpen)) {
      this.#open(now, retryAfterMs)
    }
  }

  #open(now: number, askedMs = 0): void {
    this.#state = 'open'
    this.#openSince ??= now
    this.#openings += 1
    this.#epoch += 1
    const { maxProbeMs: maxMs, random } = this.#policy
    const delayMs = backoff(this.#openings, { firstMs: FIRST_PROBE_MS, maxMs, random: (1 + random()) / 2 })
    this.#probeAt = now + Math.max(delayMs, Math.min(askedMs, MAX_PAUSE_MS))
  }
}

export function readCircuitOptions(circuit: CircuitOptions | false = {}): Readonly<Required<CircuitOptions>> {
  if (circuit === false) return { ...readCircuitOptions(), failures: Number.POSITIVE_INFINITY }
  requireOptions('circuit', circuit, ['failures', 'maxProbeMs', 'lastAttemptsPerSecond'])
  const { failures = 10, maxProbeMs = 30_000, lastAttemptsPerSecond = 1 } = circuit
  requireInteger('circuit.failures', failures, 1)
  requireInteger('circuit.maxProbeMs', maxProbeMs, FIRST_PROBE_MS)
  requireInteger('circuit.lastAttemptsPerSecond', lastAttemptsPerSecond, 1)
  return { failures, maxProbeMs, lastAttemptsPerSecond }
}

/** How many may begin. Every time is in milliseconds, by the monotonic clock. */
export interface Pace {
  room(now: number): number
  roomAt(now: number): number
  take(now: number): void
}

const UNLIMITED: Pace = { room: () => Number.POSITIVE_INFINITY, roomAt: (now) => now, take() {} }

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
