/** Which requests of a sender carry the same message, and what each is answered. */

import { createHash } from 'node:crypto'
import { isObject } from '../../message/json.ts'

/** What a request is answered. */
export interface Answer {
  /** Undefined: nothing, until the sender gives up. */
  readonly status?: number
  /** How long it takes. Default: no time. */
  readonly delayMs?: number
}

/** Messages with one script of answers: for the first attempt, the second and so on. The last is repeated. */
export const SCENARIOS = {
  taken: [{ status: 200 }],
  slow: [{ status: 200, delayMs: 4_000 }, { status: 200 }],
  failed: [{ status: 500 }, { status: 500 }, { status: 200 }],
  unavailable: [{ status: 503 }, { status: 200 }],
  silent: [{}, { status: 200 }],
  invalid: [{ status: 400 }, { status: 200 }],
  unauthorized: [{ status: 401 }, { status: 200 }],
  missing: [{ status: 404 }, { status: 200 }],
} as const satisfies Readonly<Record<string, readonly Answer[]>>

/** The name of a scenario. */
export type Scenario = keyof typeof SCENARIOS

/** One request of a sender that was read to its end. */
export interface Request {
  readonly method: string
  /** Without the query, which may be the user's own, or hold a token. */
  readonly path: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly bytes: Buffer
  /** When its head arrived, in milliseconds of one clock. */
  readonly at: number
}

/** A request and its end. */
export interface Arrival extends Request {
  readonly answer: Answer
  /** When the answer was written, or the connection ended before; undefined while it waits. */
  endedAt?: number
  /** Whether the sender got the answer. */
  isAnswered?: boolean
}

/** A message and its attempts. */
export interface SeenMessage {
  /** From 1. */
  readonly number: number
  /** Undefined for one more than there are scenarios. */
  readonly scenario: Scenario | undefined
  readonly arrivals: Arrival[]
}

/** Everything that arrived. */
export interface Ledger {
  readonly messages: readonly SeenMessage[]
  /** All requests, those without a message included. */
  readonly arrivals: readonly Arrival[]
  /** The message of each request; undefined for a request without one. */
  messageOf(arrival: Arrival): SeenMessage | undefined
  /** Notes a request, and decides what it is answered. */
  add(request: Request): Arrival
}

/** The most requests that are kept. The rest is answered 200 and forgotten. */
const LIMIT = 1_000

/**
 * Creates an empty ledger.
 *
 * @param scenarios What happens to the first new message, the second and so on.
 * @param path The path of the URL. Requests to others carry no message.
 */
export function createLedger(scenarios: readonly Scenario[], path: string): Ledger {
  const messages: SeenMessage[] = []
  const arrivals: Arrival[] = []
  const known = new Map<string, SeenMessage>()
  const owners = new Map<Arrival, SeenMessage>()

  function find(bytes: Buffer): SeenMessage {
    const keys = identify(bytes)
    const found = keys.map((key) => known.get(key)).find((message) => message !== undefined)
    const scenario = scenarios[messages.length]
    const message = found ?? { number: messages.length + 1, scenario, arrivals: [] }
    if (found === undefined) messages.push(message)
    for (const key of keys) known.set(key, message)
    return message
  }

  return {
    messages,
    arrivals,
    messageOf: (arrival) => owners.get(arrival),
    add(request) {
      if (arrivals.length === LIMIT) return { ...request, answer: { status: 200 } }
      const refusal = refuse(request, path)
      const message = refusal === undefined ? find(request.bytes) : undefined
      const answer = refusal ?? answerOf(message as SeenMessage)
      const arrival: Arrival = { ...request, answer }
      arrivals.push(arrival)
      if (message !== undefined) owners.set(arrival, message)
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

function answerOf({ scenario, arrivals }: SeenMessage): Answer {
  const answers: readonly Answer[] = scenario === undefined ? SCENARIOS.taken : SCENARIOS[scenario]
  return answers[Math.min(arrivals.length, answers.length - 1)] ?? { status: 200 }
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
