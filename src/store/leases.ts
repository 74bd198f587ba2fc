/** Renews the leases of claims, for stores whose claims can lapse, and reports when a blocked event loop prevented a renewal. */

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

/** A claim, and the time at which it began according to the monotonic clock. */
export interface Held<Claim> {
  readonly claim: Claim
  readonly since: number
}

/** The maximum number of jobs with lapsed claims to remember. */
const MAX_LAPSED = 1_000

export class Leases<Claim extends ClaimedJob> {
  readonly #store: QueueStore<Claim>
  readonly #leaseMs: number
  readonly #everyMs: number
  readonly #list: () => readonly Held<Claim>[]
  readonly #options: ReportOptions
  readonly #alarm: ReturnType<typeof createAlarm>
  /** How long the event loop was blocked when this process let the claim of a job lapse, keyed by the id of the job. */
  readonly #blockedMsById = new Map<string, number>()
  /** When the next renewal is due, according to the monotonic clock. */
  #dueAt: number | undefined
  /** The renewal that is in progress. */
  #renewal: Promise<void> | undefined

  /** @param list Lists the claims of this process. */
  constructor(store: QueueStore<Claim>, leaseMs: number, list: () => readonly Held<Claim>[], options: ReportOptions) {
    this.#store = store
    this.#leaseMs = leaseMs
    this.#everyMs = store.renewMs ?? Math.floor(leaseMs / 3)
    this.#list = list
    this.#options = options
    this.#alarm = createAlarm(options.clock, () => this.#onTime())
  }

  start(): void {
    if (this.#dueAt !== undefined) return
    const { clock } = this.#options
    this.#dueAt = clock.monotonic() + this.#everyMs
    this.#alarm.set(clock.now() + this.#everyMs)
  }

  stop(): void {
    this.#dueAt = undefined
    this.#alarm.set(undefined)
  }

  /** Returns how long the event loop was blocked when this process let an earlier claim of this job lapse; undefined if none lapsed. */
  blockedMsOf(id: string): number | undefined {
    return this.#blockedMsById.get(id)
  }

  async close(): Promise<void> {
    this.stop()
    await this.#renewal
  }

  #onTime(): void {
    const held = this.#list()
    const now = this.#options.clock.monotonic()
    this.#reportLapses(held, now, now - (this.#dueAt ?? now))
    this.#dueAt = undefined
    this.#renewal ??= this.#renew(held.map(({ claim }) => claim))
    this.start()
  }

  /** Reports claims that lapsed because the timer fired too late. Another process may have claimed their jobs. */
  #reportLapses(held: readonly Held<Claim>[], now: number, blockedMs: number): void {
    const over = held.filter(({ since }) => now - since >= this.#leaseMs)
    if (blockedMs < this.#leaseMs - this.#everyMs || over.length === 0) return
    for (const { claim } of over) {
      this.#blockedMsById.delete(claim.id)
      this.#blockedMsById.set(claim.id, blockedMs)
    }
    for (const id of [...this.#blockedMsById.keys()].slice(0, -MAX_LAPSED)) this.#blockedMsById.delete(id)
    const { name, onError } = this.#options
    const found = over.length === 1 ? '1 lease has expired' : `${over.length} leases have expired`
    const advice =
      'Move the blocking work to a worker thread, or raise `leaseMs`. The jobs of these leases may be handled again.'
    const message = `Queue ${name}: ${found}, because the event loop was blocked for ${seconds(blockedMs)}. ${advice}`
    onError(new HooklineError('lease_lapsed', message))
  }

  async #renew(claims: readonly Claim[]): Promise<void> {
    try {
      await this.#store.renew?.(claims)
    } catch (error) {
      this.#options.onError(error)
    } finally {
      this.#renewal = undefined
    }
  }
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`
}
