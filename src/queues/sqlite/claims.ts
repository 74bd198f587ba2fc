/** Claims: which due jobs are claimed next, and how a claim ends. */

import { PHASE, type QueueRow } from './counts.ts'
import type { Pushes } from './pushes.ts'
import type { Claim, ClaimedRow, Claims, Finish, Release, UnreadableRow } from './rpc.ts'
import { bytesOfId, NO_ID, type OpenTables, textOfId } from './tables.ts'

/** Claims, and what ends a claim. */
export interface ClaimStatements {
  /** Claims due jobs, those that have been due longest first. */
  claim(row: QueueRow, request: Claim): Pick<Claims, 'jobs' | 'unreadable'>
  finish(row: QueueRow, request: Finish): void
  release(row: QueueRow, request: Release): void
  /** Releases all jobs of a claim whose answer was lost: no handler saw them, so it does not count. */
  undo(row: QueueRow, claim: number): void
  /** When the next job is due; 0 when one is due already, even if the clock was set back since. */
  nextDueAt(queue: number): number | undefined
  /** When the oldest due job came due. */
  oldestDueAt(queue: number, now: number): number | undefined
}

interface JobRow {
  readonly seq: number
  readonly id: Uint8Array
  readonly dueAt: number
  readonly claimCount: number
  readonly firstAt: number | null
  readonly retryState: Uint8Array | null
}

const COLUMNS = 'seq, id, due_at AS dueAt, claim_count AS claimCount, first_at AS firstAt, retry_state AS retryState'

