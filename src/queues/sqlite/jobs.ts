/** The jobs of the queues of a file, as rows: what is done with them within one transaction. */

import { randomUUID } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { HooklineError } from '../../message/error.ts'
import type { DeadLetter, Job, LogEntry, Outcome, StoredJob } from '../api.ts'
import { digestOf } from '../groups.ts'
import type { CheckedLogPage, CheckedPage, LogStore } from '../store.ts'
import { PAGE, takePage } from '../walk.ts'
import { IS_LATER, NUMBERS, type QueueRow, type Queues, STATE } from './tables.ts'

export interface QueueSettings {
  readonly name: string
  readonly dedupeWindowMs: number
  readonly maxJobs: number
}

/** A digest of its name; null without one. */
type Group = number | null

/** One job and the claim on it. Whatever names a claim that has ended changes nothing. */
export interface ClaimRef {
  readonly seq: number
  readonly claim: number
  readonly group: Group
}

interface JobRef {
  readonly seq: number
  readonly id: Uint8Array
  readonly group: Group
}

/** A row is an array, because an object takes twice as long. */
type JobRow = readonly [
  seq: number,
  group: Group,
  state: number,
  id: Uint8Array | null,
  body: Uint8Array | null,
  at: number,
  claimCount: number,
  firstAt: number | null,
  retryState: Uint8Array | null,
]

type Bodied = Readonly<Record<string, unknown>> & { readonly body: Uint8Array }

const MAX_COUNTED = 10_000
const LOOKED_AT = 5_000

export type Jobs = ReturnType<typeof createJobs>

