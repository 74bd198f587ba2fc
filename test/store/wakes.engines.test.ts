/** What one process pushes wakes another, long before it would look by itself. */

import { randomUUID } from 'node:crypto'
import { describe, expect, it, onTestFinished } from 'vitest'
import { needs } from '../support/needs.ts'
import { createProxy } from '../support/postgres-proxy.ts'
import { jobOf, work } from '../support/queues.ts'
import { openProxy } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { useServers } from './on-servers.ts'

const { connection, pg, onBullmq, onPgBoss, removeFromRedis } = useServers()
const pollMs = 600_000 // Longer than any test.

/** Opens a queue that pushes, and one that works through a proxy, which cuts its connections. */
const openings = {
  async Redis() {
    const name = randomUUID()
    onTestFinished(() => removeFromRedis(name))
    const proxy = await openProxy(Number(new URL(connection ?? '').port || 6379))
    onTestFinished(proxy.close)
    const working = onBullmq(name, { connection: `redis://127.0.0.1:${proxy.port}`, pollMs })
    return { pushing: onBullmq(name), working, cut: proxy.cut }
  },
  async PostgreSQL() {
    const name = `Wakes/${randomUUID()}`
    const proxy = await createProxy(pg.connectionString ?? '')
    onTestFinished(proxy.close)
    const working = onPgBoss(name, { connectionString: proxy.url, pollMs })
    return { pushing: onPgBoss(name), working, cut: proxy.cut }
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
