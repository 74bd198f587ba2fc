/**
 * The store of a queue in a SQLite file. Each call of a {@link QueueStore} is a step in a transaction, which the
 * {@link QueueFile} begins and commits. In this module, the calls come first, then the steps.
 */

import { randomUUID } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { invalidOption, kindOf } from '../../kit/checks.ts'
import { HooklineError } from '../../protocol/error.ts'
import { digestOf } from '../groups.ts'
import type { QueueCounts } from '../health.ts'
import type {
  Answer,
  CheckedLogPage,
  CheckedPage,
  LogStore,
  Mark,
  MarkStore,
  QueueStore,
  ReleaseOptions,
} from '../queue-store.ts'
import type {
  ClaimedJob,
  DeadLetter,
  Job,
  LogEntry,
  Outcome,
  PushOptions,
  QueueUse,
  StoredJob,
} from '../queue-types.ts'
import { PAGE, takePage } from '../walk.ts'
import { unavailable } from './advice.ts'
import { realPathOf, requireSqlite } from './database.ts'
import { NO_OWNER } from './locks.ts'
import type { Settings } from './sqlite-options.ts'
import { type Group, type JobRow, MAX_COUNTED, prepareStatements, type Statements } from './sqlite-statements.ts'
import {
  createQueueRows,
  type QueueAndUse,
  type QueueRow,
  type Queues,
  SEQS_PER_QUEUE,
  STATE,
} from './sqlite-tables.ts'

/** The file of a queue, which runs the steps of the store in transactions. */
export interface QueueFile {
  /** The canonical path, which is the same for all paths by which the file can be opened. */
  readonly path: string
  call<T>(kind: Kind, step: Step<T>): Promise<T>
  reserve(use: QueueUse): void
  /** Calls `listener` soon after another connection has committed. */
  onCommit(listener: () => void): void
  close(): Promise<void>
}

/**
 * The kinds of calls:
 * - `read` changes nothing;
 * - `claim` comes after the other calls of its turn, and often finds nothing, so its transaction begins as a read;
 * - `write` may be lost in a power cut, after which its job is handled again;
 * - `release` never fails, because a later turn retries it: otherwise, its jobs would stay claimed for as long as their process lives;
 * - `promise` is answered once its commit is on the disk;
 * - `erase` is like `promise`, and also removes the deleted data from the WAL.
 */
export type Kind = 'read' | 'claim' | 'write' | 'release' | 'promise' | 'erase'

/** The part of a transaction that belongs to one call. */
export type Step<T> = (transaction: Transaction) => T

/** A transaction, as the step of one call sees it. Changes to `row` are written when the transaction ends. */
export interface Transaction {
  readonly sql: Statements
  readonly row: QueueRow
  /** The owner that stands for this process: see `locks.ts`. */
  readonly owner: number
  /**
   * About how many bytes the step adds to the WAL: the pages that it changes, the bodies that it adds, and the bodies that it deletes,
   * because `secure_delete` overwrites them with zeros.
   */
  walBytes: number
}

/** Identifies a job and one claim on it. A statement with the claim as a condition changes nothing if the claim has ended. */
export interface ClaimRef {
  readonly seq: number
  readonly claimNumber: number
  readonly group: Group
}

export type SqliteClaim = ClaimedJob & ClaimRef

/** A claim whose job is complete, with the note for the log, if any. */
type Completed = ClaimRef & Pick<ClaimedJob, 'body'> & { readonly log: Uint8Array | undefined }

/**
 * The completions of one turn, which are made in one call. One statement can then complete all jobs that were claimed together. With a
 * separate call for each job, a job takes twice as long.
 */
interface Batch {
  readonly claims: Completed[]
  readonly isDone: Promise<void>
}

export class SqliteStore implements QueueStore<SqliteClaim> {
  readonly isDurable = true
  readonly isOrdered = true
  readonly hasTransactions = true
  readonly hasGroups = true
  readonly place: string
  readonly log: LogStore
  readonly marks: MarkStore
  readonly #settings: Settings
  readonly #file: QueueFile
  #use: QueueUse | undefined
  /**
   * The time at which the next job is due, as the last claim found it. The time is kept because the worker asks for it once after each
   * claim.
   */
  #nextDue: { readonly at: number | undefined } | undefined
  #batch: Batch | undefined
  #forgottenTo = 0

