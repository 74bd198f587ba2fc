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

export class Leases<Claim extends ClaimedJob> {
  readonly #store: QueueStore<Claim>
  readonly #leaseMs: number
  readonly #everyMs: number
  readonly #list: () => readonly Held<Claim>[]
  readonly #options: ReportOptions
  readonly #alarm: ReturnType<typeof createAlarm>
  /** By the id of the job, how long the event loop was blocked. */
  readonly #lapsed = new Map<string, number>()
  /** The next renewal, by the monotonic time. */
  #dueAt: number | undefined
  /** In flight. */
  #renewal: Promise<void> | undefined

  /** @param list Lists what this process has claimed. */
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

  /** Returns how long the event loop was blocked when an earlier claim of this job lapsed here. */
  blockedMsOf(id: string): number | undefined {
    return this.#lapsed.get(id)
  }

  async close(): Promise<void> {
    this.stop()
    await this.#renewal
  }

  #onTime(): void {
    const held = this.#list()
    const now = this.#options.clock.monotonic()
    this.#noteLapses(held, now, now - (this.#dueAt ?? now))
    this.#dueAt = undefined
    this.#renewal ??= this.#renew(held.map(({ claim }) => claim))
    this.start()
  }

  /** When the timer fired so late that what was renewed last is over, another process may have claimed those jobs. */
  #noteLapses(held: readonly Held<Claim>[], now: number, blockedMs: number): void {
    const over = held.filter(({ since }) => now - since >= this.#leaseMs)
    if (blockedMs < this.#leaseMs - this.#everyMs || over.length === 0) return
    for (const { claim } of over) {
      this.#lapsed.delete(claim.id)
      this.#lapsed.set(claim.id, blockedMs)
    }
    for (const id of [...this.#lapsed.keys()].slice(0, -MAX_LAPSED)) this.#lapsed.delete(id)
    const { name, onError } = this.#options
    const found = `an event loop blocked for ${seconds(blockedMs)}, leases over: ${over.length}`
    const advice = 'Move such work to a worker thread, or raise leaseMs: these jobs may be handled again.'
    const message = `Queue ${name}: leases must be renewed every ${seconds(this.#everyMs)}. Got ${found}. ${advice}`
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