/** @param owner This process: see owners.ts. */
export function createJobs(database: DatabaseSync, queues: Queues, owner = 0) {
  const prepare = (sql: string) => database.prepare(sql.replaceAll('$', 'hookline_queue_'))
  const BODY = '(SELECT body FROM $bodies AS b WHERE b.seq = j.seq) AS body'

  const insert = prepare(`
    INSERT INTO $jobs (seq, queue, id, in_group, line, state, place, at, claim_count) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)
    ON CONFLICT (queue, id) DO NOTHING`)
  const insertBody = prepare('INSERT INTO $bodies (seq, body) VALUES (?, ?)')
  const find = prepare('SELECT seq, state, place, id, in_group AS "group" FROM $jobs WHERE queue = ? AND id = ?')
  const removeJob = prepare('DELETE FROM $jobs WHERE seq = ?')
  const removeBody = prepare('DELETE FROM $bodies WHERE seq = ?')
  const forget = prepare(`
    DELETE FROM $jobs WHERE queue = ? AND id = ? AND state = ${STATE.done} AND at <= ?`)
  const nextSeq = prepare('SELECT seq FROM $jobs WHERE seq > ? AND seq < ? ORDER BY seq LIMIT 1 OFFSET ?')
  const forgetMany = prepare(`
    DELETE FROM $jobs WHERE seq > ? AND seq <= ? AND state = ${STATE.done} AND at <= ?`)
  const forgottenTo = new Map<number, number>() // By queue, the job that was looked at last.

  const firstInLine = prepare('SELECT seq, state FROM $jobs WHERE queue = ? AND line = ? ORDER BY place LIMIT 1')
  const setDue = prepare(`UPDATE $jobs SET state = ${STATE.due} WHERE seq = ?`)
  const join = prepare('UPDATE $jobs SET state = ?, line = in_group, place = ? WHERE seq = ?')

  const JOB = `SELECT seq, in_group, state, id, ${BODY}, at, claim_count, first_at, retry_state FROM $jobs AS j`
  const DUE = `WHERE queue = ? AND state = ${STATE.due} ORDER BY place`
  const LATER = `WHERE queue = ? AND ${IS_LATER}`
  const NOW_DUE = `${LATER} AND at <= ? ORDER BY at, seq`
  const due = prepare(`${JOB} ${DUE} LIMIT ?`)
  const nowDue = prepare(`${JOB} ${NOW_DUE} LIMIT ?`)
  for (const statement of [due, nowDue]) statement.setReturnArrays(true)
  const firstDue = prepare(`SELECT at FROM $jobs ${DUE} LIMIT 1`)
  const firstNowDue = prepare(`SELECT at FROM $jobs ${NOW_DUE} LIMIT 1`)
  const firstLater = prepare(`SELECT at FROM $jobs ${LATER} ORDER BY at LIMIT 1`)
  const countLater = prepare(`
    SELECT count(*) AS later, count(*) FILTER (WHERE claim_count > 0) AS retrying
    FROM (SELECT claim_count FROM $jobs ${LATER} LIMIT ${MAX_COUNTED + 1}) AS bounded`)
  const markClaimed = prepare(`
    UPDATE $jobs SET state = ${STATE.claimed}, owner = ?, claim = ?, claim_count = claim_count + 1, first_at = coalesce(first_at, ?)
    WHERE seq BETWEEN ? AND ?`)
  const setUnreadable = prepare(`
    UPDATE $jobs SET state = ${STATE.dead}, line = NULL, id = ?, place = ?, at = ?, reason = ? WHERE seq = ?`)

  // Every statement that ends a claim names it.
  const CLAIMED = `state = ${STATE.claimed} AND owner = ? AND claim = ?`
  const RUN = `seq BETWEEN ? AND ? AND ${CLAIMED}`
  const append = prepare(`
    INSERT INTO hookline_log (seq, id, job, at, bytes, note) SELECT ?, id, j.seq, ?, length(body), ?
    FROM $jobs AS j JOIN $bodies AS b ON b.seq = j.seq WHERE j.seq = ? AND ${CLAIMED} RETURNING bytes`)
  const complete = prepare(`
    UPDATE $jobs SET state = ${STATE.done}, line = NULL, at = ?, first_at = NULL, owner = NULL, claim = NULL, retry_state = NULL
    WHERE ${RUN}`)
  const removeBodies = prepare(`
    DELETE FROM $bodies AS b WHERE seq BETWEEN ? AND ?
      AND EXISTS (SELECT 1 FROM $jobs AS j WHERE j.seq = b.seq AND ${CLAIMED})`)
  const end = prepare(`
    UPDATE $jobs SET state = ?, line = CASE WHEN ? THEN line END, place = coalesce(?, place), at = ?, retry_state = ?, reason = ?,
      owner = NULL, claim = NULL
    WHERE seq = ? AND ${CLAIMED}`)
  const save = prepare(`UPDATE $jobs SET retry_state = ? WHERE seq = ? AND ${CLAIMED}`)
  const RELEASED = `UPDATE $jobs SET state = ${STATE.due}, owner = NULL, claim = NULL`
  const release = prepare(`${RELEASED} WHERE seq = ? AND ${CLAIMED}`)
  const releaseUncounted = prepare(`
    ${RELEASED}, claim_count = claim_count - 1, first_at = CASE WHEN claim_count > 1 THEN first_at END
    WHERE seq = ? AND ${CLAIMED}`)
  const owners = prepare(`SELECT DISTINCT owner FROM $jobs WHERE state = ${STATE.claimed}`)
  const queuesOf = prepare(`SELECT DISTINCT queue FROM $jobs WHERE state = ${STATE.claimed} AND owner = ?`)
  // They keep their places: what was claimed first was due first.
  const releaseAll = prepare(`${RELEASED} WHERE state = ${STATE.claimed} AND owner = ? AND queue = ?`)

  const LETTER = `
    SELECT id, reason, retry_state AS retryState, at, ${BODY} FROM $jobs AS j WHERE queue = ? AND state = ${STATE.dead}`
  const letters = prepare(`${LETTER} AND place > ? ORDER BY place`)
  const lettersBack = prepare(`${LETTER} AND place < ? ORDER BY place DESC`)
  const redrive = prepare(`
    UPDATE $jobs SET state = ?, line = in_group, place = ?, at = ?, claim_count = 0, first_at = NULL, reason = NULL WHERE seq = ?`)
  const stored = prepare(`
    SELECT j.seq, id, body FROM $jobs AS j JOIN $bodies AS b ON b.seq = j.seq
    WHERE j.seq > ? AND j.seq <= ? AND state NOT IN (${STATE.dead}, ${STATE.done}) ORDER BY j.seq`)

  const IN_LOG = 'FROM hookline_log AS l WHERE l.seq > ? AND l.seq < ?'
  const logged = prepare(`
    SELECT seq, id, at, note, (SELECT body FROM $bodies AS b WHERE b.seq = job) AS body ${IN_LOG} AND at >= ? AND at < ? ORDER BY seq`)
  const oldestLogged = prepare(`SELECT seq, at ${IN_LOG} ORDER BY seq LIMIT ?`)
  const removeLogged = prepare('DELETE FROM hookline_log WHERE seq = ? RETURNING bytes, job')

  type Found = JobRef & { readonly state: number; readonly place: number }

  function findIn(queue: number, ids: readonly string[], isMeant: (job: Found) => boolean): Found[] {
    const found = ids.map((id) => find.get(queue, bytesOfId(id)) as Found | undefined)
    return found.filter((job) => job !== undefined && isMeant(job)) as Found[]
  }

  /** The state of a job that is due now and joins the line of its group. */
  function stateIn(queue: number, group: Group): number {
    return group === null || firstInLine.get(queue, group) === undefined ? STATE.due : STATE.behind
  }

  /** Lets the next one go after the first one may have left the line. */
  function advance(queue: number, group: Group): void {
    if (group === null) return
    const next = firstInLine.get(queue, group)
    if (next?.state === STATE.behind) setDue.run(next.seq as number)
  }

  function requireRoom({ waiting, active }: QueueRow, { name, maxJobs }: QueueSettings, more: number): void {
    const jobs = waiting + active + more
    if (more === 0 || jobs <= maxJobs) return
    const message = `Queue ${name} is full: its maxJobs is ${maxJobs}. Got ${jobs} jobs. Push again later, or raise maxJobs.`
    throw new HooklineError('queue_full', message)
  }

  /** Looks at so many jobs, and forgets those that are done and whose dedupe window is over. */
  function forgetDone(queue: number, limit: number, until: number): void {
    const [start, stop] = [queue * NUMBERS, (queue + 1) * NUMBERS]
    const from = forgottenTo.get(queue) ?? start
    const last = nextSeq.get(from, stop, limit - 1)?.seq as number | undefined
    forgetMany.run(from, last ?? stop, until)
    forgottenTo.set(queue, last ?? start)
  }

  /** Finds due jobs in their order, and lets those whose time has come join the others. */
  function pick(row: QueueRow, now: number, limit: number): readonly JobRow[] {
    const { queue } = row
    const came = nowDue.all(queue, now, limit) as unknown as JobRow[]
    for (const [seq, group, state] of came) {
      if (group === null) continue
      if (state === STATE.held) setDue.run(seq)
      else join.run(stateIn(queue, group), row.next++, seq)
    }
    const inOrder = due.all(queue, limit) as unknown as JobRow[]
    const alone = came.filter(([, group]) => group === null)
    if (alone.length === 0) return inOrder
    return [...alone, ...inOrder].sort(([, , , , , one], [, , , , , other]) => one - other).slice(0, limit)
  }

  function failUnreadable(row: QueueRow, [seq, group, , bytes]: JobRow, now: number): DeadLetter {
    const found = textOfId(bytes)
    const reason = `unreadable: ${found === undefined ? 'its id is not a UUID of 16 bytes' : 'its body is missing'}`
    const id = found ?? randomUUID() // By which it can be redriven and dropped.
    setUnreadable.run(bytesOfId(id), row.next++, now, Buffer.from(reason), seq)
    advance(row.queue, group)
    row.waiting -= 1
    row.deadLetters += 1
    return { id, reason, body: new Uint8Array(), retryState: undefined, failedAt: new Date(now) }
  }

  function deleteJobs(jobs: readonly JobRef[]): number {
    for (const { seq } of jobs) {
      removeJob.run(seq)
      removeBody.run(seq)
    }
    return jobs.length
  }

  function findLetters({ queue }: QueueRow, ids: readonly string[]): readonly JobRef[] {
    return findIn(queue, ids, ({ state }) => state === STATE.dead)
  }

  function removeEntry(row: QueueRow, seq: number): boolean {
    const removed = removeLogged.get(seq) as { readonly bytes: number; readonly job: number } | undefined
    if (removed === undefined) return false
    removeBody.run(removed.job)
    row.logBytes -= removed.bytes
    return true
  }

  function atOf(statement: typeof firstDue, ...values: number[]): number | undefined {
    return statement.get(...values)?.at as number | undefined
  }

  /** 0 when a job is due already, even if the clock was set back since. */
  function nextDueAt({ queue }: Pick<QueueRow, 'queue'>): number | undefined {
    return atOf(firstDue, queue) === undefined ? atOf(firstLater, queue) : 0
  }

  return {
    push(row: QueueRow, settings: QueueSettings, jobs: readonly Job[], now: number): readonly string[] {
      const { queue } = row
      const until = now - settings.dedupeWindowMs
      if (row.waiting + row.active + jobs.length > settings.maxJobs) {
        for (const { id } of jobs) forget.run(queue, bytesOfId(id), until)
        const isNew = ({ id }: Job) => find.get(queue, bytesOfId(id)) === undefined
        requireRoom(row, settings, jobs.filter(isNew).length)
      }
      const known: string[] = []
      for (const { id, body, notBefore, group: name } of jobs) {
        const bytes = bytesOfId(id)
        const at = notBefore?.getTime() ?? now
        const group = groupOf(name)
        const seq = queue * NUMBERS + row.next
        const state = at <= now ? stateIn(queue, group) : STATE.later
        const add = () =>
          insert.run(seq, queue, bytes, group, state === STATE.later ? null : group, state, row.next, at)
        if (add().changes === 0 && (forget.run(queue, bytes, until).changes === 0 || add().changes === 0)) {
          known.push(id)
          continue
        }
        insertBody.run(seq, body)
        row.next += 1
        row.waiting += 1
      }
      return known
    },

    claim(row: QueueRow, claim: number, limit: number, now: number) {
      const found = pick(row, now, limit)
      const unreadable = found.filter((job) => !isReadable(job)).map((job) => failUnreadable(row, job, now))
      const readable = unreadable.length === 0 ? found : found.filter(isReadable)
      const jobs = readable.map(([seq, group, , id, body, at, claimCount, firstAt, retryState]) => ({
        id: textOfId(id) as string,
        body: body as Uint8Array,
        claimCount: claimCount + 1,
        firstAt: new Date(firstAt ?? now),
        dueAt: new Date(at),
        retryState: retryState ?? undefined,
        seq,
        claim,
        group,
      }))
      for (const [first, last] of runsOf(jobs)) markClaimed.run(owner, claim, now, first.seq, last.seq)
      row.waiting -= jobs.length
      row.active += jobs.length
      return { jobs, unreadable, nextDueAt: nextDueAt(row) }
    },

    /** Jobs that were claimed one after the other are completed together. */
    complete(row: QueueRow, claims: readonly Completed[], now: number, settings: QueueSettings): void {
      const { logged = [], others = [] } = Object.groupBy(claims, ({ log }) =>
        log === undefined ? 'others' : 'logged',
      )
      for (const { seq, claim, log } of logged) {
        const added = append.get(row.queue * NUMBERS + row.next++, now, log as Uint8Array, seq, owner, claim)
        if (added === undefined) continue // The claim has ended.
        row.logBytes += added.bytes as number
        row.active -= Number(complete.run(now, seq, seq, owner, claim).changes)
      }
      for (const [{ seq: first, claim }, { seq: last }] of runsOf(others)) {
        removeBodies.run(first, last, owner, claim)
        row.active -= Number(complete.run(now, first, last, owner, claim).changes)
      }
      for (const { group } of claims) advance(row.queue, group)
      forgetDone(row.queue, 2 * claims.length, now - settings.dedupeWindowMs)
    },

    finish(row: QueueRow, { seq, claim, group }: ClaimRef, outcome: Unfinished, now: number): void {
      const isRetry = 'retryAt' in outcome
      const at = isRetry ? Math.max(now, outcome.retryAt.getTime()) : now
      const staysFirst = group !== null && isRetry
      const waiting = staysFirst ? STATE.held : STATE.later
      const state = !isRetry ? STATE.dead : at > now ? waiting : STATE.due
      const reason = isRetry ? null : Buffer.from(outcome.deadLetter)
      const place = staysFirst ? null : row.next
      const { changes } = end.run(
        ...[state, Number(staysFirst), place, at, outcome.retryState ?? null, reason],
        ...[seq, owner, claim],
      )
      if (changes === 0) return
      if (!staysFirst) advance(row.queue, group)
      row.next += 1
      row.active -= 1
      row[isRetry ? 'waiting' : 'deadLetters'] += 1
    },

    save: ({ seq, claim }: ClaimRef, retryState: Uint8Array) => void save.run(retryState, seq, owner, claim),

    release(row: QueueRow, claims: readonly ClaimRef[], wereHandled: boolean): void {
      const statement = wereHandled ? release : releaseUncounted
      for (const { seq, claim } of claims) {
        const changes = Number(statement.run(seq, owner, claim).changes)
        row.active -= changes
        row.waiting += changes
      }
    },

    /** The processes that hold jobs. */
    owners: () => owners.all().map((row) => row.owner as number),

    releaseAllOf(dead: number): void {
      for (const { queue } of queuesOf.all(dead) as { readonly queue: number }[]) {
        const count = Number(releaseAll.run(dead, queue).changes)
        const row = queues.rowAt(queue)
        row.active -= count
        row.waiting += count
      }
    },

    nextDueAt,

    counts(row: QueueRow, now: number) {
      const { queue, waiting, active, deadLetters } = row
      const times = [atOf(firstDue, queue), atOf(firstNowDue, queue, now)].filter((at) => at !== undefined)
      const { later, retrying } = countLater.get(queue) as Record<'later' | 'retrying', number>
      return {
        ...{ waiting, active, deadLetters },
        ...(later <= MAX_COUNTED && { retrying }),
        oldestDueAt: times.length === 0 ? undefined : new Date(Math.min(...times)),
        asOf: new Date(now),
      }
    },

    letters({ queue }: QueueRow, { after, newestFirst, ...bounds }: CheckedPage): DeadLetter[] {
      const [last] = after === undefined ? [] : findIn(queue, [after], ({ state }) => state === STATE.dead)
      const first = newestFirst ? Number.MAX_SAFE_INTEGER : 0
      const found = (newestFirst ? lettersBack : letters).iterate(queue, last?.place ?? first)
      return takePage(withBodies(found), bounds).map(({ id, body, reason, retryState, at }) => ({
        id: textOfId(id) ?? NO_ID,
        body,
        reason: `${Buffer.from(bytesOf(reason))}`,
        retryState: (retryState ?? undefined) as Uint8Array | undefined,
        failedAt: new Date(at as number),
      }))
    },

    redrive(row: QueueRow, settings: QueueSettings, ids: readonly string[], now: number): number {
      const found = findLetters(row, ids)
      requireRoom(row, settings, found.length)
      for (const { seq, group } of found) redrive.run(stateIn(row.queue, group), row.next++, now, seq)
      row.deadLetters -= found.length
      row.waiting += found.length
      return found.length
    },

    drop(row: QueueRow, ids: readonly string[]): number {
      const count = deleteJobs(findLetters(row, ids))
      row.deadLetters -= count
      return count
    },

    /** Looks at so many jobs. */
    stored(queue: number, after: number): { readonly jobs: readonly StoredJob[]; readonly last: number | undefined } {
      const [from, stop] = [Math.max(after, queue * NUMBERS), (queue + 1) * NUMBERS]
      const bound = nextSeq.get(from, stop, LOOKED_AT - 1)?.seq as number | undefined
      const found = takePage(withBodies(stored.iterate(from, bound ?? stop)), PAGE)
      const jobs = found.map(({ id, body }) => ({ id: textOfId(id) ?? NO_ID, body })).filter(({ id }) => id !== NO_ID)
      return { jobs, last: (found.at(-1)?.seq as number | undefined) ?? bound }
    },

    remove(row: QueueRow, ids: readonly string[]): number {
      const WAITS: readonly number[] = [STATE.due, STATE.later, STATE.behind, STATE.held]
      const waiting = findIn(row.queue, ids, ({ state }) => WAITS.includes(state))
      row.waiting -= deleteJobs(waiting)
      for (const { group } of waiting) advance(row.queue, group)
      return waiting.length
    },

    logged(queue: number, { since, until, after, ...bounds }: CheckedLogPage): LogEntry[] {
      const from = Math.max(Number(after ?? 0), queue * NUMBERS)
      const [earliest, latest] = [since?.getTime() ?? 0, until?.getTime() ?? Number.MAX_SAFE_INTEGER]
      const rows = logged.iterate(from, (queue + 1) * NUMBERS, earliest, latest)
      return takePage(withBodies(rows), bounds).map(entryOf)
    },

    trim(row: QueueRow, { before, maxBytes, limit }: Parameters<LogStore['trim']>[0]): number {
      let dropped = 0
      const oldest = oldestLogged.all(row.queue * NUMBERS, (row.queue + 1) * NUMBERS, limit)
      for (const { seq, at } of oldest as { readonly seq: number; readonly at: number }[]) {
        if (at >= before.getTime() && row.logBytes <= maxBytes) break
        removeEntry(row, seq)
        dropped += 1
      }
      return dropped
    },

    removeLogged: (row: QueueRow, cursors: readonly string[]) =>
      cursors.filter((cursor) => Math.floor(Number(cursor) / NUMBERS) === row.queue && removeEntry(row, Number(cursor)))
        .length,
  }
}

