/** Claims: which due jobs are claimed next, and how a claim ends. */

import { PHASE, type QueueRow } from './counts.ts'
import type { DueJobs, JobRow } from './due.ts'
import type { Claim, ClaimedRow, ClaimRef, Claims, Finish, Release, UnreadableRow } from './rpc.ts'
import { isId, NO_ID, type OpenTables, textOfId } from './tables.ts'

/** Claims, and what ends a claim. */
export interface ClaimStatements {
  /** Claims due jobs, those that have been due longest first. */
  claim(row: QueueRow, request: Claim): Pick<Claims, 'jobs' | 'unreadable'>
  /** Ends a claim with any outcome but the one that {@link ClaimStatements.complete} records. */
  finish(row: QueueRow, request: Finish): void
  /** Ends claims of complete jobs. Jobs that were stored one after the other are deleted by one statement. */
  complete(row: QueueRow, requests: readonly Finish[]): void
  release(row: QueueRow, request: Release): void
  /** Releases all jobs of a claim whose answer was lost: no handler saw them, so it does not count. */
  undo(row: QueueRow, claim: number): void
}

/** Prepares the statements on an open file. */
export function createClaims({ database, owner, damaged }: OpenTables, due: DueJobs): ClaimStatements {
  const markClaimed = database.prepare(`
    UPDATE hookline_queue_jobs
    SET phase = ${PHASE.claimed}, owner = ${owner}, claim = ?, claim_count = claim_count + 1, first_at = coalesce(first_at, ?)
    WHERE seq BETWEEN ? AND ?`)
  const setUnreadable = database.prepare(`
    UPDATE hookline_queue_jobs SET phase = ${PHASE.deadLetter}, place = ?, due_at = ?, reason = ? WHERE seq = ?`)

  // Every statement that ends a claim names it, so a claim that has ended already changes nothing.
  const CLAIMED = `WHERE seq = ? AND phase = ${PHASE.claimed} AND owner = ${owner} AND claim = ?`
  const UNCOUNTED = 'claim_count = claim_count - 1, first_at = CASE WHEN claim_count > 1 THEN first_at END'
  const CLAIMED_RUN = CLAIMED.replace('seq = ?', 'seq BETWEEN ? AND ?')
  const remember = database.prepare(`
    INSERT OR REPLACE INTO hookline_queue_completed (seq, id, completed_at)
    SELECT seq, id, ? FROM hookline_queue_jobs ${CLAIMED_RUN}`)
  const remove = database.prepare(`DELETE FROM hookline_queue_jobs ${CLAIMED_RUN}`)
  const removeBodies = database.prepare(`
    DELETE FROM hookline_queue_bodies AS b
    WHERE seq BETWEEN ? AND ? AND NOT EXISTS (SELECT 1 FROM hookline_queue_jobs WHERE seq = b.seq)`)
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

  /** A job that cannot be read becomes a dead letter, so that it does not stop those that can. */
  function readOrFail(row: QueueRow, job: JobRow, now: number): Omit<ClaimedRow, 'claim'> | UnreadableRow {
    const [seq, idBytes, dueAt, claimCount, firstAt, retryState, body] = job
    const id = isId(idBytes) ? idBytes : undefined
    if (id !== undefined && body !== null) {
      const claimed = { seq, id, claimCount: claimCount + 1, firstAt: firstAt ?? now, dueAt }
      return { ...claimed, body, retryState: retryState ?? undefined }
    }
    const why = damaged.has(seq) ? 'its body is on a damaged page of the file' : id === undefined ? ID : BODY
    const reason = `unreadable: ${why}`
    setUnreadable.run(row.next++, now, Buffer.from(reason), seq)
    row.waiting -= 1
    row.deadLetters += 1
    return { id: textOfId(id) ?? NO_ID, reason }
  }

  function becameDue(row: QueueRow, { changes }: { readonly changes: number | bigint }): void {
    row.active -= Number(changes)
    row.waiting += Number(changes)
  }

  return {
    claim(row, { now, limit, claim: number }) {
      const jobs: ClaimedRow[] = []
      const unreadable: UnreadableRow[] = []
      for (const job of due.pick(row.queue, now, limit)) {
        const read = readOrFail(row, job, now)
        if ('reason' in read) {
          unreadable.push(read)
          continue
        }
        jobs.push({ ...read, claim: number })
      }
      for (const [first, last] of runsOf(jobs)) markClaimed.run(number, now, first.seq, last.seq)
      row.waiting -= jobs.length
      row.active += jobs.length
      return { jobs, unreadable }
    },
    finish(row, { seq, claim, now, outcome, retryAt, reason = null, retryState = null }) {
      if (outcome === 'retry') {
        const [phase, dueAt] = retryAt <= now ? [PHASE.due, now] : [PHASE.later, retryAt]
        if (retry.run(phase, row.next, dueAt, retryState, seq, claim).changes === 0) return
        row.next += 1
        row.waiting += 1
      } else {
        if (fail.run(row.next, now, retryState, reason, seq, claim).changes === 0) return
        row.next += 1
        row.deadLetters += 1
      }
      row.active -= 1
    },
    complete(row, requests) {
      for (const [{ seq: first, claim, now, keepsBody }, { seq: last }] of runsOf(requests)) {
        remember.run(now, first, last, claim)
        row.active -= Number(remove.run(first, last, claim).changes)
        if (keepsBody !== true) removeBodies.run(first, last)
      }
    },
    release(row, { claims, wereHandled }) {
      const statement = wereHandled ? release : releaseUncounted
      for (const { seq, claim } of claims) becameDue(row, statement.run(seq, claim))
    },
    undo: (row, number) => becameDue(row, undo.run(row.queue, number)),
  }
}

/** The first and the last of jobs that were claimed together and stored one after the other. */
function runsOf<Job extends ClaimRef>(jobs: readonly Job[]): (readonly [first: Job, last: Job])[] {
  const runs: [first: Job, last: Job][] = []
  for (const job of jobs.toSorted((a, b) => a.claim - b.claim || a.seq - b.seq)) {
    const run = runs.at(-1)
    if (run !== undefined && run[1].claim === job.claim && run[1].seq + 1 === job.seq) run[1] = job
    else runs.push([job, job])
  }
  return runs
}

const ID = 'its id is not a UUID of 16 bytes'
const BODY = 'its body is missing'
