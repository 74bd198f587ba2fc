/** The pace of an inbox that processes share on Redis. */

import { randomUUID } from 'node:crypto'
import { expect, it, onTestFinished } from 'vitest'
import { useServers } from '../store/on-servers.ts'
import { needs } from '../support/needs.ts'
import { jobOf } from '../support/queues.ts'
import { until } from '../support/until.ts'

const servers = useServers()

it('on Redis, maxPerSecond holds for all processes together', needs('Redis'), async () => {
  const name = randomUUID()
  const queues = Array.from({ length: 3 }, () => servers.onBullmq(name, { pollMs: 20 }))
  onTestFinished(async () => {
    for (const queue of queues) await queue.close({ graceMs: 0 })
  })
  const times: number[] = []
  await queues[0]?.push(Array.from({ length: 30 }, () => jobOf()))
  for (const queue of queues) {
    const handle = async () => {
      times.push(performance.now())
      return { complete: true } as const
    }
    queue.work(handle, { concurrency: 30, maxPerSecond: 10 })
  }
  await until(() => times.length === 30)
  // Windows of a second: 10 in each. Redis ends a window, so the answers of two may be a little less than that apart.
  expect((times[10] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(900)
  expect((times[29] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(1900)
})