  constructor(settings: Settings, file: QueueFile) {
    this.place = `sqlite ${file.path} ${settings.name}`
    this.#settings = settings
    this.#file = file
    this.log = {
      list: (page) => file.call('read', (transaction) => listLog(transaction, page)),
      trim: (which) => file.call('write', (transaction) => trimLog(transaction, which)),
      remove: (cursors) => file.call('erase', (transaction) => removeFromLog(transaction, cursors)),
      rewrite: (entries) => file.call('erase', (transaction) => rewriteLog(transaction, entries)),
    }
    this.marks = {
      set: (marks, endedBefore) => file.call('promise', (transaction) => setMarks(transaction, marks, endedBefore)),
      list: (version, limit) => file.call('read', (transaction) => listMarks(transaction, version, limit)),
    }
  }

  reserve(use: QueueUse): void {
    this.#use = use
    try {
      this.#file.reserve(use)
    } catch (cause) {
      throw unavailable(`Queue ${this.#settings.name}`, this.#file.path, cause)
    }
  }

  push(jobs: readonly Job[], { db }: PushOptions = {}): Answer<readonly string[]> {
    const step = (transaction: Transaction) => push(transaction, this.#settings, jobs, this.#now())
    if (db === undefined) return this.#file.call('promise', step)
    return makeInTransactionOf(db, this.#file.path, { name: this.#settings.name, use: this.#use }, step)
  }

  async claim(limit: number, onUnreadable?: (letter: DeadLetter) => void): Promise<readonly SqliteClaim[]> {
    const found = await this.#file.call('claim', (transaction) => claim(transaction, limit, this.#now()))
    for (const letter of found.unreadable) onUnreadable?.(letter)
    this.#nextDue = { at: found.nextDueAt }
    return found.jobs
  }

  save(claim: SqliteClaim, state: Uint8Array): Promise<void> {
    return this.#file.call('write', (transaction) => saveState(transaction, claim, state))
  }

  finish(claim: SqliteClaim, outcome: Outcome): Promise<void> {
    if ('complete' in outcome) return this.#completeTogether({ ...claim, log: outcome.log })
    return this.#file.call('write', (transaction) => retryOrFail(transaction, claim, outcome, this.#now()))
  }

  release(claims: readonly SqliteClaim[], { wereHandled }: ReleaseOptions): Promise<void> {
    return this.#file.call('release', (transaction) => release(transaction, claims, wereHandled))
  }

  /** Returns when the next job is due. The first call after a claim uses the time that the claim read; later calls read the file. */
  async nextDueAt(): Promise<Date | undefined> {
    const { at } = this.#nextDue ?? { at: await this.#file.call('read', findNextDue) }
    this.#nextDue = undefined
    return at === undefined ? undefined : new Date(at)
  }

  counts(): Promise<QueueCounts> {
    return this.#file.call('read', (transaction) => count(transaction, this.#now()))
  }

  deadLetters(page: CheckedPage): Promise<readonly DeadLetter[]> {
    return this.#file.call('read', (transaction) => listLetters(transaction, page))
  }

  redrive(ids: readonly string[]): Promise<number> {
    return this.#file.call('promise', (transaction) => redrive(transaction, this.#settings, ids, this.#now()))
  }

  drop(ids: readonly string[]): Promise<number> {
    return this.#file.call('erase', (transaction) => removeJobs(transaction, ids, 'deadLetters'))
  }

  rewrite(letters: readonly DeadLetter[]): Promise<void> {
    return this.#file.call('erase', (transaction) => rewriteLetters(transaction, letters))
  }

  async *jobs(): AsyncGenerator<readonly StoredJob[]> {
    for (let after: number | undefined = 0; after !== undefined; ) {
      const from: number = after
      const { jobs, last } = await this.#file.call('read', (transaction) => listJobs(transaction, from))
      yield jobs
      after = last
    }
  }

  remove(ids: readonly string[]): Promise<number> {
    return this.#file.call('erase', (transaction) => removeJobs(transaction, ids, 'waiting'))
  }

  onChange(listener: () => void): void {
    this.#file.onCommit(listener)
  }

  async close(): Promise<[]> {
    await this.#file.close()
    return []
  }

  #completeTogether(claim: Completed): Promise<void> {
    this.#batch ??= this.#beginBatch()
    this.#batch.claims.push(claim)
    return this.#batch.isDone
  }

  /** Begins a batch, to which completions are added until its step runs. If the step is retried, it runs with the same completions. */
  #beginBatch(): Batch {
    const claims: Completed[] = []
    const endBatch = (): void => {
      if (this.#batch?.claims === claims) this.#batch = undefined
    }
    const isDone = this.#file.call('write', (transaction) => {
      const now = this.#now()
      endBatch()
      complete(transaction, claims, now)
      const until = now - this.#settings.dedupeWindowMs
      // The step looks at twice as many jobs as the batch completes, so that forgetting catches up.
      this.#forgottenTo = forgetDone(transaction, this.#forgottenTo, 2 * claims.length, until)
    })
    isDone.catch(endBatch) // The call may fail before its step runs.
    return { claims, isDone }
  }

