/** The way out: what became of jobs that end together is written together. */

import { type Batches, createBatches } from './pg-boss-batches.ts'
import type { Connection } from './pg-boss-connection.ts'
import { isFaultOfData } from './pg-boss-error.ts'
import type { Settings } from './pg-boss-options.ts'
import { createStamps, type Data, delayUntil, encode, priorityAt, RETRIED_LATER, secondsOf } from './pg-boss-row.ts'
import type { Statements } from './pg-boss-sql.ts'
import type { Outcome } from './queue.ts'

/** A job that pg-boss handed out; only this attempt of it is settled. */
export interface Claim {
  readonly id: string
  readonly attempt: number
  readonly firstAt: number
  /** How many fetches before this one do not count. */
  readonly before: number
  /** How long it is held without a sign of life, in milliseconds. */
  readonly leaseMs: number
  /** What its row is to say, when what it says cannot be read. */
  readonly instead?: Data
}

/** Carries out what became of a job. */
export type Settle = (claim: Claim, outcome: Outcome) => Promise<void>

type Settled<Kind> = readonly [claim: Claim, outcome: Kind]
type Retry = Extract<Outcome, { readonly retryAt: number }>
type Dead = Extract<Outcome, { readonly dead: string }>

/** Makes it. */
export function createSettle(connection: Connection, statements: Statements, settings: Settings): Settle {
  const { name, knownForMs, clock } = settings
  const stamp = createStamps(clock)

  const done = gather<Claim>((claims) => run(statements.done, [...heldBy(claims), secondsOf(knownForMs)]))
  const retried = gather<Settled<Retry>>((settled) => run(statements.retry, [JSON.stringify(settled.map(retriedRow))]))
  const buried = gather<Settled<Dead>>((settled) => run(statements.bury, [JSON.stringify(settled.map(buriedRow))]))

  async function run(statement: string, values: readonly unknown[]): Promise<void> {
    await connection.call(({ db }) => db.executeSql(statement, [name, ...values]))
  }

  function retriedRow([{ id, attempt, firstAt }, { retryAt, state }]: Settled<Retry>) {
    const at = Math.max(stamp(), Math.floor(retryAt * 1000)) + RETRIED_LATER
    const data = { at, firstAt, ...stateOf(state) }
    return { id, attempt, ms: delayUntil(retryAt, clock), priority: priorityAt(at), data }
  }

  function buriedRow([{ id, attempt, instead }, { dead, state }]: Settled<Dead>) {
    const data = { ...instead, reason: encode(Buffer.from(dead)), ...stateOf(state) }
    return { id, attempt, died: timestampOf(stamp()), whole: instead !== undefined, data }
  }

  return (claim, outcome) => {
    if ('done' in outcome) return done.add(claim)
    if ('retryAt' in outcome) return retried.add([claim, outcome])
    return buried.add([claim, outcome])
  }
}

/** The ids, and ids with attempts: what the statements take that fence by attempt. */
export function heldBy(claims: readonly Claim[]): [ids: string[], attempts: string[]] {
  return [claims.map(({ id }) => id), claims.map(({ id, attempt }) => `${id}:${attempt}`)]
}

function gather<Item>(send: (items: readonly Item[]) => Promise<void>): Batches<Item> {
  return createBatches({ send, weigh: () => 1, most: MOST, isFaultOfItems: isFaultOfData })
}

const MOST = 1000

function stateOf(state: Uint8Array | undefined): { readonly state?: string } {
  return state === undefined ? {} : { state: encode(state) }
}

/** In UTC, from microseconds since the epoch. */
function timestampOf(at: number): string {
  const rest = String(at % 1000).padStart(3, '0')
  return new Date(Math.floor(at / 1000)).toISOString().replace('Z', rest)
}
