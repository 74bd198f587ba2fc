/** What one process pushes wakes another, long before it would look by itself. */

import { randomUUID } from 'node:crypto'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { bullmqQueue } from '../../src/queues-bullmq.ts'
import { pgBossQueue } from '../../src/queues-pg-boss.ts'
import { needs } from '../support/needs.ts'
import { createSchema } from '../support/postgres.ts'
import { createProxy } from '../support/postgres-proxy.ts'
import { jobOf, work } from '../support/queues.ts'
import { openProxy } from '../support/redis.ts'
import { until } from '../support/until.ts'

const redisUrl = inject('redisUrl') ?? ''
const databaseUrl = inject('databaseUrl') ?? ''
const onError = (): void => {}
const pollMs = 600_000 // Longer than any test.

/** Opens a queue that pushes, and one that works through a proxy, which cuts its connections. */
const openings = {
  async Redis() {
    const name = randomUUID()
    const proxy = await openProxy(Number(new URL(redisUrl).port || 6379))
    onTestFinished(proxy.close)
    const working = bullmqQueue({ name, connection: `redis://127.0.0.1:${proxy.port}`, pollMs, onError })
    return { pushing: bullmqQueue({ name, connection: redisUrl, onError }), working, cut: proxy.cut }
  },
  async PostgreSQL() {
    const schema = createSchema(databaseUrl)
    onTestFinished(schema.drop)
    const proxy = await createProxy(databaseUrl)
    onTestFinished(proxy.close)
    const shared = { name: `Wakes/${randomUUID()}`, schema: schema.name, max: 2, onError }
    const working = pgBossQueue({ ...shared, connectionString: proxy.url, pollMs })
    return { pushing: pgBossQueue({ ...shared, connectionString: databaseUrl }), working, cut: proxy.cut }
  },
}

describe.each(['Redis', 'PostgreSQL'] as const)('on %s', (server) => {
  it('each push is handled by another process, also after its connections were cut', needs(server), async () => {
    const { pushing, working, cut } = await openings[server]()
    onTestFinished(async () => {
      for (const queue of [working, pushing]) await queue.close({ graceMs: 0 })
    })
    const seen = work(working)

    for (let count = 1; count <= 6; count += 1) {
      if (count === 5) cut()
      await pushing.push([jobOf()])
      await until(() => seen.length === count)
    }

    expect((await pushing.counts()).deadLetters).toBe(0)
  })
})
