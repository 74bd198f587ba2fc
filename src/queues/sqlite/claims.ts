/** Claims: which due jobs are claimed next, when the next one is due, and how a claim ends. */

import type { StatementSync } from 'node:sqlite'
import { createGroups } from './groups.ts'
import { IS_LATER, NO_ID, type OpenTables, PHASE, type QueueRow, textOfId } from './tables.ts'
import type { Claim, ClaimRef, Claims, Finish, Group, Release, UnreadableRow } from './thread-messages.ts'

const MAX_COUNTED = 10_000

type Bytes = Uint8Array | null
/** A row is an array, because an object takes twice as long. */
type JobRow = readonly [
  seq: number,
  group: Group,
  phase: number,
  id: Bytes,
  body: Bytes,
  dueAt: number,
  claimCount: number,
  firstAt: number | null,
  retryState: Bytes,
]
const JOB = `seq, in_group, phase, id, (SELECT body FROM hookline_queue_bodies AS b WHERE b.seq = j.seq), due_at, claim_count,
  first_at, retry_state FROM hookline_queue_jobs AS j`

const DUE = `WHERE queue = ? AND phase = ${PHASE.due} ORDER BY place`
const LATER = `WHERE queue = ? AND ${IS_LATER}`
const NOW_DUE = `${LATER} AND due_at <= ? ORDER BY due_at, seq`

