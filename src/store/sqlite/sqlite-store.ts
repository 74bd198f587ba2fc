/**
 * The store of a queue in a SQLite file. Each call of the contract is a step in a transaction, which `file.ts` begins and commits. The calls
 * are first, then the steps, then the statements.
 */

import { randomUUID } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { invalidOption, kindOf } from '../../kit/checks.ts'
import { HooklineError } from '../../protocol/error.ts'
import { digestOf } from '../groups.ts'
import type { CheckedLogPage, CheckedPage, LogStore, QueueStore } from '../queue-store.ts'
import type { ClaimedJob, DeadLetter, Job, LogEntry, Outcome, QueueUse } from '../queue-types.ts'
import { PAGE, takePage } from '../walk.ts'
import { unavailable } from './advice.ts'
import { realPathOf, requireSqlite } from './database.ts'
import type { Settings } from './sqlite-options.ts'
import {
  createQueues,
  IS_LATER,
  NUMBERS,
  type QueueRow,
  type Queues,
  type Reservation,
  STATE,
} from './sqlite-tables.ts'

/** The file of a queue: what makes the transactions of its store. */
export interface QueueFile {
  /** The path by which all find it. */
  readonly path: string
  /** @param bytes What it adds. */
  call<T>(kind: Kind, step: (transaction: Transaction) => T, bytes?: number): Promise<T>
  reserve(use: Reservation['use']): void
  /** Calls `listener` soon after another connection has committed. */
  onCommit(listener: () => void): void
  close(): Promise<void>
}

/**
 * What a call does:
 * - `read` changes nothing;
 * - `claim` comes after the others of its turn, and may change nothing;
 * - `write` may be lost in a power cut: its job is then handled again;
 * - `release` never fails: a later turn makes it again;
 * - `promise` is answered when the disk has it;
 * - `erase` is a promise that also empties the log of what it deletes.
 */
export type Kind = 'read' | 'claim' | 'write' | 'release' | 'promise' | 'erase'

/** What a step is made with. What it changes of the row of its queue is written when the transaction ends. */
export interface Transaction {
  readonly sql: Statements
  readonly row: QueueRow
  /** This process: see locks.ts. */
  readonly owner: number
}

/** A digest of its name; null without one. */
type Group = number | null

/** One job and the claim on it. Whatever names a claim that has ended changes nothing. */
export interface ClaimRef {
  readonly seq: number
  readonly claim: number
  readonly group: Group
}

/** A claim whose job is complete, and its note for the log. */
type Completed = ClaimRef & { readonly log: Uint8Array | undefined }

