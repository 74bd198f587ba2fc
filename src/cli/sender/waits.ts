/** What a run still waits for, and until when. */

import { SILENCE_MS } from './endpoint.ts'
import { type Arrival, type Ledger, SCENARIOS, type Scenario, type SeenMessage } from './messages.ts'

/** What is waited for. */
export interface Wait {
  readonly what: string
  /** In milliseconds of the clock of the arrivals. */
  readonly until: number
}

/** Why a run waits. */
export interface WaitSettings {
  readonly scenarios: readonly Scenario[]
  /** When the run began. */
  readonly startedAt: number
  /** The longest time in which nothing happens. */
  readonly waitMs: number
}

/** Even of a sender whose retries come at once, how long none must come that should not. */
const LEAST_QUIET_MS = 2_000

/** Returns what is still waited for; nothing when the run is over. */
export function findWaits({ messages }: Ledger, settings: WaitSettings, now: number): readonly Wait[] {
  const { scenarios, startedAt, waitMs } = settings
  const waits: Wait[] = []
  const missing = scenarios.length - messages.length
  if (missing > 0) {
    const latest = Math.max(startedAt, ...messages.map(({ arrivals }) => arrivals.at(-1)?.at ?? 0))
    waits.push({ what: `${missing} more ${missing === 1 ? 'message' : 'messages'}`, until: latest + waitMs })
  }
  const known = messages.filter(({ scenario }) => scenario !== undefined)
  const retries = known.flatMap((message) => waitForRetry(message, waitMs) ?? [])
  const quietMs = Math.min(waitMs, LEAST_QUIET_MS + 2 * longestRetry(known, waitMs))
  const quiet = Math.max(0, ...known.map(({ arrivals }) => (arrivals.at(-1)?.endedAt ?? 0) + quietMs))
  waits.push(...retries, { what: 'retries that should not come', until: quiet })
  return waits.filter(({ until }) => until > now)
}

/** The next attempt of a message whose last one was not answered 200, or the end of its last one. */
function waitForRetry({ number, arrivals, scenario }: SeenMessage, waitMs: number): Wait | undefined {
  const last = arrivals.at(-1) as Arrival
  if (last.endedAt === undefined) return { what: `the end of message ${number}`, until: last.at + SILENCE_MS + 1_000 }
  return isRetryDue(last, scenario) ? { what: `a retry of message ${number}`, until: last.endedAt + waitMs } : undefined
}

/** An answer of 4xx ends a message. */
function isRetryDue({ answer: { status = 500 } }: Arrival, scenario: Scenario | undefined): boolean {
  return scenario !== undefined && SCENARIOS[scenario].length > 1 && status >= 500
}

/** The longest time between an attempt and its retry so far; the whole time to wait without any. */
function longestRetry(messages: readonly SeenMessage[], waitMs: number): number {
  const gaps = messages.flatMap(({ arrivals }) =>
    arrivals.slice(1).map(({ at }, index) => at - (arrivals[index]?.endedAt ?? at)),
  )
  return gaps.length === 0 ? waitMs : Math.max(...gaps)
}