  #now(): number {
    return Math.floor(this.#settings.clock.now())
  }
}

/** The prepared statements for each connection of a caller, which are kept because preparing them takes longer than a push. */
const prepared = new WeakMap<DatabaseSync, { readonly sql: Statements; readonly queues: Queues }>()

/**
 * Runs a step in a transaction of the caller, over the caller's own connection to the file, in this thread.
 *
 * @throws TypeError for a `db` that is not a transaction on the file; errors from SQLite, unchanged.
 */
function makeInTransactionOf<T>(db: object, path: string, queue: QueueAndUse, step: Step<T>): T {
  requireTransaction(db, path)
  const known = prepared.get(db) ?? { sql: prepareStatements(db), queues: createQueueRows(db) }
  prepared.set(db, known)
  const { sql, queues } = known
  queues.forgetRows()
  queues.addQueue(queue)
  const result = step({ sql, row: queues.rowOf(queue.name), owner: NO_OWNER, walBytes: 0 })
  queues.save()
  return result
}

function requireTransaction(db: object, path: string): asserts db is DatabaseSync {
  const { DatabaseSync } = requireSqlite()
  // Only node:sqlite is accepted, because two SQLite libraries in one process do not see each other's locks, and would overwrite each
  // other's data.
  if (!(db instanceof DatabaseSync)) throw noTransaction(kindOf(db))
  const [main] = db.prepare('PRAGMA database_list').all()
  if (typeof main?.file !== 'string') throw noTransaction('a connection that reads rows as arrays')
  if (main.file === '' || realPathOf(main.file) !== path) throw noTransaction('a connection to another file')
  if (!db.isTransaction) throw noTransaction('a connection outside of a transaction')
  if (typeof db.prepare('SELECT 1 AS one').get()?.one !== 'number')
    throw noTransaction('a connection that reads big integers')
}

function noTransaction(found: string): TypeError {
  const rule = 'must be a node:sqlite connection to the file of the queue, with an open transaction'
  const advice = 'Open the file with new DatabaseSync(path), run BEGIN IMMEDIATE, then pass the connection.'
  return invalidOption('db', rule, found, advice)
}

type Limits = Pick<Settings, 'name' | 'dedupeWindowMs' | 'maxJobs'>

const PAGE_BYTES = 4 * 1024
/**
 * About how many bytes a call adds to the WAL in addition to bodies. A push adds this much for each job, because the random id of each job is
 * on a different page.
 */
const CALL_BYTES = 2 * PAGE_BYTES

/** Adds jobs. Returns the ids that were already known, whose jobs were not added. */
export function push(transaction: Transaction, limits: Limits, jobs: readonly Job[], now: number): readonly string[] {
  const { sql, row } = transaction
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
    const seq = queue * SEQS_PER_QUEUE + row.next
    const state = at <= now ? stateInLine(sql, queue, group) : STATE.later
    const line = state === STATE.later ? null : group
    const isAdded = () => sql.insert.run(seq, queue, bytes, group, line, state, row.next, at).changes > 0
    if (isAdded() || (sql.forget.run(queue, bytes, until).changes > 0 && isAdded())) {
      sql.insertBody.run(seq, body)
      transaction.walBytes += body.byteLength + CALL_BYTES
      row.next += 1
      row.waiting += 1
    } else known.push(id)
  }
  return known
}

