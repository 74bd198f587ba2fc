import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { inject, it, onTestFinished } from 'vitest'
import { bullmqQueue } from '../../src/queues-bullmq.ts'
import { pgBossQueue } from '../../src/queues-pg-boss.ts'
import { needs } from '../support/needs.ts'
import { createSchema } from '../support/postgres.ts'
import { removeQueue } from '../support/redis.ts'
import { checkInbox } from './sender-requests.ts'

it('the requests of a sender are taken with an inbox on BullMQ', needs('Redis'), async () => {
  const [name, connection] = [randomUUID(), inject('redisUrl') as string]
  onTestFinished(async () => {
    const redis = new Redis(connection)
    await removeQueue(redis, name)
    redis.disconnect()
  })
  await checkInbox('customer.io', bullmqQueue({ name, connection }))
})

it('the requests of a sender are taken with an inbox on pg-boss', needs('PostgreSQL'), async () => {
  const connectionString = inject('databaseUrl') as string
  const schema = createSchema(connectionString)
  onTestFinished(() => schema.drop())
  await checkInbox('customer.io', pgBossQueue({ name: 'inbox', connectionString, schema: schema.name }))
})
