/** Inserts jobs in a transaction of the caller's: pg-boss runs its statements there. */

import type { Db, JobInsert, PgBoss } from 'pg-boss'
import { HooklineError } from '../../message/error.ts'
import { invalidOption, kindOf } from '../../options/checks.ts'
import type { Connection } from './connection.ts'
import type { Settings } from './options.ts'
import { putLast } from './rows.ts'

export async function insertInto(
  db: object,
  jobs: readonly JobInsert[],
  settings: Settings,
  connection: Connection,
): Promise<void> {
  const { name } = settings
  const transaction = readTransaction(db)
  const boss = await connection.call(async (opened) => opened) // Over our own connection: the queue must exist before.
  const isInLine = jobs.some(({ group }) => group !== undefined)
  const inserted = isInLine
    ? await insertInOrder(boss, settings, jobs, transaction, true)
    : await boss.insert(name, [...jobs], { db: transaction, returnId: true })
  const [first] = jobs
  if (inserted !== null || first?.id === undefined) return
  // All are known already, or pg-boss has inserted nothing because it sees no queue.
  const known = await boss.findJobs(name, { id: first.id, db: transaction })
  if (known.length > 0) return
  // Committed, it would lose the jobs.
  const found = 'a `db` of another database, or a snapshot from before the queue was opened'
  const message = `The transaction must see queue ${name}. Got ${found}. Roll back, and begin again in the database of the queue.`
  throw new HooklineError('queue_unavailable', message)
}

/**
 * For jobs of one group: the time of creation is the same for all that a transaction inserts.
 *
 * @param isLonger Whether the transaction may have inserted jobs before.
 */
export async function insertInOrder(
  boss: PgBoss,
  { name, schema }: Settings,
  jobs: readonly JobInsert[],
  db: Db,
  isLonger = false,
) {
  const inserted = await boss.insert(name, [...jobs], { db, returnId: true })
  const fresh = new Set(inserted)
  const ids = jobs.flatMap(({ id }) => (id !== undefined && fresh.has(id) ? [id] : []))
  await putLast(db, schema, name, ids, isLonger ? 'clock_timestamp() - now()' : undefined)
  return inserted
}

/** A client of pg, as far as it is used here. Older ones do not know whether they are in a transaction. */
interface Client {
  query: Db['executeSql']
  getTransactionStatus?(): 'I' | 'T' | 'E' | null
}

function readTransaction(db: object): Db {
  const run = readRun(db as Partial<Db & Client>)
  return {
    async executeSql(text, values) {
      const result = await run(text, values)
      if (!Array.isArray(result?.rows)) {
        throw invalidOption('db', 'must resolve to an object with a list of `rows`', kindOf(result), ADVICE)
      }
      return result
    },
  }
}

function readRun(db: Partial<Db & Client>): Db['executeSql'] {
  if (typeof db.executeSql === 'function') return db.executeSql.bind(db)
  if (typeof db.query !== 'function') throw noTransaction(kindOf(db))
  if ('totalCount' in db) throw noTransaction('a pool')
  const status = db.getTransactionStatus?.()
  if (status === 'I' || status === null) throw noTransaction('a client outside of a transaction')
  return db.query.bind(db)
}

function noTransaction(found: string): TypeError {
  return invalidOption('db', 'must be a transaction of PostgreSQL', found, ADVICE)
}

const ADVICE = 'Pass a client of pg after BEGIN, or an object with executeSql, such as fromKysely(trx) of pg-boss.'
