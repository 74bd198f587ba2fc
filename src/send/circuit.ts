/**
 * The circuit of a URL. While the circuit is closed, messages are sent; while it is open, they are held; while it is half-open, one message
 * probes the URL. After a successful probe, only one attempt may run at a time. This limit then grows with each success and shrinks with
 * each failure, and never exceeds the concurrency of the destination.
 */

import { backoff } from '../kit/backoff.ts'
import { requireInteger, requireOptions } from '../kit/checks.ts'
import { isTransient } from '../kit/retry.ts'
import { createTokenBucket, type TokenBucket, UNLIMITED } from '../kit/token-bucket.ts'
import type { Attempt } from './sender-types.ts'

/**
 * The state of the circuit of a URL. `closed`: messages are sent. `open`: messages are held, because the URL failed too often in a row or
 * asked to wait. `half_open`: one message is posted to probe the URL; a success closes the circuit.
 */
export type CircuitState = 'closed' | 'open' | 'half_open'

interface CircuitTimes {
  /** The webhook URL. Its query is shown as `?…`, because it may hold a token. */
  readonly url: string
  /** When the circuit of the URL opened; absent while the circuit is closed. */
  readonly openSince?: Date
  /** When the next message is posted to probe the URL; set only while the circuit is `open`. */
  readonly probeAt?: Date
}

/** The health of a URL. The counts cover the attempts of this process since the URL was added to the settings. */
export interface UrlHealth extends CircuitTimes {
  readonly circuit: CircuitState
  /** The number of attempts that the URL accepted. */
  readonly delivered: number
  /** The number of attempts that failed. */
  readonly failed: number
  /** The last attempt that failed; undefined while none has failed. */
  readonly lastFailure?: Pick<Attempt, 'at' | 'status' | 'error' | 'reason'>
}

/** The event of `hookline:circuit` and `onCircuit`: a circuit opened or closed. */
export interface CircuitEvent extends CircuitTimes {
  readonly state: CircuitState
  /** The attempt that opened or closed the circuit. */
  readonly cause: Attempt
}

/** Options that set when circuits open, and how often they probe their URLs. */
export interface CircuitOptions {
  /** The number of failed attempts in a row after which a circuit opens. Default 10. */
  readonly failures?: number
  /**
   * The maximum time between two probes, in milliseconds. The first probe is made at most a second after the circuit
   * opens. Each probe is made later if a `Retry-After` asks for it. Default 30 000.
   */
  readonly maxProbeMs?: number
  /**
   * The maximum number of messages per second that get a last attempt. A message gets it if the four hours in which it
   * is retried end while all circuits are open. Default 1.
   */
  readonly lastAttemptsPerSecond?: number
}

export interface CircuitPolicy extends Required<Pick<CircuitOptions, 'failures' | 'maxProbeMs'>> {
  readonly maxPerSecond: number | undefined
  readonly concurrency: number
  readonly random: () => number
}

const FIRST_PROBE_MS = 1_000

/** The maximum time for which a `Retry-After` pauses a URL, in milliseconds. The message whose response contained it may wait longer. */
const MAX_PAUSE_MS = 30 * 60_000

/** The circuit of one URL. All times are in milliseconds on the monotonic clock. */
export class Circuit {
  readonly #policy: CircuitPolicy
  readonly #rate: TokenBucket
  #state: CircuitState = 'closed'
  #openSince: number | undefined
  #probeAt = 0
  #openingsSinceSuccess = 0
  /** The number of openings. An attempt that began before the latest opening is ignored, because its result may be out of date. */
  #epoch = 0
  #failuresInRow = 0
  #active = 0
  /** The maximum number of attempts at a time; fractional while it grows. It equals the concurrency until the circuit first opens. */
  #maxActive: number

  constructor(policy: CircuitPolicy) {
    this.#policy = policy
    this.#rate = policy.maxPerSecond === undefined ? UNLIMITED : createTokenBucket(policy.maxPerSecond)
    this.#maxActive = policy.concurrency
  }

  get state(): CircuitState {
    return this.#state
  }

  /** When the circuit opened; undefined while it is closed. */
  get openSince(): number | undefined {
    return this.#openSince
  }

