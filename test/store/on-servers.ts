/** Queues on the Redis and the PostgreSQL of the tests, in a place of their own that is gone when the tests of a file have ended. */

import { randomUUID } from 'node:crypto'
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
  }
}
