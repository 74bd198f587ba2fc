/** What one process pushes wakes another, long before it would look by itself. */

import { randomUUID } from 'node:crypto'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { bullmqQueue } from '../../src/queues-bullmq.ts'
import { pgBossQueue } from '../../src/queues-pg-boss.ts'
import type { Queue } from '../../src/store/queue-types.ts'
import { needs } from '../support/needs.ts'
import { createSchema } from '../support/postgres.ts'
import { createProxy } from '../support/postgres-proxy.ts'
import { complete, jobOf, work } from '../support/queues.ts'
import { openProxy } from '../support/redis.ts'
import { until } from '../support/until.ts'

const redisUrl = inject('redisUrl') ?? ''
const databaseUrl = inject('databaseUrl') ?? ''
const onError = (): void => {}
const pollMs = 600_000 // Longer than any test.

interface Pair {
  readonly pushing: Queue
  readonly working: Queue
  /** Ends the connections of `working`. */
  cut(): void
}

async function onRedis(): Promise<Pair> {
  const name = randomUUID()
  const proxy = await openProxy(Number(new URL(redisUrl).port || 6379))
  onTestFinished(proxy.close)
  const working = bullmqQueue({ name, connection: `redis://127.0.0.1:${proxy.port}`, pollMs, onError })
  return { pushing: bullmqQueue({ name, connection: redisUrl, onError }), working, cut: proxy.cut }
}

async function onPostgres(): Promise<Pair> {
  const name = `Wakes/${randomUUID()}`
  const schema = createSchema(databaseUrl)
  onTestFinished(schema.drop)
  const proxy = await createProxy(databaseUrl)
  onTestFinished(proxy.close)
  const shared = { name, schema: schema.name, max: 2, onError }
  const working = pgBossQueue({ ...shared, connectionString: proxy.url, pollMs })
  return { pushing: pgBossQueue({ ...shared, connectionString: databaseUrl }), working, cut: proxy.cut }
}

async function start(open: () => Promise<Pair>) {
  const pair = await open()
  onTestFinished(async () => {
    for (const queue of [pair.working, pair.pushing]) await queue.close({ graceMs: 0 })
  })
  const seen = work(pair.working, () => complete)
  await pair.pushing.push([jobOf()])
  await until(() => seen.length === 1)
  return { ...pair, seen }
}

describe.each([
  ['BullMQ', 'Redis', onRedis],
  ['pg-boss', 'PostgreSQL', onPostgres],
] as const)('on %s', (_engine, needed, open) => {
  it('a push is handled by another process, again and again', needs(needed), async () => {
    const { pushing, seen } = await start(open)
    for (let count = 2; count <= 6; count++) {
      await pushing.push([jobOf()])
      await until(() => seen.length === count)
    }
    expect((await pushing.counts()).deadLetters).toBe(0)
  })

  it('also after its connections were cut', needs(needed), async () => {
    const { pushing, seen, cut } = await start(open)
    cut()
    await pushing.push([jobOf()])
    await until(() => seen.length === 2)
  })
})