function requireRoom({ waiting, active }: QueueRow, { name, maxJobs }: Limits, more: number): void {
  const jobs = waiting + active + more
  if (more === 0 || jobs <= maxJobs) return
  const message = `Queue ${name} is full: it would hold ${jobs} jobs, and maxJobs allows ${maxJobs}. Push again later, or raise maxJobs.`
  throw new HooklineError('queue_full', message)
}

/** Returns the state that a job gets when it is due and joins the line of its group. */
function stateInLine(sql: Statements, queue: number, group: Group): number {
  return group === null || sql.firstInLine.get(queue, group) === undefined ? STATE.due : STATE.behind
}

/** Makes the first job in the line of a group due if the job was behind another one, which has left the line. */
function advanceLine({ sql, row }: Transaction, group: Group): void {
  if (group === null) return
  const next = sql.firstInLine.get(row.queue, group)
  if (next?.state === STATE.behind) sql.setDue.run(next.seq)
}

/** The number of the last claim of this process. The owner and the number together identify a claim. */
let lastClaimNumber = 0

export function claim(transaction: Transaction, limit: number, now: number) {
  const { sql, row, owner } = transaction
  lastClaimNumber += 1
  const claimNumber = lastClaimNumber
  const jobs: SqliteClaim[] = []
  const unreadable: DeadLetter[] = []
  for (const found of findDue(transaction, limit, now)) {
    const [seq, group, , id, body, at, claimCount, firstAt, retryState] = found
    if (id.byteLength !== 16 || body === null) {
      unreadable.push(failUnreadable(transaction, found, now))
      continue
    }
    jobs.push({
      id: textOfId(id),
      body,
      claimCount: claimCount + 1,
      firstAt: new Date(firstAt ?? now),
      dueAt: new Date(at),
      retryState: retryState ?? undefined,
      seq,
      claimNumber,
      group,
    })
  }
  for (const [first, last] of consecutiveRangesOf(jobs)) sql.claim.run(owner, claimNumber, now, first.seq, last.seq)
  if (jobs.length > 0) transaction.walBytes += CALL_BYTES
  row.waiting -= jobs.length
  row.active += jobs.length
  return { jobs, unreadable, nextDueAt: findNextDue(transaction) }
}

/** Finds due jobs, in their order. First adds the jobs whose time has come to the lines of their groups. */
function findDue({ sql, row }: Transaction, limit: number, now: number): readonly JobRow[] {
  const nowDue = sql.nowDue.all(row.queue, now, limit)
  for (const [seq, group, state] of nowDue) {
    if (group === null) continue
    if (state === STATE.held) sql.setDue.run(seq)
    else sql.joinLine.run(stateInLine(sql, row.queue, group), row.next++, seq)
  }
  const inOrder = sql.due.all(row.queue, limit)
  const alone = nowDue.filter(([, group]) => group === null)
  if (alone.length === 0) return inOrder
  return [...alone, ...inOrder].sort((one, other) => dueAtOf(one) - dueAtOf(other)).slice(0, limit)
}

function dueAtOf([, , , , , at]: JobRow): number {
  return at
}

/** Turns a job that cannot be read into a dead letter. */
function failUnreadable(transaction: Transaction, [seq, group, , bytes, body]: JobRow, now: number): DeadLetter {
  const { sql, row } = transaction
  // A job with a broken id gets a new id, by which its dead letter can be redriven and dropped.
  const id = bytes.byteLength === 16 ? textOfId(bytes) : randomUUID()
  const reason = `unreadable: ${body === null ? 'its body is missing' : 'its id is not a UUID of 16 bytes'}`
  sql.failUnreadable.run(bytesOfId(id), row.next++, now, Buffer.from(reason), seq)
  advanceLine(transaction, group)
  row.waiting -= 1
  row.deadLetters += 1
  return { id, reason, body: new Uint8Array(), retryState: undefined, failedAt: new Date(now) }
}