export function createClaims({ database, owner }: OpenTables) {
  const groups = createGroups({ database })
  const due = database.prepare(`SELECT ${JOB} ${DUE} LIMIT ?`)
  const nowDue = database.prepare(`SELECT ${JOB} ${NOW_DUE} LIMIT ?`)
  for (const statement of [due, nowDue]) statement.setReturnArrays(true)
  const firstDue = database.prepare(`SELECT due_at AS dueAt FROM hookline_queue_jobs ${DUE} LIMIT 1`)
  const firstNowDue = database.prepare(`SELECT due_at AS dueAt FROM hookline_queue_jobs ${NOW_DUE} LIMIT 1`)
  const firstLater = database.prepare(
    `SELECT due_at AS dueAt FROM hookline_queue_jobs ${LATER} ORDER BY due_at LIMIT 1`,
  )
  const countLater = database.prepare(`
    SELECT count(*) AS later, count(*) FILTER (WHERE claim_count > 0) AS retrying
    FROM (SELECT claim_count FROM hookline_queue_jobs ${LATER} LIMIT ${MAX_COUNTED + 1}) AS bounded`)

  const join = database.prepare(
    'UPDATE hookline_queue_jobs SET phase = ?, line = in_group, place = coalesce(?, place) WHERE seq = ?',
  )
  const markClaimed = database.prepare(`
    UPDATE hookline_queue_jobs
    SET phase = ${PHASE.claimed}, owner = ${owner}, claim = ?, claim_count = claim_count + 1, first_at = coalesce(first_at, ?)
    WHERE seq BETWEEN ? AND ?`)
  const setUnreadable = database.prepare(`
    UPDATE hookline_queue_jobs SET phase = ${PHASE.deadLetter}, line = NULL, place = ?, due_at = ?, reason = ? WHERE seq = ?`)

  // Every statement that ends a claim names it, so a claim that has ended already changes nothing.
  const CLAIMED = `WHERE seq = ? AND phase = ${PHASE.claimed} AND owner = ${owner} AND claim = ?`
  const CLAIMED_RUN = CLAIMED.replace('seq = ?', 'seq BETWEEN ? AND ?')
  const remember = database.prepare(`
    INSERT OR REPLACE INTO hookline_queue_completed (seq, id, completed_at)
    SELECT seq, id, ? FROM hookline_queue_jobs ${CLAIMED_RUN}`)
  const keep = database.prepare(`
    INSERT INTO hookline_queue_history (queue, handled_at, seq, in_group, bytes, kept)
    SELECT queue, ?, seq, in_group, (SELECT length(body) FROM hookline_queue_bodies AS b WHERE b.seq = j.seq), ?
    FROM hookline_queue_jobs AS j ${CLAIMED_RUN} RETURNING bytes`)
  const remove = database.prepare(`DELETE FROM hookline_queue_jobs ${CLAIMED_RUN}`)
  const removeBodies = database.prepare(`
    DELETE FROM hookline_queue_bodies AS b
    WHERE seq BETWEEN ? AND ? AND NOT EXISTS (SELECT 1 FROM hookline_queue_jobs WHERE seq = b.seq)`)
  const end = database.prepare(`
    UPDATE hookline_queue_jobs
    SET phase = ?, line = CASE WHEN ? THEN line END, place = coalesce(?, place), due_at = ?, retry_state = ?, reason = ?, owner = NULL, claim = NULL ${CLAIMED}`)
  const save = database.prepare(`UPDATE hookline_queue_jobs SET retry_state = ? ${CLAIMED}`)
  const RELEASED = `UPDATE hookline_queue_jobs SET phase = ${PHASE.due}, owner = NULL, claim = NULL`
  const UNCOUNTED = `${RELEASED}, claim_count = claim_count - 1, first_at = CASE WHEN claim_count > 1 THEN first_at END`
  const release = database.prepare(`${RELEASED} ${CLAIMED}`)
  const releaseUncounted = database.prepare(`${UNCOUNTED} ${CLAIMED}`)
  const undo = database.prepare(`${UNCOUNTED} ${CLAIMED.replace('seq', 'queue')}`)

  function pick(row: QueueRow, now: number, limit: number): readonly JobRow[] {
    const { queue } = row
    const { line = [], alone: becameDue = [] } = Object.groupBy(
      nowDue.all(queue, now, limit) as unknown as JobRow[],
      ([, group]) => (group === null ? 'alone' : 'line'),
    )
    for (const [seq, group, phase] of line) {
      if (phase === PHASE.held) join.run(PHASE.due, null, seq)
      else join.run(groups.phaseIn(queue, group), row.next++, seq)
    }
    const inOrder = due.all(queue, limit) as unknown as JobRow[]
    if (becameDue.length === 0) return inOrder
    return [...becameDue, ...inOrder].sort(([, , , , , one], [, , , , , other]) => one - other).slice(0, limit)
  }

  function failUnreadable(row: QueueRow, [seq, group, , bytes]: JobRow, now: number): UnreadableRow {
    const id = textOfId(bytes)
    const reason = `unreadable: ${id === undefined ? 'its id is not a UUID of 16 bytes' : 'its body is missing'}`
    setUnreadable.run(row.next++, now, Buffer.from(reason), seq)
    groups.advance(row.queue, group)
    row.waiting -= 1
    row.deadLetters += 1
    return { id: id ?? NO_ID, reason }
  }

  function becameDue(row: QueueRow, { changes }: { readonly changes: number | bigint }): void {
    row.active -= Number(changes)
    row.waiting += Number(changes)
  }

  function dueAtOf(statement: StatementSync, ...values: number[]): number | undefined {
    return statement.get(...values)?.dueAt as number | undefined
  }

  /** 0 when a job is due already, even if the clock was set back since. */
  function nextDueAt(queue: number): number | undefined {
    return dueAtOf(firstDue, queue) === undefined ? dueAtOf(firstLater, queue) : 0
  }

  return {
    claim(row: QueueRow, { now, limit, claim }: Claim): Claims {
      const found = pick(row, now, limit)
      const [readable, broken] = [found.filter(isReadable), found.filter((job) => !isReadable(job))]
      const unreadable = broken.map((job) => failUnreadable(row, job, now))
      const jobs = readable.map(([seq, group, , id, body, dueAt, claimCount, firstAt, retryState]) => ({
        seq,
        claim,
        id: id as Uint8Array,
        claimCount: claimCount + 1,
        firstAt: firstAt ?? now,
        dueAt,
        body: body as Uint8Array,
        retryState: retryState ?? undefined,
        group,
      }))
      for (const [first, last] of runsOf(jobs)) markClaimed.run(claim, now, first.seq, last.seq)
      row.waiting -= jobs.length
      row.active += jobs.length
      return { jobs, unreadable, nextDueAt: nextDueAt(row.queue) }
    },
    finish(row: QueueRow, { seq, claim, group, now, outcome, retryAt, reason, retryState }: Finish): void {
      const isRetry = outcome !== 'deadLetter'
      const isLater = isRetry && retryAt > now
      const staysFirst = group !== null && isRetry && (!isLater || outcome === 'hold')
      const waiting = staysFirst ? PHASE.held : PHASE.later
      const phase = !isRetry ? PHASE.deadLetter : isLater ? waiting : PHASE.due
      const place = staysFirst ? null : row.next
      const values = [phase, Number(staysFirst), place, isLater ? retryAt : now, retryState ?? null, reason ?? null]
      if (end.run(...values, seq, claim).changes === 0) return
      if (!staysFirst) groups.advance(row.queue, group)
      row.next += 1
      row.active -= 1
      row[isRetry ? 'waiting' : 'deadLetters'] += 1
    },
    complete(row: QueueRow, requests: readonly Finish[]): void {
      for (const [{ seq: first, claim, now, outcome, retryState }, { seq: last }] of runsOf(requests, endAlike)) {
        remember.run(now, first, last, claim)
        const isKept = outcome === 'keep' && retryState !== undefined
        const kept = isKept ? keep.all(now, retryState, first, last, claim) : []
        for (const { bytes } of kept) row.historyBytes += bytes as number
        row.active -= Number(remove.run(first, last, claim).changes)
        if (!isKept) removeBodies.run(first, last)
      }
      for (const { group } of requests) groups.advance(row.queue, group)
    },
    save: (retryState: Uint8Array, { seq, claim }: ClaimRef) => void save.run(retryState, seq, claim),
    release(row: QueueRow, { claims, wereHandled }: Release): void {
      const statement = wereHandled ? release : releaseUncounted
      for (const { seq, claim } of claims) becameDue(row, statement.run(seq, claim))
    },
    undo: (row: QueueRow, claim: number) => becameDue(row, undo.run(row.queue, claim)),
    nextDueAt,
    health(queue: number, now: number) {
      const times = [dueAtOf(firstDue, queue), dueAtOf(firstNowDue, queue, now)].filter((at) => at !== undefined)
      const { later, retrying } = countLater.get(queue) as Record<'later' | 'retrying', number>
      return {
        oldestDueAt: times.length === 0 ? undefined : Math.min(...times),
        retrying: later > MAX_COUNTED ? undefined : retrying,
      }
    },
  }
}

function isReadable([, , , id, body]: JobRow): boolean {
  return id?.byteLength === 16 && body !== null
}

/** Whether one statement can complete both. */
function endAlike({ outcome: one, retryState: a }: Finish, { outcome: other, retryState: b }: Finish): boolean {
  return one === other && (a === b || (a !== undefined && b !== undefined && Buffer.compare(a, b) === 0))
}

function runsOf<Job extends { readonly seq: number; readonly claim: number }>(
  jobs: readonly Job[],
  areAlike: (one: Job, other: Job) => boolean = () => true,
): (readonly [first: Job, last: Job])[] {
  const runs: [first: Job, last: Job][] = []
  for (const job of jobs.toSorted((a, b) => a.claim - b.claim || a.seq - b.seq)) {
    const run = runs.at(-1)
    const isNext = run !== undefined && run[1].claim === job.claim && run[1].seq + 1 === job.seq
    if (isNext && areAlike(run[1], job)) run[1] = job
    else runs.push([job, job])
  }
  return runs
}