export function createSqliteStore(settings: Settings, file: QueueFile): QueueStore<ClaimedJob & ClaimRef> {
  const { name, clock } = settings
  const { call } = file
  const now = (): number => Math.floor(clock.now())
  let use: QueueUse | undefined
  let nextDue: { readonly at: number | undefined } | undefined // As the last claim found it.
  let batch: { readonly claims: Completed[]; readonly isDone: Promise<void> } | undefined
  let forgottenTo = 0

  /** Those of one turn are one call, which may be made again. */
  function completeTogether(claim: Completed): Promise<void> {
    if (batch === undefined) {
      const claims: Completed[] = []
      const end = (): void => {
        if (batch?.claims === claims) batch = undefined
      }
      const isDone = call('write', (transaction) => {
        end()
        complete(transaction, claims, now())
        forgottenTo = forgetDone(transaction, forgottenTo, 2 * claims.length, now() - settings.dedupeWindowMs)
      })
      isDone.catch(end)
      batch = { claims, isDone }
    }
    batch.claims.push(claim)
    return batch.isDone
  }

  return {
    isDurable: true,
    isOrdered: true,
    hasTransactions: true,
    hasGroups: true,
    place: `sqlite ${file.path} ${name}`,
    reserve(given) {
      use = given
      try {
        file.reserve(use)
      } catch (cause) {
        throw unavailable(`Queue ${name}`, file.path, cause)
      }
    },
    push(jobs, { db } = {}) {
      if (db !== undefined) {
        return stepInto(db, file.path, { name, use }, (transaction) => push(transaction, settings, jobs, now()))
      }
      const bytes = jobs.reduce((sum, { body }) => sum + body.byteLength, 0)
      return call('promise', (transaction) => push(transaction, settings, jobs, now()), bytes)
    },
    async claim(limit, onUnreadable) {
      const { jobs, unreadable, nextDueAt } = await call('claim', (transaction) => claim(transaction, limit, now()))
      for (const letter of unreadable) onUnreadable?.(letter)
      nextDue = { at: nextDueAt }
      return jobs
    },
    save: ({ seq, claim }, state) => call('write', ({ sql, owner }) => void sql.save.run(state, seq, owner, claim)),
    finish(claim, outcome) {
      if ('complete' in outcome) return completeTogether({ ...claim, log: outcome.log })
      return call('write', (transaction) => finish(transaction, claim, outcome, now()))
    },
    release: (claims, { wereHandled }) => call('release', (transaction) => release(transaction, claims, wereHandled)),
    async nextDueAt() {
      const { at } = nextDue ?? { at: await call('read', findNextDue) }
      nextDue = undefined
      return at === undefined ? undefined : new Date(at)
    },
    counts: () => call('read', (transaction) => count(transaction, now())),
    deadLetters: (page) => call('read', (transaction) => listLetters(transaction, page)),
    redrive: (ids) => call('promise', (transaction) => redrive(transaction, settings, ids, now())),
    drop: (ids) => call('erase', (transaction) => remove(transaction, ids, 'deadLetters')),
    async *jobs() {
      for (let after: number | undefined = 0; after !== undefined; ) {
        const from: number = after
        const { jobs, last } = await call('read', (transaction) => listJobs(transaction, from))
        yield jobs
        after = last
      }
    },
    remove: (ids) => call('erase', (transaction) => remove(transaction, ids, 'waiting')),
    log: {
      list: (page) => call('read', (transaction) => listLog(transaction, page)),
      trim: (which) => call('write', (transaction) => trimLog(transaction, which)),
      remove: (cursors) => call('erase', (transaction) => removeFromLog(transaction, cursors)),
    },
    onChange: file.onCommit,
    async close() {
      await file.close()
      return []
    },
  }
}

/** Preparing the statements takes longer than a push. */
const prepared = new WeakMap<DatabaseSync, { readonly sql: Statements; readonly queues: Queues }>()

/**
 * Makes a step in a transaction of the caller's, over the caller's own connection to the file, in its thread.
 *
 * @throws TypeError for a `db` that is no such transaction; what SQLite throws, as it is.
 */
function stepInto<T>(db: object, path: string, queue: Reservation, step: (transaction: Transaction) => T): T {
  requireTransaction(db, path)
  const known = prepared.get(db) ?? { sql: prepareStatements(db), queues: createQueues(db) }
  prepared.set(db, known)
  const { sql, queues } = known
  queues.begin()
  queues.enter(queue)
  const result = step({ sql, row: queues.rowOf(queue.name), owner: 0 })
  queues.save()
  return result
}

function requireTransaction(db: object, path: string): asserts db is DatabaseSync {
  const { DatabaseSync } = requireSqlite()
  // Two libraries of SQLite in one process do not see each other's locks, and would write over each other.
  if (!(db instanceof DatabaseSync)) throw noTransaction(kindOf(db))
  const [main] = db.prepare('PRAGMA database_list').all() as { readonly file?: unknown }[]
  if (typeof main?.file !== 'string') throw noTransaction('one that reads rows as arrays')
  if (main.file === '' || realPathOf(main.file) !== path) throw noTransaction('one to another file')
  if (!db.isTransaction) throw noTransaction('one outside of a transaction')
  if (typeof db.prepare('SELECT 1 AS one').get()?.one !== 'number') throw noTransaction('one that reads big integers')
}

function noTransaction(found: string): TypeError {
  const rule = 'must be a connection of node:sqlite in a transaction on the file of the queue'
  const advice = 'Pass a DatabaseSync of node:sqlite on the file of the queue, after BEGIN IMMEDIATE.'
  return invalidOption('db', rule, found, advice)
}

type Limits = Pick<Settings, 'name' | 'dedupeWindowMs' | 'maxJobs'>