/**
 * Returns the time at which the next job is due; 0 if a job is already due, so that the time is in the past even if the clock was set back.
 */
function findNextDue({ sql, row: { queue } }: Transaction): number | undefined {
  return sql.firstDue.get(queue) === undefined ? sql.firstLater.get(queue)?.at : 0
}

/** Completes jobs. Jobs with a note are appended to the log, and keep their bodies there. */
export function complete(transaction: Transaction, claims: readonly Completed[], now: number): void {
  const { sql, row, owner } = transaction
  for (const { seq, claimNumber, log } of claims) {
    if (log === undefined) continue
    const added = sql.append.get(row.queue * SEQS_PER_QUEUE + row.next++, now, log, seq, owner, claimNumber)
    if (added === undefined) continue // The claim has ended.
    row.logBytes += added.bytes
    row.active -= Number(sql.complete.run(now, seq, seq, owner, claimNumber).changes)
  }
  const unlogged = claims.filter(({ log }) => log === undefined)
  for (const [{ seq: first, claimNumber }, { seq: last }] of consecutiveRangesOf(unlogged)) {
    sql.removeBodies.run(first, last, owner, claimNumber)
    row.active -= Number(sql.complete.run(now, first, last, owner, claimNumber).changes)
  }
  for (const { group } of claims) advanceLine(transaction, group)
  transaction.walBytes += claims.reduce((sum, { body }) => sum + body.byteLength, CALL_BYTES)
}

/**
 * Splits jobs into ranges that were claimed together and have consecutive `seq` numbers, because one statement can change a whole range.
 */
function consecutiveRangesOf<Job extends ClaimRef>(jobs: readonly Job[]): [first: Job, last: Job][] {
  const ranges: [first: Job, last: Job][] = []
  for (const job of jobs.toSorted((a, b) => a.claimNumber - b.claimNumber || a.seq - b.seq)) {
    const range = ranges.at(-1)
    if (range !== undefined && range[1].claimNumber === job.claimNumber && range[1].seq + 1 === job.seq) range[1] = job
    else ranges.push([job, job])
  }
  return ranges
}

/**
 * Looks at the next `limit` jobs after the job `after`, and deletes the jobs among them that were completed before `until`. Returns the
 * `after` of the next call, which is 0 once all jobs have been looked at.
 */
function forgetDone(transaction: Transaction, after: number, limit: number, until: number): number {
  const { sql, row } = transaction
  const [from, stop] = [Math.max(after, row.queue * SEQS_PER_QUEUE), (row.queue + 1) * SEQS_PER_QUEUE]
  const last = sql.nextSeq.get(from, stop, limit - 1)?.seq // Undefined if fewer than `limit` jobs are left.
  transaction.walBytes += PAGE_BYTES * Number(sql.forgetMany.run(from, last ?? stop, until).changes)
  return last ?? 0
}

function saveState(transaction: Transaction, { seq, claimNumber }: ClaimRef, state: Uint8Array): void {
  transaction.sql.save.run(state, seq, transaction.owner, claimNumber)
  transaction.walBytes += state.byteLength + CALL_BYTES
}

type RetryOrDeadLetter = Exclude<Outcome, { readonly complete: true }>

export function retryOrFail(
  transaction: Transaction,
  { seq, claimNumber, group }: ClaimRef,
  outcome: RetryOrDeadLetter,
  now: number,
): void {
  const { sql, row, owner } = transaction
  const isRetry = 'retryAt' in outcome
  const at = isRetry ? Math.max(now, outcome.retryAt.getTime()) : now
  const staysFirst = group !== null && isRetry
  const { changes } = sql.retryOrFail.run(
    isRetry ? stateOfRetry(group, at, now) : STATE.dead,
    Number(staysFirst), // Whether the job stays in the line of its group.
    staysFirst ? null : row.next, // With null, the job keeps its place.
    at,
    outcome.retryState ?? null,
    isRetry ? null : Buffer.from(outcome.deadLetter),
    seq,
    owner,
    claimNumber,
  )
  if (changes === 0) return
  transaction.walBytes += CALL_BYTES
  if (!staysFirst) advanceLine(transaction, group)
  row.next += 1
  row.active -= 1
  row[isRetry ? 'waiting' : 'deadLetters'] += 1
}

