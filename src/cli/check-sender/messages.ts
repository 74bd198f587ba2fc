/** Which requests of a sender carry the same message, what each is answered, and what is still waited for. */

import { createHash } from 'node:crypto'
import { isObject } from '../../message/json.ts'
import { counted } from '../terminal.ts'

/** What a request is answered, after `delayMs`. Without a status: nothing, until the sender gives up. */
interface Answer {
  readonly status?: number
  readonly delayMs?: number
}

const SCENARIOS = {
  taken: [{ status: 200 }],
  slow: [{ status: 200, delayMs: 4_000 }, { status: 200 }],
  failed: [{ status: 500 }, { status: 500 }, { status: 200 }],
  unavailable: [{ status: 503 }, { status: 200 }],
  silent: [{}, { status: 200 }],
  invalid: [{ status: 400 }, { status: 200 }],
  unauthorized: [{ status: 401 }, { status: 200 }],
  missing: [{ status: 404 }, { status: 200 }],
} as const satisfies Readonly<Record<string, readonly Answer[]>>

export type Scenario = keyof typeof SCENARIOS

/** The scenarios that are needed, in their order; one message without any. */
export function listScenarios(needed: readonly Scenario[]): readonly Scenario[] {
  const names = Object.keys(SCENARIOS) as Scenario[]
  return needed.length === 0 ? ['taken'] : names.filter((name) => needed.includes(name))
}

interface Request {
  readonly method: string
  /** Without the query, which may be the user's own, or hold a token. */
  readonly path: string
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly bytes: Buffer
  /** When its head arrived, in milliseconds of one clock. */
  readonly at: number
}

export interface Arrival extends Request {
  readonly answer: Answer
  /** Undefined for a request without a message. */
  readonly message: SeenMessage | undefined
  /** When the answer was written, or the connection ended before; undefined while it waits. */
  endedAt?: number
  isAnswered?: boolean
}

export interface SeenMessage {
  readonly number: number
  /** Undefined for one more than there are scenarios. */
  readonly scenario: Scenario | undefined
  readonly arrivals: Arrival[]
}

export interface Ledger {
  /** The path of the URL. Requests to others carry no message. */
  readonly path: string
  readonly messages: readonly SeenMessage[]
  /** All requests, those without a message included. */
  readonly arrivals: readonly Arrival[]
  add(request: Request): Arrival
}

/** The most requests that are kept. The rest is answered 200 and forgotten. */
const LIMIT = 1_000

export function createLedger(scenarios: readonly Scenario[], path: string): Ledger {
  const messages: SeenMessage[] = []
  const arrivals: Arrival[] = []
  const known = new Map<string, SeenMessage>()

  function find(bytes: Buffer): SeenMessage {
    const keys = identify(bytes)
    let message = keys.map((key) => known.get(key)).find((found) => found !== undefined)
    if (message === undefined) {
      message = { number: messages.length + 1, scenario: scenarios[messages.length], arrivals: [] }
      messages.push(message)
    }
    for (const key of keys) known.set(key, message)
    return message
  }

  return {
    path,
    messages,
    arrivals,
    add(request) {
      if (arrivals.length === LIMIT) return { ...request, message: undefined, answer: { status: 200 } }
      const refusal = refuse(request, path)
      const message = refusal === undefined ? find(request.bytes) : undefined
      const script: readonly Answer[] = SCENARIOS[message?.scenario ?? 'taken']
      const answer = refusal ?? script[Math.min(message?.arrivals.length ?? 0, script.length - 1)] ?? {}
      const arrival: Arrival = { ...request, message, answer }
      arrivals.push(arrival)
      message?.arrivals.push(arrival)
      return arrival
    },
  }
}

function refuse({ method, path, bytes }: Request, expected: string): Answer | undefined {
  if (path !== expected) return { status: 404 }
  if (method !== 'POST') return { status: 405 }
  return bytes.length === 0 ? { status: 400 } : undefined
}

/**
 * What tells a message from others: its bytes; for senders that serialise it again for each attempt, its fields in any order; and
 * its `messageId`, if more than that has changed.
 */
function identify(bytes: Buffer): readonly string[] {
  const keys = [`bytes ${digest(bytes)}`]
  try {
    const value: unknown = JSON.parse(bytes.toString())
    keys.push(`json ${digest(JSON.stringify(value, sortFields))}`)
    if (isObject(value) && typeof value.messageId === 'string') keys.push(`messageId ${value.messageId}`)
  } catch {
    // It is no JSON, or nested too deeply to be written again.
  }
  return keys
}

function sortFields(_key: string, value: unknown): unknown {
  return isObject(value)
    ? Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)))
    : value
}

function digest(content: Buffer | string): string {
  return createHash('sha256').update(content).digest('hex')
}

/** The longest that a sender is left without an answer. */
export const SILENCE_MS = 10_000
/** Even of a sender whose retries come at once, how long none must come that should not. */
const MIN_QUIET_MS = 2_000

/** What is waited for, until a time of the clock of the arrivals. */
export interface Wait {
  readonly what: string
  readonly until: number
}

/** Returns what is still waited for; nothing when the run is over. `waitMs` is the longest time in which nothing happens. */
export function findWaits(
  { messages }: Ledger,
  { count, startedAt, waitMs }: { readonly count: number; readonly startedAt: number; readonly waitMs: number },
  now: number,
): readonly Wait[] {
  const waits: Wait[] = []
  const missing = count - messages.length
  if (missing > 0) {
    const latest = Math.max(startedAt, ...messages.map(({ arrivals }) => arrivals.at(-1)?.at ?? 0))
    waits.push({ what: counted(missing, 'more message'), until: latest + waitMs })
  }
  const known = messages.filter(({ scenario }) => scenario !== undefined)
  for (const { number, arrivals, scenario } of known) {
    const { at, endedAt, answer } = arrivals.at(-1) as Arrival
    const isRetryDue = scenario !== 'taken' && (answer.status ?? 500) >= 500
    if (endedAt === undefined) waits.push({ what: `the end of message ${number}`, until: at + SILENCE_MS + 1_000 })
    else if (isRetryDue) waits.push({ what: `a retry of message ${number}`, until: endedAt + waitMs })
  }
  const gaps = known.flatMap(({ arrivals }) =>
    arrivals.slice(1).map(({ at }, index) => at - (arrivals[index]?.endedAt ?? at)),
  )
  const longestRetry = gaps.length === 0 ? waitMs : Math.max(...gaps)
  const quietMs = Math.min(waitMs, MIN_QUIET_MS + 2 * longestRetry)
  const lastEnd = Math.max(...known.map(({ arrivals }) => arrivals.at(-1)?.endedAt ?? 0))
  waits.push({ what: 'retries that should not come', until: lastEnd + quietMs })
  return waits.filter(({ until }) => until > now)
}