/** Returns the ids that were known. */
export function push({ sql, row }: Transaction, limits: Limits, jobs: readonly Job[], now: number): readonly string[] {
  const { queue } = row
  const until = now - limits.dedupeWindowMs
  if (row.waiting + row.active + jobs.length > limits.maxJobs) {
    for (const { id } of jobs) sql.forget.run(queue, bytesOfId(id), until)
    requireRoom(row, limits, jobs.filter(({ id }) => sql.find.get(queue, bytesOfId(id)) === undefined).length)
  }
  const known: string[] = []
  for (const { id, body, notBefore, group: name } of jobs) {
    const bytes = bytesOfId(id)
    const at = notBefore?.getTime() ?? now
    const group = name === undefined ? null : Number.parseInt(digestOf(name), 16)
    const seq = queue * NUMBERS + row.next
    const state = at <= now ? stateIn(sql, queue, group) : STATE.later
    const line = state === STATE.later ? null : group
    const isAdded = () => sql.insert.run(seq, queue, bytes, group, line, state, row.next, at).changes > 0
    if (isAdded() || (sql.forget.run(queue, bytes, until).changes > 0 && isAdded())) {
      sql.insertBody.run(seq, body)
      row.next += 1
      row.waiting += 1
    } else known.push(id)
  }
  return known
}

function requireRoom({ waiting, active }: QueueRow, { name, maxJobs }: Limits, more: number): void {
  const jobs = waiting + active + more
  if (more === 0 || jobs <= maxJobs) return
  const message = `Queue ${name} is full: its maxJobs is ${maxJobs}. Got ${jobs} jobs. Push again later, or raise maxJobs.`
  throw new HooklineError('queue_full', message)
}

/** The state of a job that is due now and joins the line of its group. */
function stateIn(sql: Statements, queue: number, group: Group): number {
  return group === null || sql.firstInLine.get(queue, group) === undefined ? STATE.due : STATE.behind
}

/** Lets the next one go after the first one may have left the line. */
function advance({ sql, row }: Transaction, group: Group): void {
  if (group === null) return
  const next = sql.firstInLine.get(row.queue, group)
  if (next?.state === STATE.behind) sql.setDue.run(next.seq as number)
}

let claims = 0 // Of this process, each with a number of its own.

export function claim(transaction: Transaction, limit: number, now: number) {
  const { sql, row, owner } = transaction
  const claim = ++claims
  const found = findDue(transaction, limit, now)
  const unreadable = found.filter((job) => !isReadable(job)).map((job) => failUnreadable(transaction, job, now))
  const readable = unreadable.length === 0 ? found : found.filter(isReadable)
  const jobs = readable.map(([seq, group, , id, body, at, claimCount, firstAt, retryState]) => ({
    id: textOfId(id),
    body: body as Uint8Array,
    claimCount: claimCount + 1,
    firstAt: new Date(firstAt ?? now),
    dueAt: new Date(at),
    retryState: retryState ?? undefined,
    seq,
    claim,
    group,
  }))
  for (const [first, last] of runsOf(jobs)) sql.claim.run(owner, claim, now, first.seq, last.seq)
  row.waiting -= jobs.length
  row.active += jobs.length
  return { jobs, unreadable, nextDueAt: findNextDue(transaction) }
}

/** A row is an array, because an object takes twice as long. */
type JobRow = readonly [
  seq: number,
  group: Group,
  state: number,
  id: Uint8Array,
  body: Uint8Array | null,
  at: number,
  claimCount: number,
  firstAt: number | null,
  retryState: Uint8Array | null,
]

/** Finds due jobs in their order, and lets those whose time has come join the others. */
function findDue({ sql, row }: Transaction, limit: number, now: number): readonly JobRow[] {
  const came = sql.nowDue.all(row.queue, now, limit) as unknown as JobRow[]
  for (const [seq, group, state] of came) {
    if (group === null) continue
    if (state === STATE.held) sql.setDue.run(seq)
    else sql.joinLine.run(stateIn(sql, row.queue, group), row.next++, seq)
  }
  const inOrder = sql.due.all(row.queue, limit) as unknown as JobRow[]
  const alone = came.filter(([, group]) => group === null)
  if (alone.length === 0) return inOrder
  return [...alone, ...inOrder].sort(([, , , , , one], [, , , , , other]) => one - other).slice(0, limit)
}

function isReadable([, , , id, body]: JobRow): boolean {
  return id.byteLength === 16 && body !== null
}

function failUnreadable(transaction: Transaction, [seq, group, , bytes, body]: JobRow, now: number): DeadLetter {
  const { sql, row } = transaction
  const id = bytes.byteLength === 16 ? textOfId(bytes) : randomUUID() // By which it can be redriven and dropped.
  const reason = `unreadable: ${body === null ? 'its body is missing' : 'its id is not a UUID of 16 bytes'}`
  sql.failUnreadable.run(bytesOfId(id), row.next++, now, Buffer.from(reason), seq)
  advance(transaction, group)
  row.waiting -= 1
  row.deadLetters += 1
  return { id, reason, body: new Uint8Array(), retryState: undefined, failedAt: new Date(now) }
}