/** Prepares the statements on an open file. */
export function createClaims({ database, owner, damaged }: OpenTables, pushes: Pushes): ClaimStatements {
  const due = database.prepare(`
    SELECT ${COLUMNS} FROM hookline_queue_jobs WHERE queue = ? AND phase = ${PHASE.due} ORDER BY place LIMIT ?`)
  const nowDue = database.prepare(`
    SELECT ${COLUMNS} FROM hookline_queue_jobs WHERE queue = ? AND phase = ${PHASE.later} AND due_at <= ?
    ORDER BY due_at, seq LIMIT ?`)
  const later = database.prepare(`
    SELECT due_at AS dueAt FROM hookline_queue_jobs WHERE queue = ? AND phase = ${PHASE.later} ORDER BY due_at LIMIT 1`)
  const removeBody = database.prepare('DELETE FROM hookline_queue_bodies WHERE seq = ?')
  const markClaimed = database.prepare(`
    UPDATE hookline_queue_jobs
    SET phase = ${PHASE.claimed}, owner = ${owner}, claim = ?, claim_count = claim_count + 1, first_at = coalesce(first_at, ?)
    WHERE seq = ?`)
  const setUnreadable = database.prepare(`
    UPDATE hookline_queue_jobs SET phase = ${PHASE.deadLetter}, place = ?, due_at = ?, reason = ? WHERE seq = ?`)

  // Every statement that ends a claim names it, so a claim that has ended already changes nothing.
  const CLAIMED = `WHERE seq = ? AND phase = ${PHASE.claimed} AND owner = ${owner} AND claim = ?`
  const UNCOUNTED = 'claim_count = claim_count - 1, first_at = CASE WHEN claim_count > 1 THEN first_at END'
  const remove = database.prepare(`DELETE FROM hookline_queue_jobs ${CLAIMED}`)
  const retry = database.prepare(`
    UPDATE hookline_queue_jobs SET phase = ?, place = ?, due_at = ?, retry_state = ?, owner = NULL, claim = NULL
    ${CLAIMED}`)
  const fail = database.prepare(`
    UPDATE hookline_queue_jobs
    SET phase = ${PHASE.deadLetter}, place = ?, due_at = ?, retry_state = ?, reason = ?, owner = NULL, claim = NULL ${CLAIMED}`)
  const release = database.prepare(`
    UPDATE hookline_queue_jobs SET phase = ${PHASE.due}, owner = NULL, claim = NULL ${CLAIMED}`)
  const releaseUncounted = database.prepare(`
    UPDATE hookline_queue_jobs SET phase = ${PHASE.due}, owner = NULL, claim = NULL, ${UNCOUNTED} ${CLAIMED}`)
  const undo = database.prepare(`
    UPDATE hookline_queue_jobs SET phase = ${PHASE.due}, owner = NULL, claim = NULL, ${UNCOUNTED}
    WHERE phase = ${PHASE.claimed} AND queue = ? AND owner = ${owner} AND claim = ?`)

  /** Due jobs in the order of their places, and those whose time has come among them. */
  function pick(queue: number, now: number, limit: number): JobRow[] {
    const inOrder = due.all(queue, limit) as unknown as JobRow[]
    const becameDueNow = nowDue.all(queue, now, limit) as unknown as JobRow[]
    if (becameDueNow.length === 0) return inOrder
    const picked: JobRow[] = []
    for (let [a, b] = [0, 0]; picked.length < limit; ) {
      const [one, other] = [inOrder[a], becameDueNow[b]]
      if (other !== undefined && (one === undefined || other.dueAt <= one.dueAt)) {
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

  /** A job that cannot be read becomes a dead letter, so that it does not stop those that can. */
  function readOrFail(row: QueueRow, job: JobRow, now: number): Omit<ClaimedRow, 'claim'> | UnreadableRow {
    const { seq, claimCount, firstAt, retryState, dueAt } = job
    const id = textOfId(job.id)
    const body = pushes.bodyOf(seq)
    if (id !== undefined && body !== undefined) {
      const claimed = { seq, id, claimCount: claimCount + 1, firstAt: firstAt ?? now, dueAt }
      return { ...claimed, body, retryState: retryState ?? undefined }
    }
    const why = damaged.has(seq) ? 'its body is on a damaged page of the file' : id === undefined ? ID : BODY
    const reason = `unreadable: ${why}`
    setUnreadable.run(row.next++, now, Buffer.from(reason), seq)
    row.waiting -= 1
    row.deadLetters += 1
    return { id: id ?? NO_ID, reason }
  }

  function becameDue(row: QueueRow, { changes }: { readonly changes: number | bigint }): void {
    row.active -= Number(changes)
    row.waiting += Number(changes)
  }

  function dueAtOf(statement: typeof due, ...values: number[]): number | undefined {
    return statement.get(...values)?.dueAt as number | undefined
  }

  return {
    claim(row, { now, limit, claim: number }) {
      const jobs: ClaimedRow[] = []
      const unreadable: UnreadableRow[] = []
      for (const job of pick(row.queue, now, limit)) {
        const read = readOrFail(row, job, now)
        if ('reason' in read) {
          unreadable.push(read)
          continue
        }
        markClaimed.run(number, now, job.seq)
        jobs.push({ ...read, claim: number })
      }
      row.waiting -= jobs.length
      row.active += jobs.length
      return { jobs, unreadable }
    },
    finish(row, { seq, claim, id, now, outcome, retryAt, reason, retryState = null, keepsBody }) {
      if (outcome === 'complete') {
        if (remove.run(seq, claim).changes === 0) return
        if (keepsBody !== true) removeBody.run(seq)
        pushes.complete(bytesOfId(id), seq, now)
      } else if (outcome === 'retry') {
        const [phase, dueAt] = retryAt <= now ? [PHASE.due, now] : [PHASE.later, retryAt]
        if (retry.run(phase, row.next, dueAt, retryState, seq, claim).changes === 0) return
        row.next += 1
        row.waiting += 1
      } else {
        if (fail.run(row.next, now, retryState, Buffer.from(reason), seq, claim).changes === 0) return
        row.next += 1
        row.deadLetters += 1
      }
      row.active -= 1
    },
    release(row, { claims, wereHandled }) {
      const statement = wereHandled ? release : releaseUncounted
      for (const { seq, claim } of claims) becameDue(row, statement.run(seq, claim))
    },
    undo: (row, number) => becameDue(row, undo.run(row.queue, number)),
    nextDueAt: (queue) => (dueAtOf(due, queue, 1) === undefined ? dueAtOf(later, queue) : 0),
    oldestDueAt(queue, now) {
      const times = [dueAtOf(due, queue, 1), dueAtOf(nowDue, queue, now, 1)].filter((at) => at !== undefined)
      return times.length === 0 ? undefined : Math.min(...times)
    },
  }
}

const ID = 'its id is not a UUID of 16 bytes'
const BODY = 'its body is missing'
