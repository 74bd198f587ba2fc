/** The statements of a store. Each statement finds its rows through an index, so it stays fast however many rows there are. */

import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { IS_LATER, STATE } from './sqlite-tables.ts'

/** The digest of the name of a group; null for a job without a group. */
export type Group = number | null

/** A row of a job. The row is an array, because reading an object takes twice as long. */
export type JobRow = readonly [
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

type Numbers =
  | ('seq' | 'state' | 'place' | 'at' | 'bytes' | 'job' | 'owner' | 'queue' | 'count' | 'later' | 'retrying')
  | ('until' | 'version')

/** The columns of the rows that statements read as objects. */
type Columns = Readonly<Record<Numbers, number> & Record<'id' | 'body' | 'reason' | 'note', Uint8Array>> & {
  readonly group: Group
  readonly retryState: Uint8Array | null
  readonly key: string
}

/** A statement that returns rows. The types of the columns are correct, because the tables are STRICT. */
interface Query<Row> {
  get(...values: SQLInputValue[]): Row | undefined
  all(...values: SQLInputValue[]): Row[]
  iterate(...values: SQLInputValue[]): Iterable<Row>
}

/** If more jobs than this come due later, the retries among them are not counted, because counting reads each row. */
export const MAX_COUNTED = 10_000

const JOBS = 'hookline_queue_jobs'
const MARKS = 'hookline_queue_marks'
const BODIES = 'hookline_queue_bodies'
const BODY = `(SELECT body FROM ${BODIES} AS b WHERE b.seq = j.seq)`
const JOB = `SELECT seq, in_group, state, id, ${BODY}, at, claim_count, first_at, retry_state FROM ${JOBS} AS j`
const DUE = `WHERE queue = ? AND state = ${STATE.due} ORDER BY place`
const LATER = `WHERE queue = ? AND ${IS_LATER}`
const NOW_DUE = `${LATER} AND at <= ? ORDER BY at, seq`
// Each statement that changes a claimed job has this condition, so that it changes nothing once the claim has ended.
const CLAIMED = `state = ${STATE.claimed} AND owner = ? AND claim = ?`
const OF_OWNER = `WHERE state = ${STATE.claimed} AND owner = ?`
const RELEASE = `UPDATE ${JOBS} SET state = ${STATE.due}, owner = NULL, claim = NULL`
const LETTER = `
  SELECT id, reason, retry_state AS retryState, at, coalesce(${BODY}, x'') AS body FROM ${JOBS} AS j WHERE queue = ? AND state = ${STATE.dead}`
const IN_LOG = 'FROM hookline_log AS l WHERE l.seq > ? AND l.seq < ?'

export type Statements = ReturnType<typeof prepareStatements>

export function prepareStatements(database: DatabaseSync) {
  return { ...prepareQueries(database), ...prepareChanges(database) }
}

function prepareQueries(database: DatabaseSync) {
  const query = <Name extends keyof Columns>(sql: string) => prepareRows<Pick<Columns, Name>>(database, sql)
  const jobs = (sql: string) => prepareRows<JobRow>(database, sql, 'arrays')
  return {
    find: query<'seq' | 'state' | 'place' | 'group'>(
      `SELECT seq, state, place, in_group AS "group" FROM ${JOBS} WHERE queue = ? AND id = ?`,
    ),
    nextSeq: query<'seq'>(`SELECT seq FROM ${JOBS} WHERE seq > ? AND seq < ? ORDER BY seq LIMIT 1 OFFSET ?`),
    firstInLine: query<'seq' | 'state'>(
      `SELECT seq, state FROM ${JOBS} WHERE queue = ? AND line = ? ORDER BY place LIMIT 1`,
    ),
    due: jobs(`${JOB} ${DUE} LIMIT ?`),
    nowDue: jobs(`${JOB} ${NOW_DUE} LIMIT ?`),
    firstDue: query<'at'>(`SELECT at FROM ${JOBS} ${DUE} LIMIT 1`),
    firstNowDue: query<'at'>(`SELECT at FROM ${JOBS} ${NOW_DUE} LIMIT 1`),
    firstLater: query<'at'>(`SELECT at FROM ${JOBS} ${LATER} ORDER BY at LIMIT 1`),
    countLater: query<'later' | 'retrying'>(`
      SELECT count(*) AS later, count(*) FILTER (WHERE claim_count > 0) AS retrying
      FROM (SELECT claim_count FROM ${JOBS} ${LATER} LIMIT ${MAX_COUNTED + 1}) AS bounded`),
    append: query<'bytes'>(`
      INSERT INTO hookline_log (seq, id, job, at, bytes, note) SELECT ?, id, j.seq, ?, length(body), ?
      FROM ${JOBS} AS j JOIN ${BODIES} AS b ON b.seq = j.seq WHERE j.seq = ? AND ${CLAIMED} RETURNING bytes`),
    owners: query<'owner'>(`SELECT DISTINCT owner FROM ${JOBS} WHERE state = ${STATE.claimed}`),
    countOf: query<'queue' | 'count'>(`SELECT queue, count(*) AS count FROM ${JOBS} ${OF_OWNER} GROUP BY queue`),
    letters: query<'id' | 'body' | 'reason' | 'retryState' | 'at'>(`${LETTER} AND place > ? ORDER BY place`),
    lettersBack: query<'id' | 'body' | 'reason' | 'retryState' | 'at'>(`${LETTER} AND place < ? ORDER BY place DESC`),
    stored: query<'seq' | 'id' | 'body'>(`
      SELECT j.seq, id, body FROM ${JOBS} AS j JOIN ${BODIES} AS b ON b.seq = j.seq
      WHERE j.seq > ? AND j.seq <= ? AND state NOT IN (${STATE.dead}, ${STATE.done}) ORDER BY j.seq`),
    logged: query<'seq' | 'id' | 'body' | 'at' | 'note'>(`
      SELECT seq, id, at, note, coalesce((SELECT body FROM ${BODIES} AS b WHERE b.seq = job), x'') AS body ${IN_LOG} AND at >= ? AND at < ? ORDER BY seq`),
    oldestLogged: query<'seq' | 'at'>(`SELECT seq, at ${IN_LOG} ORDER BY seq LIMIT ?`),
    marks: query<'key' | 'until' | 'version'>(
      `SELECT key, until, version FROM ${MARKS} WHERE queue = ? AND version > ? ORDER BY version LIMIT ?`,
    ),
    removeLogged: query<'bytes' | 'job'>('DELETE FROM hookline_log WHERE seq = ? RETURNING bytes, job'),
    setNote: query<'job'>('UPDATE hookline_log SET note = ? WHERE seq = ? RETURNING job'),
  }
}

/** Prepares the statements that change rows. `sqlite-tables.ts` explains the columns and the states. */
function prepareChanges(database: DatabaseSync) {
  const change = (sql: string) => database.prepare(sql)
  return {
    removeJob: change(`DELETE FROM ${JOBS} WHERE seq = ?`),
    removeBody: change(`DELETE FROM ${BODIES} WHERE seq = ?`),
    insert: change(`
      INSERT INTO ${JOBS} (seq, queue, id, in_group, line, state, place, at, claim_count) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)
      ON CONFLICT (queue, id) DO NOTHING`),
    setBody: change(`UPDATE ${BODIES} SET body = ? WHERE seq = ?`),
    setState: change(`UPDATE ${JOBS} SET retry_state = ? WHERE seq = ?`),
    insertBody: change(`INSERT INTO ${BODIES} (seq, body) VALUES (?, ?)`),
    forget: change(`DELETE FROM ${JOBS} WHERE queue = ? AND id = ? AND state = ${STATE.done} AND at <= ?`),
    forgetMany: change(`DELETE FROM ${JOBS} WHERE seq > ? AND seq <= ? AND state = ${STATE.done} AND at <= ?`),
    setDue: change(`UPDATE ${JOBS} SET state = ${STATE.due} WHERE seq = ?`),
    joinLine: change(`UPDATE ${JOBS} SET state = ?, line = in_group, place = ? WHERE seq = ?`),
    claim: change(`
      UPDATE ${JOBS} SET state = ${STATE.claimed}, owner = ?, claim = ?, claim_count = claim_count + 1, first_at = coalesce(first_at, ?)
      WHERE seq BETWEEN ? AND ?`),
    failUnreadable: change(`
      UPDATE ${JOBS} SET state = ${STATE.dead}, line = NULL, id = ?, place = ?, at = ?, reason = ? WHERE seq = ?`),
    complete: change(`
      UPDATE ${JOBS} SET state = ${STATE.done}, line = NULL, at = ?, first_at = NULL, owner = NULL, claim = NULL, retry_state = NULL
      WHERE seq BETWEEN ? AND ? AND ${CLAIMED}`),
    removeBodies: change(`
      DELETE FROM ${BODIES} AS b WHERE seq BETWEEN ? AND ?
        AND EXISTS (SELECT 1 FROM ${JOBS} AS j WHERE j.seq = b.seq AND ${CLAIMED})`),
    // The second parameter is 1 if the job keeps its place in the line of its group, as a retry does.
    retryOrFail: change(`
      UPDATE ${JOBS} SET state = ?, line = CASE WHEN ? THEN line END, place = coalesce(?, place), at = ?, retry_state = ?, reason = ?,
        owner = NULL, claim = NULL
      WHERE seq = ? AND ${CLAIMED}`),
    save: change(`UPDATE ${JOBS} SET retry_state = ? WHERE seq = ? AND ${CLAIMED}`),
    // The first two parameters are the same: 1 if the claim does not count, 0 if it counts.
    release: change(`
      ${RELEASE}, claim_count = claim_count - ?, first_at = CASE WHEN claim_count > ? THEN first_at END
      WHERE seq = ? AND ${CLAIMED}`),
    countReleased: change('UPDATE hookline_queues SET active = active - ?, waiting = waiting + ? WHERE queue = ?'),
    releaseAll: change(`${RELEASE} ${OF_OWNER}`),
    mark: change(`INSERT OR REPLACE INTO ${MARKS} (queue, key, until, version) VALUES (?, ?, ?, ?)`),
    unmark: change(`DELETE FROM ${MARKS} WHERE queue = ? AND until < ?`),
    redrive: change(`
      UPDATE ${JOBS} SET state = ?, line = in_group, place = ?, at = ?, claim_count = 0, first_at = NULL, reason = NULL WHERE seq = ?`),
  }
}

function prepareRows<Row>(database: DatabaseSync, sql: string, as: 'objects' | 'arrays' = 'objects'): Query<Row> {
  const statement = database.prepare(sql)
  if (as === 'arrays') statement.setReturnArrays(true)
  return statement as unknown as Query<Row>
}