/** 0 when a job is due already, even if the clock was set back since. */
function findNextDue({ sql, row: { queue } }: Transaction): number | undefined {
  return atOf(sql.firstDue.get(queue)) === undefined ? atOf(sql.firstLater.get(queue)) : 0
}

function atOf(row: object | undefined): number | undefined {
  return (row as { readonly at: number } | undefined)?.at
}

/** Jobs that were claimed one after the other are completed together. */
export function complete(transaction: Transaction, claims: readonly Completed[], now: number): void {
  const { sql, row, owner } = transaction
  const isLogged = ({ log }: Completed): boolean => log !== undefined
  for (const { seq, claim, log } of claims.filter(isLogged)) {
    const added = sql.append.get(row.queue * NUMBERS + row.next++, now, log as Uint8Array, seq, owner, claim)
    if (added === undefined) continue // The claim has ended.
    row.logBytes += added.bytes as number
    row.active -= Number(sql.complete.run(now, seq, seq, owner, claim).changes)
  }
  for (const [{ seq: first, claim }, { seq: last }] of runsOf(claims.filter((each) => !isLogged(each)))) {
    sql.removeBodies.run(first, last, owner, claim)
    row.active -= Number(sql.complete.run(now, first, last, owner, claim).changes)
  }
  for (const { group } of claims) advance(transaction, group)
}

/** The first and the last of those that were claimed together and follow each other: one statement is for them all. */
function runsOf<Job extends Pick<ClaimRef, 'seq' | 'claim'>>(jobs: readonly Job[]): [first: Job, last: Job][] {
  const runs: [first: Job, last: Job][] = []
  for (const job of jobs.toSorted((a, b) => a.claim - b.claim || a.seq - b.seq)) {
    const run = runs.at(-1)
    if (run !== undefined && run[1].claim === job.claim && run[1].seq + 1 === job.seq) run[1] = job
    else runs.push([job, job])
  }
  return runs
}

/** Looks at so many jobs from one on, and forgets those that are done and whose dedupe window is over. Returns where to go on. */
function forgetDone({ sql, row: { queue } }: Transaction, after: number, limit: number, until: number): number {
  const [from, stop] = [Math.max(after, queue * NUMBERS), (queue + 1) * NUMBERS]
  const last = sql.nextSeq.get(from, stop, limit - 1)?.seq as number | undefined
  sql.forgetMany.run(from, last ?? stop, until)
  return last ?? 0
}

type Unfinished = Exclude<Outcome, { readonly complete: true }>

export function finish(
  transaction: Transaction,
  { seq, claim, group }: ClaimRef,
  outcome: Unfinished,
  now: number,
): void {
  const { sql, row, owner } = transaction
  const isRetry = 'retryAt' in outcome
  const at = isRetry ? Math.max(now, outcome.retryAt.getTime()) : now
  const staysFirst = group !== null && isRetry
  const waiting = at <= now ? STATE.due : staysFirst ? STATE.held : STATE.later
  const { changes } = sql.finish.run(
    ...[isRetry ? waiting : STATE.dead, Number(staysFirst), staysFirst ? null : row.next, at],
    ...[outcome.retryState ?? null, isRetry ? null : Buffer.from(outcome.deadLetter), seq, owner, claim],
  )
  if (changes === 0) return
  if (!staysFirst) advance(transaction, group)
  row.next += 1
  row.active -= 1
  row[isRetry ? 'waiting' : 'deadLetters'] += 1
}

export function release({ sql, row, owner }: Transaction, claims: readonly ClaimRef[], wereHandled: boolean): void {
  const uncounted = Number(!wereHandled)
  for (const { seq, claim } of claims) {
    const changes = Number(sql.release.run(uncounted, uncounted, seq, owner, claim).changes)
    row.active -= changes
    row.waiting += changes
  }
}

/** Releases what a process had that has died, before the rows of queues are read. Jobs keep their places: the first were due first. */
export function releaseAllOf(sql: Statements, dead: number): void {
  for (const { queue, count } of sql.countOf.all(dead) as Record<'queue' | 'count', number>[]) {
    sql.moveCount.run(count, count, queue)
  }
  sql.releaseAll.run(dead)
}

