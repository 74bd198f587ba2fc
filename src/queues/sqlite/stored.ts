/** What is stored: jobs that are pushed, their ids and bodies, lists of them and of the dead letters, and what deletes them. */

import { HooklineError } from '../../message/error.ts'
import type { DeadLetter, StoredJob } from '../api.ts'
import type { CheckedPage } from '../store.ts'
import { createGroups } from './groups.ts'
import { bytesOfId, IS_LATER, NO_ID, NUMBERS, type OpenTables, PHASE, type QueueRow, textOfId } from './tables.ts'
import type { Group, Letters, Push, QueueSettings } from './thread-messages.ts'

export type DeadLetterRow = Omit<DeadLetter, 'failedAt'> & { readonly failedAt: number }

export interface StoredPage {
  readonly rows: readonly StoredJob[]
  readonly last: number | undefined
}

export function createStored({ database }: OpenTables) {
  const groups = createGroups({ database })
  const insert = database.prepare(`
    INSERT INTO hookline_queue_jobs (seq, queue, id, in_group, line, phase, place, due_at, claim_count)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)`)
  const insertBody = database.prepare('INSERT INTO hookline_queue_bodies (seq, body) VALUES (?, ?)')
  const removeJob = database.prepare('DELETE FROM hookline_queue_jobs WHERE seq = ?')
  const removeBody = database.prepare('DELETE FROM hookline_queue_bodies WHERE seq = ?')

  const insertId = database.prepare('INSERT OR IGNORE INTO hookline_queue_ids (queue, id, seq) VALUES (?, ?, ?)')
  const findId = database.prepare('SELECT seq FROM hookline_queue_ids WHERE queue = ? AND id = ?')
  const assignId = database.prepare('UPDATE hookline_queue_ids SET seq = ? WHERE queue = ? AND id = ?')
  const removeId = database.prepare('DELETE FROM hookline_queue_ids WHERE queue = ? AND id = ?')
  const isOver = database.prepare(`
    SELECT 1 FROM hookline_queue_completed AS c WHERE seq = ? AND completed_at <= ?
      AND NOT EXISTS (SELECT 1 FROM hookline_queue_bodies AS b WHERE b.seq = c.seq)`)
  const removeCompleted = database.prepare('DELETE FROM hookline_queue_completed WHERE seq = ?')
  const lastCompleted = database.prepare(`
    SELECT seq FROM hookline_queue_completed WHERE seq > ? AND seq < ? ORDER BY seq LIMIT 1 OFFSET ?`)
  const forgetCompleted = database.prepare(`
    DELETE FROM hookline_queue_completed AS c WHERE seq > ? AND seq <= ? AND completed_at <= ?
      AND NOT EXISTS (SELECT 1 FROM hookline_queue_bodies AS b WHERE b.seq = c.seq) RETURNING id`) // A body means that it is kept.
  const prunedTo = new Map<number, number>() // By queue, the `seq` that was looked at last.

  const listJobs = database.prepare(`
    SELECT b.seq, coalesce(j.id, c.id) AS id, body FROM hookline_queue_bodies AS b
    LEFT JOIN hookline_queue_jobs AS j ON j.seq = b.seq LEFT JOIN hookline_queue_completed AS c ON c.seq = b.seq
    WHERE b.seq > ? AND b.seq < ? AND coalesce(phase, 0) <> ${PHASE.deadLetter} ORDER BY b.seq LIMIT ?`)
  const findWaiting = database.prepare(`
    SELECT seq, id, in_group AS "group" FROM hookline_queue_jobs
    WHERE seq = ? AND (phase IN (${PHASE.due}, ${PHASE.behind}) OR ${IS_LATER})`)
  const findLetter = database.prepare(`
    SELECT seq, id, place, in_group AS "group" FROM hookline_queue_jobs WHERE seq = ? AND phase = ${PHASE.deadLetter}`)
  const oldestLetters = database.prepare(`
    SELECT seq, id, in_group AS "group" FROM hookline_queue_jobs WHERE queue = ? AND phase = ${PHASE.deadLetter} ORDER BY place LIMIT ?`)
  const letters = `
    SELECT id, reason, retry_state AS retryState, due_at AS failedAt,
      (SELECT body FROM hookline_queue_bodies AS b WHERE b.seq = j.seq) AS body FROM hookline_queue_jobs AS j
    WHERE queue = ? AND phase = ${PHASE.deadLetter}`
  const listLetters = database.prepare(`${letters} AND place > ? ORDER BY place LIMIT ?`)
  const listNewest = database.prepare(`${letters} AND place < ? ORDER BY place DESC LIMIT ?`)
  const redrive = database.prepare(`
    UPDATE hookline_queue_jobs
    SET phase = ?, line = in_group, place = ?, due_at = ?, claim_count = 0, first_at = NULL, reason = NULL
    WHERE seq = ?`)

  function seqOf(queue: number, id: Uint8Array): number | null {
    return (findId.get(queue, id)?.seq as number | undefined) ?? null
  }

  function addId(queue: number, id: Uint8Array, seq: number, windowStart: number): boolean {
    if (insertId.run(queue, id, seq).changes === 1) return true
    const old = seqOf(queue, id)
    if (isOver.get(old, windowStart) === undefined) return false
    removeCompleted.run(old)
    assignId.run(seq, queue, id)
    return true
  }

  function isKnown(queue: number, id: Uint8Array, windowStart: number): boolean {
    const seq = seqOf(queue, id)
    return seq !== null && isOver.get(seq, windowStart) === undefined
  }

  function findLetters(row: QueueRow, { ids, limit }: Letters): readonly JobRef[] {
    if (ids === 'all') return oldestLetters.all(row.queue, limit) as unknown as JobRef[]
    const found = ids.map((id) => findLetter.get(seqOf(row.queue, bytesOfId(id))))
    return found.filter((letter) => letter !== undefined) as unknown as JobRef[]
  }

  function deleteJobs(queue: number, jobs: readonly JobRef[]): number {
    for (const { seq, id } of jobs) {
      removeJob.run(seq)
      removeBody.run(seq)
      removeId.run(queue, id)
    }
    return jobs.length
  }

  return {
    push(row: QueueRow, settings: QueueSettings, { jobs, now }: Push): readonly string[] {
      const { queue } = row
      const windowStart = now - settings.dedupeWindowMs
      if (row.waiting + row.active + jobs.length > settings.maxJobs) {
        requireRoom(row, settings, jobs.filter(({ id }) => !isKnown(queue, id, windowStart)).length)
      }
      const known: string[] = []
      for (const { dueAt, id, body, group } of jobs) {
        const seq = queue * NUMBERS + row.next
        if (!addId(queue, id, seq, windowStart)) {
          known.push(textOfId(id) ?? NO_ID)
          continue
        }
        const phase = dueAt <= now ? groups.phaseIn(queue, group) : PHASE.later
        insert.run(seq, queue, id, group, phase === PHASE.later ? null : group, phase, row.next, dueAt)
        insertBody.run(seq, body)
        row.next += 1
        row.waiting += 1
      }
      return known
    },
    /** Looks at the ids of so many complete jobs, and forgets those whose dedupe window is over. */
    prune(queue: number, limit: number, { dedupeWindowMs }: QueueSettings, now: number): void {
      const [start, end] = [queue * NUMBERS, (queue + 1) * NUMBERS]
      const from = prunedTo.get(queue) ?? start
      const last = lastCompleted.get(from, end, limit - 1)?.seq as number | undefined
      for (const { id } of forgetCompleted.all(from, last ?? end, now - dedupeWindowMs)) {
        removeId.run(queue, id as Uint8Array)
      }
      prunedTo.set(queue, last ?? start)
    },
    jobs(queue: number, after: number, limit: number): StoredPage {
      const found = listJobs.all(Math.max(after, queue * NUMBERS), (queue + 1) * NUMBERS, limit)
      const jobs = found.map(({ id, body }) => ({ id: textOfId(id) ?? NO_ID, body: bytesOf(body) }))
      return { rows: jobs.filter(({ id }) => id !== NO_ID), last: found.at(-1)?.seq as number | undefined }
    },
    remove(row: QueueRow, ids: readonly string[]): number {
      const found = ids.map((id) => findWaiting.get(seqOf(row.queue, bytesOfId(id))))
      const jobs = found.filter((job) => job !== undefined) as unknown as JobRef[]
      const count = deleteJobs(row.queue, jobs)
      for (const { group } of jobs) groups.advance(row.queue, group)
      row.waiting -= count
      return count
    },
    deadLetters(queue: number, { after, limit, newestFirst }: CheckedPage): DeadLetterRow[] {
      const last = after === undefined ? undefined : findLetter.get(seqOf(queue, bytesOfId(after)))
      const list = newestFirst ? listNewest : listLetters
      const first = newestFirst ? Number.MAX_SAFE_INTEGER : 0
      return list.all(queue, (last?.place as number | undefined) ?? first, limit).map((letter) => ({
        id: textOfId(letter.id) ?? NO_ID,
        body: bytesOf(letter.body),
        reason: `${Buffer.from(bytesOf(letter.reason))}`,
        retryState: (letter.retryState ?? undefined) as Uint8Array | undefined,
        failedAt: letter.failedAt as number,
      }))
    },
    redrive(row: QueueRow, settings: QueueSettings, { now, ...which }: Letters & { readonly now: number }): number {
      const letters = findLetters(row, which)
      requireRoom(row, settings, which.ids === 'all' ? row.deadLetters : letters.length)
      for (const { seq, group } of letters) redrive.run(groups.phaseIn(row.queue, group), row.next++, now, seq)
      row.deadLetters -= letters.length
      row.waiting += letters.length
      return letters.length
    },
    drop(row: QueueRow, which: Letters): number {
      const count = deleteJobs(row.queue, findLetters(row, which))
      row.deadLetters -= count
      return count
    },
  }
}

interface JobRef {
  readonly seq: number
  readonly id: Uint8Array
  readonly group: Group
}

function bytesOf(column: unknown): Uint8Array {
  return column instanceof Uint8Array ? column : new Uint8Array()
}

export function requireRoom({ waiting, active }: QueueRow, { name, maxJobs }: QueueSettings, more: number): void {
  const jobs = waiting + active + more
  if (more === 0 || jobs <= maxJobs) return
  const message = `Queue ${name} is full: its maxJobs is ${maxJobs}. Got ${jobs} jobs. Push again later, or raise maxJobs.`
  throw new HooklineError('queue_full', message)
}
