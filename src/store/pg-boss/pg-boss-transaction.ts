/** Reads the transaction that a caller passes to a push. pg-boss then runs its statements in this transaction. */

import type { Db } from 'pg-boss'
import { invalidOption, kindOf } from '../../kit/checks.ts'

/** The part of a `pg` client that a push uses. Clients of older versions of `pg` do not know whether they are in a transaction. */
interface Client {
  query: Db['executeSql']
  getTransactionStatus?(): 'I' | 'T' | 'E' | null
}

/**
 * Returns the `db` of a push in the form that pg-boss uses.
 *
 * @throws TypeError for a value that is not a transaction.
 */
export function readTransaction(db: object): Db {
  const runStatement = readRun(db)
  return {
    async executeSql(text, values) {
      const result = await runStatement(text, values)
      if (!Array.isArray(result?.rows)) {
        const found = kindOf(result)
        const without = found === 'an object' ? 'an object without a `rows` array' : found
        throw invalidOption(
          'db',
          'must have a `query` or `executeSql` method that resolves to an object with a `rows` array',
          without,
          ADVICE,
        )
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
  return invalidOption('db', 'must be a PostgreSQL transaction', found, ADVICE)
}

const ADVICE =
  'Pass a client of `pg` on which BEGIN has run, or an object with `executeSql`, such as the result of `fromKysely(trx)` from pg-boss.'
