/** Prepares the two queues in pg-boss: jobs, and dead letters, which keep their ids there. */

import { randomUUID } from 'node:crypto'
import type { Db, JobInsert, PgBoss, UpdateQueueOptions } from 'pg-boss'
import type { QueueUse } from '../api.ts'
import { doesNotExist, requireNote } from '../use.ts'
import { createConnection, inTransaction } from './connection.ts'
import { type PgBossQueueOptions, readOptions, type Settings } from './options.ts'
import { FOREVER_SECONDS, requireReadable, secondsOf } from './rows.ts'

const VERSION = 1
const MAX_CLAIM_SECONDS = 24 * 60 * 60
const NOTE_ID = '686f6f6b-6c69-4e65-8000-000000000001'

export function deadQueueOf(name: string): string {
  return `${name}-dead`
}

export async function prepareQueues(boss: PgBoss, settings: Settings, use?: QueueUse): Promise<void> {
  const { name, schema, leaseMs, dedupeWindowMs } = settings
  const deadQueue = deadQueueOf(name)
  await boss.createQueue(name)
  if (use !== undefined) await writeNote(boss, name, use)
  requireNote(name, VERSION, await readNote(boss, name), use)
  await updateQueue(boss, deadQueue, { retentionSeconds: FOREVER_SECONDS })
  await updateQueue(boss, name, {
    heartbeatSeconds: secondsOf(leaseMs),
    expireInSeconds: MAX_CLAIM_SECONDS,
    deleteAfterSeconds: secondsOf(dedupeWindowMs),
    // pg-boss gives up no job by itself, and deletes none that waits.
    retryLimit: 1_000_000_000,
    retryDelay: 0,
    retentionSeconds: FOREVER_SECONDS,
    notify: true,
  })
  await inTransaction(boss, 'rollback', (db) =>
    requireReadable(db, { schema, queue: deadQueue }, (id) => boss.insert(deadQueue, [{ id }], { db })),
  )
}

async function updateQueue(boss: PgBoss, name: string, options: UpdateQueueOptions): Promise<void> {
  await boss.createQueue(name)
  await boss.updateQueue(name, options) // One that was there keeps its own otherwise.
  // pg-boss remembers the queue from now on: a call in a transaction would need a second connection to look it up.
  await boss.findJobs(name, { id: randomUUID() })
}

async function writeNote(boss: PgBoss, name: string, use: QueueUse): Promise<void> {
  await inTransaction(boss, 'commit', (db) => addCancelled(boss, name, NOTE_ID, { use, version: VERSION }, db))
}

/** A job that is never claimed nor deleted. Does nothing when there is one. */
async function addCancelled(boss: PgBoss, name: string, id: string, data: object, db: Db): Promise<void> {
  const note: JobInsert = { id, data, deleteAfterSeconds: 0 }
  await boss.insert(name, [note], { db })
  await boss.cancel(name, id, { db })
}

async function readNote(boss: PgBoss, name: string): Promise<object | undefined> {
  const [row] = await boss.findJobs<object>(name, { id: NOTE_ID })
  return row && (row.data ?? {})
}

export async function requireQueues(boss: PgBoss, { name }: Settings): Promise<void> {
  const names = await findNames(boss)
  if (!names.includes(name)) throw doesNotExist(name, names)
  requireNote(name, VERSION, await readNote(boss, name))
  await boss.findJobs(deadQueueOf(name), { id: randomUUID() }) // pg-boss remembers it, as in `updateQueue`.
}

async function findNames(boss: PgBoss): Promise<string[]> {
  const all = new Set((await boss.getQueues()).map(({ name }) => name))
  return [...all].filter((name) => all.has(deadQueueOf(name))).sort()
}

/**
 * Lists the names of the queues that Hookline keeps there. Creates and changes nothing.
 *
 * @throws TypeError (as a rejection) that names the option; HooklineError (as a rejection) `queue_unavailable`.
 */
export async function listQueues(options: Omit<PgBossQueueOptions, 'name' | 'observe'>): Promise<readonly string[]> {
  const connection = createConnection(readOptions({ ...options, name: 'any', observe: true }), async () => {})
  try {
    return await connection.call(findNames)
  } finally {
    await connection.close()
  }
}
