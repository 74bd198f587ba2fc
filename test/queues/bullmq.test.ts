import { randomUUID } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Queue as Engine } from 'bullmq'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, inject, vi } from 'vitest'
import { readOptions } from '../../src/queues/bullmq-options.ts'
import { openQueue } from '../../src/queues/bullmq-queue.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { testDurableQueue } from '../contracts/durable-queue.ts'
import { testQueue } from '../contracts/queue.ts'

const redisUrl = inject('redisUrl')

describe.skipIf(redisUrl === undefined)('on Redis', () => {
  let redis: Redis

  beforeAll(() => {
    redis = new Redis(redisUrl ?? '')
    vi.useFakeTimers({ toFake: ['Date'] })
  })

  afterAll(() => {
    redis.disconnect()
    vi.useRealTimers()
  })

  function create() {
    const clock = manualClock(Date.UTC(2026, 10, 20))
    vi.setSystemTime(clock.now())
    const name = randomUUID()
    const settings = readOptions({ name, connection: redisUrl ?? '' })
    const queue = openQueue(settings, clock)
    return {
      queue,
      now: clock.now,
      async advance(ms: number) {
        vi.setSystemTime(clock.now() + ms)
        await clock.advance(ms)
        await redis.zadd(`bull:${name}:marker`, 0, '0') // Workers that wait by the time that was look again.
        await nextTurn()
      },
      another: () => openQueue(settings, clock),
      outlivesProcess: true,
      knownForMs: 24 * 60 * 60_000,
      async dispose() {
        const engine = new Engine(name, { connection: redis })
        await engine.obliterate({ force: true })
        await engine.close()
      },
    }
  }

  testQueue('bullmq', create)
  testDurableQueue('bullmq', create)
})
