/** Lists the queues of a PostgreSQL, for an observer that knows the name of none. */

import { createConnection } from './connection.ts'
import { type PgBossQueueOptions, readOptions } from './options.ts'
import { findNames } from './prepare.ts'

/** The names of the queues of Hookline in the schema. Changes nothing. */
export async function listQueues(options: Omit<PgBossQueueOptions, 'name' | 'observe'>): Promise<string[]> {
  const connection = createConnection(readOptions({ ...options, name: 'any', observe: true }), async () => {})
  try {
    return await connection.call(findNames)
  } finally {
    await connection.close()
  }
}
