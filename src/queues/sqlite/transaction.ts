/** Stores jobs in a transaction of the caller's, over the caller's own connection to the file, in its thread. */

import type { DatabaseSync } from 'node:sqlite'
import { invalidOption, kindOf } from '../../options/checks.ts'
import { realPathOf, requireSqlite } from '../../sqlite/file.ts'
import type { Job } from '../api.ts'
import { createJobs, type QueueSettings } from './jobs.ts'
import { createQueues, type Reservation } from './tables.ts'

/** Preparing the statements takes longer than a push. */
const prepared = new WeakMap<DatabaseSync, ReturnType<typeof prepare>>()

/** @throws TypeError for a `db` that is no such transaction; what SQLite throws, as it is. */
export function pushInto(
  db: object,
  path: string,
  settings: QueueSettings & Reservation,
  jobs: readonly Job[],
  now: number,
): readonly string[] {
  requireTransaction(db, path)
  const { queues, rows } = prepared.get(db) ?? prepare(db)
  queues.begin()
  queues.enter(settings)
  const known = rows.push(queues.rowAt(queues.numberOf(settings.name)), settings, jobs, now)
  queues.save()
  return known
}

function prepare(database: DatabaseSync) {
  const queues = createQueues(database)
  const statements = { queues, rows: createJobs(database, queues) }
  prepared.set(database, statements)
  return statements
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
  const advice = 'Pass a DatabaseSync of node:sqlite on the file of the queue, after BEGIN IMMEDIATE.'
  return invalidOption(
    'db',
    'must be a connection of node:sqlite in a transaction on the file of the queue',
    found,
    advice,
  )
}