  /** When the circuit next probes the URL; undefined unless the circuit is open. */
  get probeAt(): number | undefined {
    return this.#state === 'open' ? this.#probeAt : undefined
  }

  /** Returns how many attempts may begin now. */
  room(now: number): number {
    if (this.#state === 'half_open') return 0
    const tokens = this.#rate.count(now)
    if (this.#state === 'open') return now >= this.#probeAt ? Math.min(1, tokens) : 0
    return Math.max(0, Math.min(Math.floor(this.#maxActive) - this.#active, tokens))
  }

  /** Returns the earliest time at which another attempt may begin; undefined if an attempt under way must end first. */
  roomAt(now: number): number | undefined {
    const isFull = this.#state === 'closed' && this.#active >= Math.floor(this.#maxActive)
    if (isFull || this.#state === 'half_open') return undefined
    return Math.max(this.#rate.nextAt(now), this.probeAt ?? now)
  }

  /**
   * Begins an attempt, even if `room` is 0. The caller must call the returned function when the attempt ends; that function returns whether
   * the circuit opened or closed.
   */
  begin(now: number): (attempt: Attempt, now: number) => boolean {
    this.#rate.take(now)
    this.#active += 1
    if (this.#state === 'open') this.#state = 'half_open'
    const epoch = this.#epoch
    return (attempt, endedAt) => {
      this.#active -= 1
      const wasClosed = this.#openSince === undefined
      if (epoch === this.#epoch) this.#record(attempt, endedAt)
      return wasClosed !== (this.#openSince === undefined)
    }
  }

  #record(attempt: Attempt, now: number): void {
    const { status, error } = attempt
    if (error === 'closed') {
      // A probe that `close` ended says nothing about the URL, so another probe follows.
      if (this.#state === 'half_open') this.#state = 'open'
    } else if (status === undefined || isTransient(status)) this.#recordFailure(attempt, now)
    else this.#recordSuccess()
  }

  #recordSuccess(): void {
    const { concurrency } = this.#policy
    this.#maxActive = this.#state === 'half_open' ? 1 : Math.min(concurrency, this.#maxActive + 1 / this.#maxActive)
    this.#failuresInRow = 0
    this.#openingsSinceSuccess = 0
    this.#state = 'closed'
    this.#openSince = undefined
  }

  #recordFailure({ status, retryAfterMs }: Attempt, now: number): void {
    const { failures, concurrency } = this.#policy
    this.#failuresInRow += 1
    if (this.#maxActive < concurrency) this.#maxActive = Math.max(1, this.#maxActive - 1 / this.#maxActive)
    const asksToWait = status === 429 || retryAfterMs !== undefined
    const mayOpen = failures !== Number.POSITIVE_INFINITY
    if (this.#state === 'half_open' || this.#failuresInRow >= failures || (asksToWait && mayOpen)) {
      this.#trip(now, retryAfterMs)
    }
  }

  #trip(now: number, askedMs = 0): void {
    this.#state = 'open'
    this.#openSince ??= now
    this.#openingsSinceSuccess += 1
    this.#epoch += 1
    const { maxProbeMs: maxMs, random } = this.#policy
    const times = { firstMs: FIRST_PROBE_MS, maxMs, random: (1 + random()) / 2 }
    const delayMs = backoff(this.#openingsSinceSuccess, times)
    this.#probeAt = now + Math.max(delayMs, Math.min(askedMs, MAX_PAUSE_MS))
  }
}

/** Checks and completes the options. With false, failures are still counted, but never open a circuit. */
export function readCircuitOptions(circuit: CircuitOptions | false = {}): Readonly<Required<CircuitOptions>> {
  if (circuit === false) return { ...readCircuitOptions(), failures: Number.POSITIVE_INFINITY }
  requireOptions('circuit', circuit, ['failures', 'maxProbeMs', 'lastAttemptsPerSecond'])
  const { failures = 10, maxProbeMs = 30_000, lastAttemptsPerSecond = 1 } = circuit
  requireInteger('circuit.failures', failures, 1)
  requireInteger('circuit.maxProbeMs', maxProbeMs, FIRST_PROBE_MS)
  requireInteger('circuit.lastAttemptsPerSecond', lastAttemptsPerSecond, 1)
  return { failures, maxProbeMs, lastAttemptsPerSecond }
}
