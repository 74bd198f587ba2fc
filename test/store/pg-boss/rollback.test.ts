import type { PgBoss } from 'pg-boss'
import { expect, it } from 'vitest'
import { Transactions } from '../../../src/store/pg-boss/begin.ts'
import { Connection } from '../../../src/store/pg-boss/pg-boss-connection.ts'
import { type PoolClient, readOptions } from '../../../src/store/pg-boss/pg-boss-options.ts'

/** The client keeps its statements, and its release; the job is completed once `goOn` is called. */
async function begin() {
  const statements: string[] = []
  const client: PoolClient = {
    async query(text) {
      statements.push(text)
      return { rows: [] }
    },
    release: () => void statements.push('release'),
    on() {},
    off() {},
  }
  const boss = { getDb: () => ({ beginTransaction() {} }) } as unknown as PgBoss
  const settings = readOptions({ name: 'orders', boss, db: { connect: async () => client } })
  const { promise: going, resolve: goOn } = Promise.withResolvers<void>()
  const connection = new Connection(settings, async () => {})
  const transactions = new Transactions(connection, settings, async (_batch, _boss, db) => {
    await going
    await db.executeSql('COMPLETE')
  })
  const transaction = await transactions.begin(1_000)
  statements.shift() // BEGIN and its limits.
  return { statements, goOn, transaction, db: transaction.db as PoolClient }
}

it.each(['commit', 'rollback'] as const)(
  'a handler that goes on after %s runs no statement outside of its transaction, and gives no client back',
  async (how) => {
    const { statements, goOn, transaction, db } = await begin()
    db.release()
    goOn()
    await transaction[how]([])
    await expect(db.query('INSERT')).rejects.toThrow('The transaction of this message is over.')
    expect(statements).toEqual([...(how === 'commit' ? ['COMPLETE', 'COMMIT'] : ['ROLLBACK']), 'release'])
  },
)

it('a commit that is rolled back meanwhile rejects, and runs no statement outside of its transaction', async () => {
  const { statements, goOn, transaction } = await begin()
  const committing = transaction.commit([])
  await transaction.rollback()
  goOn()
  await expect(committing).rejects.toMatchObject({ code: 'queue_unavailable' })
  expect(statements).toEqual(['ROLLBACK', 'release'])
})