/** The most jobs that are counted as they wait for their time. */
const MAX_COUNTED = 10_000

export function count({ sql, row: { queue, waiting, active, deadLetters } }: Transaction, now: number) {
  const times = [sql.firstDue.get(queue), sql.firstNowDue.get(queue, now)].map(atOf).filter((at) => at !== undefined)
  const { later, retrying } = sql.countLater.get(queue) as Record<'later' | 'retrying', number>
  return {
    ...{ waiting, active, deadLetters },
    ...(later <= MAX_COUNTED && { retrying }),
    oldestDueAt: times.length === 0 ? undefined : new Date(Math.min(...times)),
    asOf: new Date(now),
  }
}

interface FoundJob {
  readonly seq: number
  readonly group: Group
  readonly state: number
  readonly place: number
}

function findIn({ sql, row }: Transaction, ids: readonly string[], states: readonly number[]): FoundJob[] {
  const found = ids.map((id) => sql.find.get(row.queue, bytesOfId(id)) as FoundJob | undefined)
  return found.filter((job) => job !== undefined && states.includes(job.state)) as FoundJob[]
}

/** Of the columns, those that the statement reads. */
interface StoredRow {
  readonly seq: number
  readonly id: Uint8Array
  readonly body: Uint8Array
  readonly at: number
  readonly reason: Uint8Array
  readonly retryState: Uint8Array | null
  readonly note: Uint8Array
}

/** Each row is read when it is asked for: those behind the last one of a page are never read. */
function listLetters(transaction: Transaction, { after, newestFirst, ...bounds }: CheckedPage): DeadLetter[] {
  const { sql, row } = transaction
  const [last] = after === undefined ? [] : findIn(transaction, [after], [STATE.dead])
  const first = newestFirst ? Number.MAX_SAFE_INTEGER : 0
  const rows = (newestFirst ? sql.lettersBack : sql.letters).iterate(row.queue, last?.place ?? first)
  return takePage(rows as Iterable<StoredRow>, bounds).map(({ id, body, reason, retryState, at }) => ({
    id: textOfId(id),
    body,
    reason: `${Buffer.from(reason)}`,
    retryState: retryState ?? undefined,
    failedAt: new Date(at),
  }))
}

function redrive(transaction: Transaction, limits: Limits, ids: readonly string[], now: number): number {
  const { sql, row } = transaction
  const found = findIn(transaction, ids, [STATE.dead])
  requireRoom(row, limits, found.length)
  for (const { seq, group } of found) sql.redrive.run(stateIn(sql, row.queue, group), row.next++, now, seq)
  row.deadLetters -= found.length
  row.waiting += found.length
  return found.length
}

const WAITING = [STATE.due, STATE.later, STATE.behind, STATE.held]

/** Deletes those that wait, or the dead letters. */
function remove(transaction: Transaction, ids: readonly string[], which: 'waiting' | 'deadLetters'): number {
  const { sql, row } = transaction
  const found = findIn(transaction, ids, which === 'waiting' ? WAITING : [STATE.dead])
  for (const { seq } of found) {
    sql.removeJob.run(seq)
    sql.removeBody.run(seq)
  }
  row[which] -= found.length
  for (const { group } of found) advance(transaction, group)
  return found.length
}

const LISTED_AT_ONCE = 5_000

/** Lists the jobs among the next rows, and returns the last row, to go on from. */
function listJobs({ sql, row: { queue } }: Transaction, after: number) {
  const [from, stop] = [Math.max(after, queue * NUMBERS), (queue + 1) * NUMBERS]
  const bound = sql.nextSeq.get(from, stop, LISTED_AT_ONCE - 1)?.seq as number | undefined
  const found = takePage(sql.stored.iterate(from, bound ?? stop) as Iterable<StoredRow>, PAGE)
  return { jobs: found.map(({ id, body }) => ({ id: textOfId(id), body })), last: found.at(-1)?.seq ?? bound }
}

function listLog({ sql, row }: Transaction, { since, until, after, ...bounds }: CheckedLogPage): LogEntry[] {
  const from = Math.max(Number(after ?? 0), row.queue * NUMBERS)
  const [earliest, latest] = [since?.getTime() ?? 0, until?.getTime() ?? Number.MAX_SAFE_INTEGER]
  const rows = sql.logged.iterate(from, (row.queue + 1) * NUMBERS, earliest, latest)
  return takePage(rows as Iterable<StoredRow>, bounds).map(({ seq, id, at, note, body }) => {
    return { id: textOfId(id), body, note, handledAt: new Date(at), cursor: `${seq}` }
  })
}

