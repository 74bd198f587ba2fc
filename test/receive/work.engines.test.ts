/** Processes that share an inbox on Redis or on PostgreSQL: what one of them stores, another one handles, and they share one pace. */

import { randomUUID } from 'node:crypto'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createReceiver } from '../../src/receive/create-receiver.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { useServers } from '../store/on-servers.ts'
import { needs } from '../support/needs.ts'
import { jobOf } from '../support/queues.ts'
import { deliver, secret } from '../support/receive.ts'
import { until } from '../support/until.ts'

const servers = useServers()

describe.each(['Redis', 'PostgreSQL'] as const)('on %s', (server) => {
  it(
    'what one process stores is handled by the work of another, again and again, and given back at its end',
    needs(server),
    async () => {
      const name = randomUUID()
      const create = () => {
        const queue = server === 'Redis' ? servers.onBullmq(name) : servers.onPgBoss(name)
        const receiver = createReceiver({ secret, inbox: { queue, concurrency: 2 }, onError: () => {} })
        onTestFinished(async () => void (await receiver.close({ graceMs: 0 })))
        return receiver
      }
      const [storing, working] = [create(), create()]
      const leftOf = (count: number): unknown => (server === 'Redis' ? count : expect.any(Number)) // pg-boss counts now and then.
      const attempts: number[] = []
      let isSlow = false
      working.observe({ handled: ({ attempt }) => attempts.push(attempt) })
      working.on('*', async () => {
        if (isSlow) await new Promise(() => {})
      })
      const store = async (count: number) => {
        for (let index = 0; index < count; index += 1) {
          expect((await deliver(storing, { ...fixtures.track, messageId: randomUUID() })).status).toBe(200)
        }
      }

      await store(3)
      expect(await working.work({ until: 'empty', forMs: 20_000 })).toEqual({ handled: 3, failed: 0, left: leftOf(0) })
      await store(2)
      isSlow = true
      expect(await working.work({ forMs: 1500 })).toEqual({ handled: 0, failed: 0, left: leftOf(2) })
      expect(await storing.health()).toMatchObject(server === 'Redis' ? { waiting: 2, active: 0 } : { status: 'ok' })
      isSlow = false
      expect(await working.work({ until: 'empty', forMs: 20_000 })).toEqual({ handled: 2, failed: 0, left: leftOf(0) })
      expect(attempts).toEqual([1, 1, 1, 1, 1])
    },
  )
})

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
  // Redis ends a window of a second after 10 claims. On a busy machine, the first handler starts late, so the times are closer.
  expect((times[10] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(500)
  expect((times[29] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(1500)
})