function stateOfRetry(group: Group, at: number, now: number): number {
  if (at <= now) return STATE.due
  return group === null ? STATE.later : STATE.held
}

/** @param wereHandled Whether a handler saw the jobs. If not, these claims do not count. */
export function release(transaction: Transaction, claims: readonly ClaimRef[], wereHandled: boolean): void {
  const { sql, row, owner } = transaction
  // The number to subtract from the claim count. If the count becomes 0, the time of the first claim is cleared.
  const uncounted = Number(!wereHandled)
  for (const { seq, claimNumber } of claims) {
    const changes = Number(sql.release.run(uncounted, uncounted, seq, owner, claimNumber).changes)
    row.active -= changes
    row.waiting += changes
  }
  transaction.walBytes += CALL_BYTES
}

/**
 * Releases all claims of a process that has died. Must run before the rows of the queues are read, because it changes the counts in them.
 */
export function releaseAllOf(sql: Statements, dead: number): void {
  for (const { queue, count } of sql.countOf.all(dead)) {
    sql.countReleased.run(count, count, queue)
  }
  sql.releaseAll.run(dead)
}

export function count({ sql, row }: Transaction, now: number): QueueCounts {
  const { queue, waiting, active, deadLetters } = row
  // A job whose time has come is due, even if no claim has moved it to the due jobs yet.
  const dueAt = [sql.firstDue.get(queue), sql.firstNowDue.get(queue, now)].flatMap((first) => first?.at ?? [])
  const oldestDueAt = dueAt.length === 0 ? undefined : new Date(Math.min(...dueAt))
  const counts = { waiting, active, deadLetters, oldestDueAt, asOf: new Date(now) }
  const { later, retrying } = sql.countLater.get(queue) ?? { later: 0, retrying: 0 }
  return later > MAX_COUNTED ? counts : { ...counts, retrying }
}

function findIn({ sql, row }: Transaction, ids: readonly string[], states: readonly number[]) {
  const found = ids.flatMap((id) => sql.find.get(row.queue, bytesOfId(id)) ?? [])
  return found.filter(({ state }) => states.includes(state))
}

