/** The keys of today are those of release 0.2, but for one of its own: processes of both may use a queue at once. */

import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { bullmqQueue } from '../../../src/queues/bullmq/index.ts'
import { leaveJobs, withoutChance } from '../../support/left-jobs.ts'
import { needs } from '../../support/needs.ts'
import { removeQueue } from '../../support/redis.ts'

const redisUrl = inject('redisUrl')

it('a queue on Redis is what release 0.2 left after the same calls', needs('Redis'), async () => {
  const redis = new Redis(redisUrl ?? '')
  const name = randomUUID()
  onTestFinished(async () => {
    await removeQueue(redis, name)
    redis.disconnect()
  })
  const queue = bullmqQueue({ name, connection: redisUrl, pollMs: 10 })
  await leaveJobs(queue, new Date(Date.now() + 3_600_000))
  await new Promise((resolve) => setTimeout(resolve, 50)) // The first time of a claim is noted after a turn.
  const found: Record<string, unknown> = {}
  for (const key of (await redis.keys(`bull:${name}:*`)).sort()) {
    const suffix = key.slice(`bull:${name}:`.length)
    if (!PASSING.includes(suffix)) found[suffix] = { expires: (await redis.pttl(key)) > 0, ...(await read(redis, key)) }
  }
  await queue.close({ graceMs: 0 })
  await expect(withoutChance(found)).toMatchFileSnapshot('release-0.2.txt')
})

/** What BullMQ keeps for itself. */
const PASSING = ['events', 'id', 'marker', 'meta', 'stalled', 'stalled-check']

/** What Hookline has stored with a job. */
const FIELDS = ['data', 'deid', 'failedReason', 'name', 'progress', 'stacktrace']

async function read(redis: Redis, key: string): Promise<object> {
  const type = await redis.type(key)
  if (type === 'hash') {
    const hash = await redis.hgetall(key)
    return Object.fromEntries(FIELDS.flatMap((field) => (field in hash ? [[field, hash[field]]] : [])))
  }
  if (type === 'zset') return { zset: await redis.zrange(key, '0', '-1') }
  return type === 'list' ? { list: await redis.lrange(key, '0', '-1') } : { [type]: await redis.get(key) }
}
