/** How much there is, and whether any of it is due. */

import type { Queue as Engine } from 'bullmq'
import type { Redis } from 'ioredis'
import { dueAtOf } from './bullmq-job.ts'
import type { QueueCounts } from './queue.ts'

/** Counts what is in Redis. */
export async function count(engine: Engine, client: Redis, now: number): Promise<QueueCounts> {
  const [counts, next, later] = await Promise.all([
    engine.getJobCounts('wait', 'prioritized', 'delayed', 'active', 'failed'),
    client.lindex(engine.toKey('wait'), -1),
    nextDelayedAt(engine, client),
  ])
  const { wait = 0, prioritized = 0, delayed = 0, active = 0, failed: dead = 0 } = counts
  const times = [next === null ? undefined : await dueAt(engine, next), later]
  const due = times.filter((time) => time !== undefined && time <= now) as number[]
  const oldestDueAt = due.length === 0 ? undefined : Math.min(...due)
  return { waiting: wait + prioritized + delayed, active, dead, oldestDueAt }
}

/** Whether no job is due and none is handed out. */
export async function isIdle(engine: Engine, client: Redis, now: number): Promise<boolean> {
  const [active, wait, later] = await Promise.all([
    client.llen(engine.toKey('active')),
    client.llen(engine.toKey('wait')),
    nextDelayedAt(engine, client),
  ])
  return active === 0 && wait === 0 && !(later !== undefined && later <= now)
}

async function dueAt(engine: Engine, id: string): Promise<number | undefined> {
  const job = await engine.getJob(id)
  return job && dueAtOf(job)
}

async function nextDelayedAt(engine: Engine, client: Redis): Promise<number | undefined> {
  const [, score] = (await client.zrange(engine.toKey('delayed'), '0', '0', 'WITHSCORES')).flat()
  return score === undefined ? undefined : Math.floor(Number(score) / SCORES_OF_A_MILLISECOND)
}

/** BullMQ counts jobs of one millisecond in the twelve bits below it. */
const SCORES_OF_A_MILLISECOND = 0x1000