/** Lists a page of dead letters. Reads the rows one by one, so that none is read after the end of the page. */
function listLetters(transaction: Transaction, { after, newestFirst, ...bounds }: CheckedPage): DeadLetter[] {
  const { sql, row } = transaction
  const [last] = after === undefined ? [] : findIn(transaction, [after], [STATE.dead])
  const first = newestFirst ? Number.MAX_SAFE_INTEGER : 0
  const rows = (newestFirst ? sql.lettersBack : sql.letters).iterate(row.queue, last?.place ?? first)
  return takePage(rows, bounds).map(({ id, body, reason, retryState, at }) => ({
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
  transaction.walBytes += found.length * PAGE_BYTES
  for (const { seq, group } of found) sql.redrive.run(stateInLine(sql, row.queue, group), row.next++, now, seq)
  row.deadLetters -= found.length
  row.waiting += found.length
  return found.length
}

function rewriteLetters(transaction: Transaction, letters: readonly DeadLetter[]): void {
  for (const { id, body, retryState = null } of letters) {
    for (const { seq } of findIn(transaction, [id], [STATE.dead])) {
      transaction.sql.setBody.run(body, seq)
      transaction.sql.setState.run(retryState, seq)
      transaction.walBytes += body.byteLength + CALL_BYTES
    }
  }
}

const WAITING = [STATE.due, STATE.later, STATE.behind, STATE.held]

/** Deletes the waiting jobs or the dead letters with these ids. Returns how many of them it deleted. */
function removeJobs(transaction: Transaction, ids: readonly string[], which: 'waiting' | 'deadLetters'): number {
  const { sql, row } = transaction
  const found = findIn(transaction, ids, which === 'waiting' ? WAITING : [STATE.dead])
  for (const { seq } of found) {
    sql.removeJob.run(seq)
    sql.removeBody.run(seq)
  }
  row[which] -= found.length
  for (const { group } of found) advanceLine(transaction, group)
  return found.length
}

/** The maximum number of rows that one step looks at. Most of the rows may be completed jobs. */
const ROWS_AT_ONCE = 5_000

/** Lists the jobs among the next rows. Also returns the `seq` of the last row, from which the next call goes on; undefined at the end. */
function listJobs({ sql, row: { queue } }: Transaction, after: number) {
  const [from, stop] = [Math.max(after, queue * SEQS_PER_QUEUE), (queue + 1) * SEQS_PER_QUEUE]
  const bound = sql.nextSeq.get(from, stop, ROWS_AT_ONCE - 1)?.seq
  const found = takePage(sql.stored.iterate(from, bound ?? stop), PAGE)
  return { jobs: found.map(({ id, body }) => ({ id: textOfId(id), body })), last: found.at(-1)?.seq ?? bound }
}

function listLog({ sql, row }: Transaction, { since, until, after, ...bounds }: CheckedLogPage): LogEntry[] {
  const from = Math.max(Number(after ?? 0), row.queue * SEQS_PER_QUEUE)
  const [earliest, latest] = [since?.getTime() ?? 0, until?.getTime() ?? Number.MAX_SAFE_INTEGER]
  const rows = sql.logged.iterate(from, (row.queue + 1) * SEQS_PER_QUEUE, earliest, latest)
  return takePage(rows, bounds).map(({ seq, id, at, note, body }) => {
    return { id: textOfId(id), body, note, handledAt: new Date(at), cursor: `${seq}` }
  })
}

function trimLog(transaction: Transaction, { before, maxBytes, limit }: Parameters<LogStore['trim']>[0]): number {
  const { sql, row } = transaction
  const oldest = sql.oldestLogged.all(row.queue * SEQS_PER_QUEUE, (row.queue + 1) * SEQS_PER_QUEUE, limit)
  let dropped = 0
  for (const { seq, at } of oldest) {
    if (at >= before.getTime() && row.logBytes <= maxBytes) break
    removeLogEntry(transaction, seq)
    dropped += 1
  }
  return dropped
}

function removeFromLog(transaction: Transaction, cursors: readonly string[]): number {
  const ours = cursors.map(Number).filter((seq) => Math.floor(seq / SEQS_PER_QUEUE) === transaction.row.queue)
  return ours.filter((seq) => removeLogEntry(transaction, seq)).length
}

/** Removes a log entry, and the body of its completed job, which is kept only for the entry. Returns whether the entry existed. */
function removeLogEntry(transaction: Transaction, seq: number): boolean {
  const { sql, row } = transaction
  const removed = sql.removeLogged.get(seq)
  if (removed === undefined) return false
  sql.removeBody.run(removed.job)
  row.logBytes -= removed.bytes
  transaction.walBytes += removed.bytes
  return true
}

function setMarks(transaction: Transaction, marks: readonly Mark[], endedBefore: Date): void {
  const { sql, row } = transaction
  sql.unmark.run(row.queue, endedBefore.getTime())
  for (const { key, until } of marks) sql.mark.run(row.queue, key, until.getTime(), row.next++)
  transaction.walBytes += marks.length * PAGE_BYTES
}

function listMarks({ sql, row }: Transaction, version: number, limit: number) {
  return sql.marks.all(row.queue, version, limit).map((mark) => ({ ...mark, until: new Date(mark.until) }))
}

/**
 * Replaces bodies and notes. Leaves the `bytes` of an entry unchanged, because when the entry is removed, the total size must shrink by the
 * number that was added for it.
 */
function rewriteLog(transaction: Transaction, entries: readonly LogEntry[]): void {
  for (const { cursor, body, note } of entries) {
    const found = transaction.sql.setNote.get(note, Number(cursor))
    if (found === undefined) continue
    transaction.sql.setBody.run(body, found.job)
    transaction.walBytes += body.byteLength + CALL_BYTES
  }
}

function bytesOfId(id: string): Buffer {
  return Buffer.from(id.replaceAll('-', ''), 'hex')
}

/**
 * Converts an id to a UUID. A broken id, which does not have 16 bytes, becomes a string of a different form, from which
 * {@link bytesOfId} restores the bytes.
 */
function textOfId(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
