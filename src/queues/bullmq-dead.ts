/** The list of the dead: the jobs that BullMQ calls failed. */

import { type Queue as Engine, Job } from 'bullmq'
import type { Redis } from 'ioredis'
import { noteDead, type Place, removeDead } from './bullmq-fence.ts'
import { isRefusal, readMemo, toDead } from './bullmq-job.ts'
import type { DeadJob } from './queue.ts'

/** A page of them, the longest dead first. */
export async function readDead(
  engine: Engine,
  client: Redis,
  after: string | undefined,
  limit: number,
): Promise<readonly DeadJob[]> {
  const key = engine.toKey('failed')
  const score = after === undefined ? null : await client.zscore(key, after)
  const from = score ?? '-inf'
  // Redis orders those of one millisecond by their ids, so all of the first and of the last one are read.
  const skipped = score === null ? 0 : await client.zcount(key, from, from)
  const end = skipped + limit - 1
  const [, to = '+inf'] = (await client.zrange(key, from, '+inf', 'BYSCORE', 'LIMIT', end, 1, 'WITHSCORES')).flat()
  const ids = await client.zrange(key, from, to, 'BYSCORE')
  const jobs = (await Promise.all(ids.map((id) => engine.getJob(id)))).filter((job) => job !== undefined)
  jobs.sort(byDeath)
  const start = score === null ? 0 : jobs.findIndex(({ id }) => id === after) + 1
  return jobs.slice(start, start + limit).map(toDead)
}

function byDeath(a: Job, b: Job): number {
  const [{ diedAt: first = 0 }, { diedAt: second = 0 }] = [readMemo(a), readMemo(b)]
  return (a.finishedOn ?? 0) - (b.finishedOn ?? 0) || first - second
}

/** Hands them out anew. Returns how many. */
export function redriveDead(
  engine: Engine,
  client: Redis,
  ids: readonly string[] | 'all',
  now: number,
): Promise<number> {
  return forEach(engine, client, ids, async (place) => {
    const job = new Job(engine, '', '', {}, place.id)
    await noteDead(client, place, { dueAt: now })
    return succeeds(() => job.retry('failed', { resetAttemptsMade: true, resetAttemptsStarted: true }))
  })
}

/** Forgets them. Returns how many. */
export function dropDead(engine: Engine, client: Redis, ids: readonly string[] | 'all'): Promise<number> {
  return forEach(engine, client, ids, (place) => removeDead(client, place))
}

/** Does it to those that are dead, some at a time. Returns to how many of them it was done. */
async function forEach(
  engine: Engine,
  client: Redis,
  ids: readonly string[] | 'all',
  act: (place: Place) => Promise<boolean>,
): Promise<number> {
  const failed = engine.toKey('failed')
  const asked = ids === 'all' ? await client.zrange(failed, '0', '-1') : [...new Set(ids)]
  let count = 0
  for (let start = 0; start < asked.length; start += AT_A_TIME) {
    const some = asked.slice(start, start + AT_A_TIME)
    const scores = await client.zmscore(failed, ...some)
    const dead = some.filter((_, index) => scores[index] !== null)
    count += (await Promise.all(dead.map((id) => act({ dead: failed, key: engine.toKey(id), id })))).filter(
      Boolean,
    ).length
  }
  return count
}

/** Not with one that is not dead any more: somebody else was faster. */
async function succeeds(act: () => Promise<void>): Promise<boolean> {
  try {
    await act()
    return true
  } catch (error) {
    if (!isRefusal(error)) throw error
    return false
  }
}

const AT_A_TIME = 500
