/** Ends claims and changes what the row says, in one transaction: retries, releases, and jobs that become dead letters. */

import { randomUUID } from 'node:crypto'
import type { Db, JobInsert, PgBoss } from 'pg-boss'
import { type Batcher, createBatcher } from '../../collections/batcher.ts'
import type { Connection } from './connection.ts'
import { isFaultOfData } from './error.ts'
import { deadQueueOf } from './prepare.ts'
import type { Data } from './row.ts'

/** The end of a claim. */
export interface Rewrite {
  /** The attempt that ends. Nothing changes when it is over already. */
  readonly claim: { readonly id: string; readonly retryCount: number }
  /** What the row of the job says afterwards: the body moves to a dead letter. */
  readonly data: Data | null
  /** In how many seconds the job is due. Default: at once. */
  readonly startAfter?: number
  /** The dead letter that the job becomes. */
  readonly letter?: JobInsert
}

/** Creates a batcher of such ends. */
export function createRewrites(name: string, connection: Connection): Batcher<Rewrite> {
  /**
   * `fail` makes a job wait that is claimed by this attempt, and locks its row until the transaction ends; the token tells
   * such rows from those that wait for another reason.
   */
  async function rewrite(rewrites: readonly Rewrite[], boss: PgBoss, db: Db): Promise<void> {
    const token = randomUUID()
    await boss.fail(name, attemptsOf(rewrites), { token }, { db })
    const letters: JobInsert[] = []
    for (const { claim, data, startAfter = 0, letter } of rewrites) {
      const { id } = claim
      const [row] = await boss.findJobs(name, { id, db })
      if ((row?.output as { readonly token?: unknown } | null | undefined)?.token !== token) continue
      // The row of a dead letter stays, without an end, so that its id stays known.
      await boss.update(name, data, letter === undefined ? { id, startAfter, db } : { id, deleteAfterSeconds: 0, db })
      if (letter !== undefined) letters.push(letter)
    }
    if (letters.length === 0) return
    await boss.cancel(name, letters.map(idOf), { db })
    await boss.insert(deadQueueOf(name), letters, { db })
  }

  return createBatcher<Rewrite>({
    send: (rewrites) => connection.transaction((boss, db) => rewrite(rewrites, boss, db)),
    weigh: () => 1,
    maxWeight: 20, // Each takes two round trips: all of them must be over in time.
    concurrency: 2,
    isFaultOfItems: isFaultOfData,
  })
}

function attemptsOf(rewrites: readonly Rewrite[]) {
  return rewrites.map(({ claim: { id, retryCount } }) => ({ id, retryCount }))
}

function idOf({ id }: JobInsert): string {
  return id as string // Hookline gives every job one.
}
