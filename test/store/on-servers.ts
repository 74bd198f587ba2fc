/** Queues on the Redis and the PostgreSQL of the tests, in a place of their own that is gone when the tests of a file have ended. All that they store, as text. */

import { randomUUID } from 'node:crypto'
import { inspect } from 'node:util'
import { Redis } from 'ioredis'
import { afterAll, inject } from 'vitest'
import { type BullmqQueueOptions, bullmqQueue } from '../../src/queues-bullmq.ts'
import { type PgBossQueueOptions, pgBossQueue } from '../../src/queues-pg-boss.ts'
import { createSchema } from '../support/postgres.ts'
import { removeQueue } from '../support/redis.ts'

export function useServers() {
  const connection = inject('redisUrl')
  const connectionString = inject('databaseUrl')
  const prefix = `tests-${randomUUID()}`
  const redis = connection === undefined ? undefined : new Redis(connection)
  const schema = connectionString === undefined ? undefined : createSchema(connectionString)
  const onError = (): void => {}
  const pg = { connectionString, schema: schema?.name ?? '', max: 2, onError }

  afterAll(async () => {
    redis?.disconnect()
    await schema?.drop()
  })

  return {
    ...{ connection, prefix, redis, schema, pg },
    onBullmq: (name: string, options: Partial<BullmqQueueOptions> = {}) =>
      bullmqQueue({ name, connection, prefix, onError, ...options }),
    onPgBoss: (name: string, options: Partial<PgBossQueueOptions> = {}) => pgBossQueue({ name, ...pg, ...options }),
    removeFromRedis: async (name: string) => redis && removeQueue(redis, name, prefix),
    async readFromRedis(name: string): Promise<string> {
      const keys = ((await redis?.keys(`${prefix}*`)) ?? []).filter((key) => key.includes(name))
      return inspect(await Promise.all(keys.map((key) => readKey(redis as Redis, key))), WHOLE)
    },
    async readFromPostgres(name: string): Promise<string> {
      const tables = ['job', 'hookline_retry', 'hookline_dead', 'hookline_log'].map((table) => {
        const column = table === 'job' ? 'name' : 'queue'
        return schema?.run(`SELECT t::text FROM schema.${table} AS t WHERE ${column} LIKE $1`, [`${name}%`])
      })
      return inspect(await Promise.all(tables), WHOLE)
    },
  }
}

const WHOLE = { depth: 9, maxArrayLength: null, maxStringLength: null }

async function readKey(redis: Redis, key: string): Promise<unknown> {
  const type = await redis.type(key)
  if (type === 'hash') return redis.hgetall(key)
  if (type === 'stream') return redis.xrange(key, '-', '+')
  if (type === 'list') return redis.lrange(key, 0, -1)
  if (type === 'zset') return redis.zrange(key, 0, '-1')
  return type === 'set' ? redis.smembers(key) : redis.get(key)
}
