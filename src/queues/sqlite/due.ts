/** The due jobs of a queue: reads them in their order, and says when the next one is due. */

import type { StatementSync } from 'node:sqlite'
import { notingDamage } from '../../sqlite/damage.ts'
import { PHASE } from './counts.ts'
import type { Pushes } from './pushes.ts'
import type { OpenTables } from './tables.ts'

/** What can be read. */
export interface DueJobs {
  /** Due jobs in the order of their places, and those whose time has come among them. */
  pick(queue: number, now: number, limit: number): readonly JobRow[]
  /** When the next job is due; 0 when one is due already, even if the clock was set back since. */
  nextDueAt(queue: number): number | undefined
  /** When the oldest due job came due. */
  oldestDueAt(queue: number, now: number): number | undefined
  /** How many wait for their next attempt; undefined when more than {@link MOST_COUNTED} wait for their time. */
  retrying(queue: number): number | undefined
}

/** Counting them takes about 2 ms. */
const MOST_COUNTED = 10_000

/** The columns of {@link JobRow}, which is an array for each row, because an object takes twice as long. */
const COLUMNS = 'seq, id, due_at, claim_count, first_at, retry_state'
const BODY_OF_JOB = '(SELECT body FROM hookline_queue_bodies AS b WHERE b.seq = j.seq)'
type Bytes = Uint8Array | null
/** A job as it is stored. */
export type JobRow = readonly [
  seq: number,
  id: Bytes,
  dueAt: number,
  claimCount: number,
  firstAt: number | null,
  retryState: Bytes,
  body: Bytes,
]

const DUE = `WHERE queue = ? AND phase = ${PHASE.due} ORDER BY place`
const NOW_DUE = `WHERE queue = ? AND phase = ${PHASE.later} AND due_at <= ? ORDER BY due_at, seq`

/** Creates it over an open file. */
export function createDueJobs({ database, damaged }: OpenTables, pushes: Pushes): DueJobs {
  const due = selectJobs(DUE)
  const nowDue = selectJobs(NOW_DUE)
  const firstDue = database.prepare(`SELECT due_at AS dueAt FROM hookline_queue_jobs ${DUE} LIMIT 1`)
  const firstNowDue = database.prepare(`SELECT due_at AS dueAt FROM hookline_queue_jobs ${NOW_DUE} LIMIT 1`)
  const later = database.prepare(`
    SELECT due_at AS dueAt FROM hookline_queue_jobs WHERE queue = ? AND phase = ${PHASE.later} ORDER BY due_at LIMIT 1`)

  const countLater = database.prepare(`
    SELECT count(*) AS later, count(*) FILTER (WHERE claim_count > 0) AS retrying
    FROM (SELECT claim_count FROM hookline_queue_jobs WHERE queue = ? AND phase = ${PHASE.later} LIMIT ${MOST_COUNTED + 1}) AS bounded`)

  /** Reads jobs with their bodies. Beside a damaged page, the bodies are read one by one. */
  function selectJobs(which: string): (...values: number[]) => JobRow[] {
    const [whole, bodiless] = [BODY_OF_JOB, 'NULL'].map((body) => {
      const statement = database.prepare(`SELECT ${COLUMNS}, ${body} FROM hookline_queue_jobs AS j ${which} LIMIT ?`)
      statement.setReturnArrays(true)
      return statement
    }) as [StatementSync, StatementSync]
    function read(statement: StatementSync, values: readonly number[]): JobRow[] {
      return statement.all(...values) as unknown as JobRow[]
    }
    return (...values) => {
      if (!damaged.has('bodies')) return notingDamage(damaged, 'bodies', () => read(whole, values))
      return read(bodiless, values).map(([seq, id, dueAt, claimCount, firstAt, retryState]) => {
        return [seq, id, dueAt, claimCount, firstAt, retryState, pushes.bodyOf(seq) ?? null]
      })
    }
  }

  /** Due jobs in the order of their places, and those whose time has come among them. */
  function pick(queue: number, now: number, limit: number): readonly JobRow[] {
    const inOrder = due(queue, limit)
    const becameDueNow = nowDue(queue, now, limit)
    if (becameDueNow.length === 0) return inOrder
    const picked: JobRow[] = []
    for (let [a, b] = [0, 0]; picked.length < limit; ) {
      const [one, other] = [inOrder[a], becameDueNow[b]]
      if (other !== undefined && (one === undefined || other[DUE_AT] <= one[DUE_AT])) {
        picked.push(other)
        b += 1
      } else if (one !== undefined) {
        picked.push(one)
        a += 1
      } else {
        break
      }
    }
    return picked
  }

  function dueAtOf(statement: StatementSync, ...values: number[]): number | undefined {
    return statement.get(...values)?.dueAt as number | undefined
  }

  return {
    pick,
    nextDueAt: (queue) => (dueAtOf(firstDue, queue) === undefined ? dueAtOf(later, queue) : 0),
    oldestDueAt(queue, now) {
      const times = [dueAtOf(firstDue, queue), dueAtOf(firstNowDue, queue, now)].filter((at) => at !== undefined)
      return times.length === 0 ? undefined : Math.min(...times)
    },
    retrying(queue) {
      const { later, retrying } = countLater.get(queue) as { readonly later: number; readonly retrying: number }
      return later > MOST_COUNTED ? undefined : retrying
    },
  }
}

const DUE_AT = 2
