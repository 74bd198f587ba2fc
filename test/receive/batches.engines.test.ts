/** A batch of the most elements in an inbox on each engine: stored in one push, and each handled once. */

import { randomUUID } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { bullmqQueue } from '../../src/queues-bullmq.ts'
import { pgBossQueue } from '../../src/queues-pg-boss.ts'
import { sqliteQueue } from '../../src/queues-sqlite.ts'
import { createReceiver } from '../../src/receive/create-receiver.ts'
import type { Queue } from '../../src/store/queue-types.ts'
import { signedRequest } from '../../src/testing/signed-request.ts'
import { needs } from '../support/needs.ts'
import { createSchema } from '../support/postgres.ts'
import { secret } from '../support/receive.ts'
import { removeQueue } from '../support/redis.ts'
import { until } from '../support/until.ts'

const redisUrl = inject('redisUrl')
const databaseUrl = inject('databaseUrl')
const messages = Array.from({ length: 1_000 }, (_, index) => ({
  type: 'track',
  event: 'Seen',
  userId: `user-${index}`,
}))

async function check(queue: Queue): Promise<void> {
  const receiver = createReceiver({ secret, batches: true, inbox: queue })
  onTestFinished(async () => void (await receiver.close()))
  const seen: string[] = []
  receiver.on('track', ({ userId }) => void seen.push(String(userId)))
  const { bytes, headers } = signedRequest(messages, secret)
  for (let time = 0; time < 2; time++) {
    const received = await receiver.receive(bytes, headers)
    expect(received).toMatchObject({ ok: true, status: 200 })
    expect(received.elements).toHaveLength(1_000)
  }
  receiver.start()
  await until(async () => seen.length >= 1_000 && (await queue.counts()).active === 0)
  expect(seen.sort()).toEqual(messages.map(({ userId }) => userId).sort())
}

describe('a batch of 1000', () => {
  it('on SQLite', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'hookline-batches-'))
    onTestFinished(() => rm(directory, { recursive: true, force: true, maxRetries: 9 }))
    await check(sqliteQueue({ path: join(directory, 'inbox.sqlite'), name: 'inbox' }))
  })

  it('on BullMQ', needs('Redis'), async () => {
    const name = randomUUID()
    onTestFinished(async () => {
      const redis = new Redis(redisUrl as string)
      await removeQueue(redis, name)
      redis.disconnect()
    })
    await check(bullmqQueue({ name, connection: redisUrl as string }))
  })

  it('on pg-boss', needs('PostgreSQL'), async () => {
    const schema = createSchema(databaseUrl as string)
    onTestFinished(() => schema.drop())
    await check(pgBossQueue({ name: 'inbox', connectionString: databaseUrl as string, schema: schema.name }))
  })
})
