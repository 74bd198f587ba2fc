/** Prepares the two queues in pg-boss: jobs, and dead letters, which keep their ids there. */

import { randomUUID } from 'node:crypto'
import type { JobInsert, PgBoss, UpdateQueueOptions } from 'pg-boss'
import type { QueueUse } from '../queue.ts'
import { doesNotExist, servesOther } from '../use.ts'
import { inTransaction } from './connection.ts'
import { readRows, requireReadable } from './internals.ts'
import type { Settings } from './options.ts'
import { FOREVER_SECONDS, secondsOf } from './row.ts'

/** The queue of a queue's dead letters. Nothing fetches from it. */
export function deadQueueOf(name: string): string {
  return `${name}-dead`
}

/**
 * Creates the queues, or changes what they are like, and moves what release 0.1 left.
 *
 * @throws HooklineError `queue_unavailable` when the queue has another use.
 */
export async function prepareQueues(boss: PgBoss, settings: Settings, use?: QueueUse): Promise<void> {
  const { name, schema, leaseMs, dedupeWindowMs } = settings
  const deadQueue = deadQueueOf(name)
  if (use !== undefined) await requireUse(boss, name, use)
  await createQueue(boss, deadQueue, { retentionSeconds: FOREVER_SECONDS })
  await createQueue(boss, name, {
    heartbeatSeconds: secondsOf(leaseMs),
    expireInSeconds: LONGEST_CLAIM_SECONDS,
    deleteAfterSeconds: secondsOf(dedupeWindowMs),
    // pg-boss gives up no job by itself, and deletes none that waits.
    retryLimit: 1_000_000_000,
    retryDelay: 0,
    retentionSeconds: FOREVER_SECONDS,
  })
  await inTransaction(boss, 'rollback', (db) =>
    requireReadable(db, { schema, queue: deadQueue }, (id) => boss.insert(deadQueue, [{ id }], { db })),
  )
  await takeOver(boss, settings)
}

/**
 * Checks, for an observer, that the queues exist. Changes nothing.
 *
 * @throws HooklineError `queue_unavailable` that lists the queues that do.
 */
export async function requireQueues(boss: PgBoss, { name }: Settings): Promise<void> {
  const names = await findNames(boss)
  if (!names.includes(name)) throw doesNotExist(name, names)
  // pg-boss remembers the queues from now on, as in `createQueue`.
  for (const queue of [name, deadQueueOf(name)]) await boss.findJobs(queue, { id: USE_ID })
}

/** The queues in the schema that have one for their dead letters, as each of Hookline has. */
export async function findNames(boss: PgBoss): Promise<string[]> {
  const all = new Set((await boss.getQueues()).map(({ name }) => name))
  return [...all].filter((name) => all.has(deadQueueOf(name))).sort()
}

/** Makes dead letters of jobs that pg-boss gave up: release 0.1 keeps its dead letters so, also while both releases run. */
export async function takeOver(boss: PgBoss, settings: Settings): Promise<void> {
  while (await moveFailed(boss, settings));
}

/** The first to reserve the queue says what it is for: a cancelled job notes it, which pg-boss neither fetches nor deletes. */
async function requireUse(boss: PgBoss, name: string, use: QueueUse): Promise<void> {
  await boss.createQueue(name)
  const note: JobInsert = { id: USE_ID, data: { use }, deleteAfterSeconds: 0 }
  const found = await inTransaction(boss, 'commit', async (db) => {
    await boss.insert(name, [note], { db })
    await boss.cancel(name, USE_ID, { db })
    const [row] = await boss.findJobs<{ readonly use?: unknown }>(name, { id: USE_ID, db })
    return row?.data?.use
  })
  if (found !== use) throw servesOther(name, `${found}`, use)
}

async function createQueue(boss: PgBoss, name: string, options: UpdateQueueOptions): Promise<void> {
  await boss.createQueue(name)
  await boss.updateQueue(name, options) // One that was there keeps its own otherwise.
  // pg-boss remembers the queue from now on: a call in a transaction would need a second connection to look it up.
  await boss.findJobs(name, { id: randomUUID() })
}

/** Returns whether there were some. */
function moveFailed(boss: PgBoss, { name, schema }: Settings): Promise<boolean> {
  const deadQueue = deadQueueOf(name)
  return inTransaction(boss, 'commit', async (db) => {
    await boss.insert(deadQueue, [{ id: LOCK_ID }], { db }) // Another process that does the same waits here.
    await boss.deleteJob(deadQueue, LOCK_ID, { db })
    const failed = await readRows(db, { schema, queue: name, state: 'failed', limit: 100 })
    const ids = failed.map(({ id }) => id)
    if (ids.length === 0) return false
    const letters: JobInsert[] = []
    for (const id of ids) {
      for (const { data, completedOn } of await boss.findJobs<object>(name, { id, db })) {
        letters.push({ id, data, startAfter: completedOn as Date }) // A failed job has one.
      }
    }
    await boss.insert(deadQueue, letters, { db })
    // A failed job cannot be redriven as others are: one takes its place that has not been claimed yet.
    await boss.deleteJob(name, ids, { db })
    await boss.insert(
      name,
      ids.map((id) => ({ id, deleteAfterSeconds: 0 })),
      { db },
    )
    await boss.cancel(name, ids, { db })
    return true
  })
}

/** pg-boss accepts no more than 24 hours: a handler that runs longer loses its claim. */
const LONGEST_CLAIM_SECONDS = 24 * 60 * 60

/** The id of the note. It is no job. */
export const USE_ID = '686f6f6b-6c69-4e65-8000-000000000001'

const LOCK_ID = '00000000-0000-0000-0000-000000000000'
