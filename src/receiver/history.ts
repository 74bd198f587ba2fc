/** What happened to a message of the inbox so far: kept with it in the queue between two attempts. */

import type { HooklineError, HooklineErrorCode } from '../protocol/error.ts'
import { isObject } from '../protocol/json.ts'
import type { ClaimedJob } from '../queues/queue.ts'

/** Why a message is dead: the code of its last error; or processes died of it; or it cannot be read. */
export type DeadReason = HooklineErrorCode | 'crashed' | 'unreadable'

/** What one handler threw. */
export interface KeptCause {
  /** `TypeError`, for instance; the type of what is no Error. */
  readonly name: string
  /** At most 500 characters of it. */
  readonly message: string
  /** At most 2 000 characters of it. */
  readonly stack?: string
}

/** Why an attempt failed, as it is kept. */
export interface KeptError {
  readonly code: HooklineErrorCode
  readonly message: string
  /** The field at fault, as a dotted path, where there is one. */
  readonly path?: string
  /** What handlers threw, at most 10 of them; or what else was behind it. */
  readonly causes: readonly KeptCause[]
}

/** What happened so far. Plain JSON. */
export interface History {
  /** How often handlers were tried and failed. */
  readonly attempts: number
  /** How often it went back untouched because the process was shut down. */
  readonly releases: number
  /** Why the latest attempt failed. */
  readonly error?: KeptError
}

/** Writes it, for the queue to keep. */
export function writeHistory(history: History): Uint8Array {
  return Buffer.from(JSON.stringify(history))
}

/** Reads what {@link writeHistory} wrote. When it cannot be read, every delivery before was an attempt. */
export function readHistory({ state, deliveries }: Pick<ClaimedJob, 'state' | 'deliveries'>): History {
  if (state === undefined) return NOTHING
  const history = parse(state)
  return history ?? { attempts: deliveries - 1, releases: 0 }
}

/** What is known of a dead message: nothing when the queue put it among the dead itself. */
export function readLastHistory(state: Uint8Array | undefined): History {
  return (state && parse(state)) ?? NOTHING
}

const NOTHING: History = { attempts: 0, releases: 0 }
const decoder = new TextDecoder()

function parse(state: Uint8Array): History | undefined {
  try {
    const history: unknown = JSON.parse(decoder.decode(state))
    const isWhole = isObject(history) && Number.isInteger(history.attempts) && Number.isInteger(history.releases)
    return isWhole ? (history as unknown as History) : undefined
  } catch {
    return undefined
  }
}

/** An error, as it is kept. */
export function keepError({ code, message, path, cause }: HooklineError): KeptError {
  const thrown: readonly unknown[] = cause instanceof AggregateError ? cause.errors : [cause]
  const causes = thrown.filter((each) => each !== undefined).slice(0, MOST_CAUSES)
  return { code, message, ...(path !== undefined && { path }), causes: causes.map(keepCause) }
}

const MOST_CAUSES = 10

function keepCause(thrown: unknown): KeptCause {
  try {
    if (!(thrown instanceof Error)) return { name: typeof thrown, message: cut(thrown, 500) }
    const { name, message, stack } = thrown
    return { name: cut(name, 100), message: cut(message, 500), ...(stack && { stack: cut(stack, 2_000) }) }
  } catch {
    return { name: typeof thrown, message: 'What was thrown cannot be written.' }
  }
}

function cut(value: unknown, length: number): string {
  return String(value).slice(0, length)
}