/** A claim whose job is complete. */
export interface Completed extends ClaimRef {
  readonly log: Uint8Array | undefined
}

type Unfinished = Exclude<Outcome, { readonly complete: true }>

function bytesOfId(id: string): Buffer {
  return Buffer.from(id.replaceAll('-', ''), 'hex')
}

function textOfId(bytes: unknown): string | undefined {
  if (!(bytes instanceof Uint8Array) || bytes.byteLength !== 16) return undefined
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, 16).toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

const NO_ID = '00000000-0000-0000-0000-000000000000'

function groupOf(name: string | undefined): Group {
  return name === undefined ? null : Number.parseInt(digestOf(name), 16)
}

function isReadable([, , , id, body]: JobRow): boolean {
  return id?.byteLength === 16 && body !== null
}

/** Reads each row when it is asked for: those behind the last one of a page are never read. */
function* withBodies(rows: Iterable<object>): Generator<Bodied> {
  for (const row of rows) yield { ...row, body: bytesOf((row as { readonly body?: unknown }).body) }
}

function bytesOf(column: unknown): Uint8Array {
  return column instanceof Uint8Array ? column : new Uint8Array()
}

function entryOf(row: object): LogEntry {
  const { seq, id, at, note, body } = row as Record<'seq' | 'at', number> & Record<'id' | 'note' | 'body', Uint8Array>
  return { id: textOfId(id) ?? NO_ID, body, note, handledAt: new Date(at), cursor: `${seq}` }
}

/** The first and the last of those that were claimed together and follow each other: one statement is for them all. */
function runsOf<Job extends { readonly seq: number; readonly claim: number }>(
  jobs: readonly Job[],
): (readonly [first: Job, last: Job])[] {
  const runs: [first: Job, last: Job][] = []
  for (const job of jobs.toSorted((a, b) => a.claim - b.claim || a.seq - b.seq)) {
    const run = runs.at(-1)
    if (run !== undefined && run[1].claim === job.claim && run[1].seq + 1 === job.seq) run[1] = job
    else runs.push([job, job])
  }
  return runs
}