function trimLog(transaction: Transaction, { before, maxBytes, limit }: Parameters<LogStore['trim']>[0]): number {
  const { sql, row } = transaction
  const oldest = sql.oldestLogged.all(row.queue * NUMBERS, (row.queue + 1) * NUMBERS, limit)
  let dropped = 0
  for (const { seq, at } of oldest as { readonly seq: number; readonly at: number }[]) {
    if (at >= before.getTime() && row.logBytes <= maxBytes) break
    removeEntry(transaction, seq)
    dropped += 1
  }
  return dropped
}

function removeFromLog(transaction: Transaction, cursors: readonly string[]): number {
  const ours = cursors.map(Number).filter((seq) => Math.floor(seq / NUMBERS) === transaction.row.queue)
  return ours.filter((seq) => removeEntry(transaction, seq)).length
}

function removeEntry({ sql, row }: Transaction, seq: number): boolean {
  const removed = sql.removeLogged.get(seq) as { readonly bytes: number; readonly job: number } | undefined
  if (removed === undefined) return false
  sql.removeBody.run(removed.job)
  row.logBytes -= removed.bytes
  return true
}

function bytesOfId(id: string): Buffer {
  return Buffer.from(id.replaceAll('-', ''), 'hex')
}

/** One of another length than 16 bytes is found by its text, too. */
function textOfId(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

export type Statements = ReturnType<typeof prepareStatements>

/** Each finds its rows by an index, however many there are. */
export function prepareStatements(database: DatabaseSync) {
  const prepare = (sql: string) => database.prepare(sql.replaceAll('$', 'hookline_queue_'))
  const prepareRows = (sql: string) => {
    const statement = prepare(sql)
    statement.setReturnArrays(true)
    return statement
  }
  const BODY = '(SELECT body FROM $bodies AS b WHERE b.seq = j.seq)'
  const JOB = `SELECT seq, in_group, state, id, ${BODY}, at, claim_count, first_at, retry_state FROM $jobs AS j`
  const DUE = `WHERE queue = ? AND state = ${STATE.due} ORDER BY place`
  const LATER = `WHERE queue = ? AND ${IS_LATER}`
  const NOW_DUE = `${LATER} AND at <= ? ORDER BY at, seq`
  const CLAIMED = `state = ${STATE.claimed} AND owner = ? AND claim = ?` // Every statement that ends a claim names it.
  const OF_OWNER = `WHERE state = ${STATE.claimed} AND owner = ?`
  const RELEASE = `UPDATE $jobs SET state = ${STATE.due}, owner = NULL, claim = NULL`
  const LETTER = `
    SELECT id, reason, retry_state AS retryState, at, coalesce(${BODY}, x'') AS body FROM $jobs AS j WHERE queue = ? AND state = ${STATE.dead}`
  const IN_LOG = 'FROM hookline_log AS l WHERE l.seq > ? AND l.seq < ?'
  return {
    find: prepare('SELECT seq, state, place, in_group AS "group" FROM $jobs WHERE queue = ? AND id = ?'),
    nextSeq: prepare('SELECT seq FROM $jobs WHERE seq > ? AND seq < ? ORDER BY seq LIMIT 1 OFFSET ?'),
    removeJob: prepare('DELETE FROM $jobs WHERE seq = ?'),
    removeBody: prepare('DELETE FROM $bodies WHERE seq = ?'),

    insert: prepare(`
      INSERT INTO $jobs (seq, queue, id, in_group, line, state, place, at, claim_count) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)
      ON CONFLICT (queue, id) DO NOTHING`),
    insertBody: prepare('INSERT INTO $bodies (seq, body) VALUES (?, ?)'),
    forget: prepare(`DELETE FROM $jobs WHERE queue = ? AND id = ? AND state = ${STATE.done} AND at <= ?`),
    forgetMany: prepare(`DELETE FROM $jobs WHERE seq > ? AND seq <= ? AND state = ${STATE.done} AND at <= ?`),

    firstInLine: prepare('SELECT seq, state FROM $jobs WHERE queue = ? AND line = ? ORDER BY place LIMIT 1'),
    setDue: prepare(`UPDATE $jobs SET state = ${STATE.due} WHERE seq = ?`),
    joinLine: prepare('UPDATE $jobs SET state = ?, line = in_group, place = ? WHERE seq = ?'),

    due: prepareRows(`${JOB} ${DUE} LIMIT ?`),
    nowDue: prepareRows(`${JOB} ${NOW_DUE} LIMIT ?`),
    firstDue: prepare(`SELECT at FROM $jobs ${DUE} LIMIT 1`),
    firstNowDue: prepare(`SELECT at FROM $jobs ${NOW_DUE} LIMIT 1`),
    firstLater: prepare(`SELECT at FROM $jobs ${LATER} ORDER BY at LIMIT 1`),
    countLater: prepare(`
      SELECT count(*) AS later, count(*) FILTER (WHERE claim_count > 0) AS retrying
      FROM (SELECT claim_count FROM $jobs ${LATER} LIMIT ${MAX_COUNTED + 1}) AS bounded`),
    claim: prepare(`
      UPDATE $jobs SET state = ${STATE.claimed}, owner = ?, claim = ?, claim_count = claim_count + 1, first_at = coalesce(first_at, ?)
      WHERE seq BETWEEN ? AND ?`),
    failUnreadable: prepare(`
      UPDATE $jobs SET state = ${STATE.dead}, line = NULL, id = ?, place = ?, at = ?, reason = ? WHERE seq = ?`),

    append: prepare(`
      INSERT INTO hookline_log (seq, id, job, at, bytes, note) SELECT ?, id, j.seq, ?, length(body), ?
      FROM $jobs AS j JOIN $bodies AS b ON b.seq = j.seq WHERE j.seq = ? AND ${CLAIMED} RETURNING bytes`),
    complete: prepare(`
      UPDATE $jobs SET state = ${STATE.done}, line = NULL, at = ?, first_at = NULL, owner = NULL, claim = NULL, retry_state = NULL
      WHERE seq BETWEEN ? AND ? AND ${CLAIMED}`),
    removeBodies: prepare(`
      DELETE FROM $bodies AS b WHERE seq BETWEEN ? AND ?
        AND EXISTS (SELECT 1 FROM $jobs AS j WHERE j.seq = b.seq AND ${CLAIMED})`),
    finish: prepare(`
      UPDATE $jobs SET state = ?, line = CASE WHEN ? THEN line END, place = coalesce(?, place), at = ?, retry_state = ?, reason = ?,
        owner = NULL, claim = NULL
      WHERE seq = ? AND ${CLAIMED}`),
    save: prepare(`UPDATE $jobs SET retry_state = ? WHERE seq = ? AND ${CLAIMED}`),
    release: prepare(`
      ${RELEASE}, claim_count = claim_count - ?, first_at = CASE WHEN claim_count > ? THEN first_at END
      WHERE seq = ? AND ${CLAIMED}`),
    owners: prepare(`SELECT DISTINCT owner FROM $jobs WHERE state = ${STATE.claimed}`),
    countOf: prepare(`SELECT queue, count(*) AS count FROM $jobs ${OF_OWNER} GROUP BY queue`),
    moveCount: prepare('UPDATE hookline_queues SET active = active - ?, waiting = waiting + ? WHERE queue = ?'),
    releaseAll: prepare(`${RELEASE} ${OF_OWNER}`),

    letters: prepare(`${LETTER} AND place > ? ORDER BY place`),
    lettersBack: prepare(`${LETTER} AND place < ? ORDER BY place DESC`),
    redrive: prepare(`
      UPDATE $jobs SET state = ?, line = in_group, place = ?, at = ?, claim_count = 0, first_at = NULL, reason = NULL WHERE seq = ?`),
    stored: prepare(`
      SELECT j.seq, id, body FROM $jobs AS j JOIN $bodies AS b ON b.seq = j.seq
      WHERE j.seq > ? AND j.seq <= ? AND state NOT IN (${STATE.dead}, ${STATE.done}) ORDER BY j.seq`),

    logged: prepare(`
      SELECT seq, id, at, note, coalesce((SELECT body FROM $bodies AS b WHERE b.seq = job), x'') AS body ${IN_LOG} AND at >= ? AND at < ? ORDER BY seq`),
    oldestLogged: prepare(`SELECT seq, at ${IN_LOG} ORDER BY seq LIMIT ?`),
    removeLogged: prepare('DELETE FROM hookline_log WHERE seq = ? RETURNING bytes, job'),
  }
}
