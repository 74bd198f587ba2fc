import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, inject, vi } from 'vitest'
import { readOptions } from '../../../src/store/bullmq/bullmq-options.ts'
import { COUNT_AFTER_MS, createBullmqStore } from '../../../src/store/bullmq/bullmq-store.ts'
import { createQueue } from '../../../src/store/create-queue.ts'
import { manualClock } from '../../../src/testing/manual-clock.ts'
import { testQueue } from '../../contracts/queue.ts'
import { needs } from '../../support/needs.ts'
import { removeQueue } from '../../support/redis.ts'

const redisUrl = inject('redisUrl')
const POLL_MS = 5

describe('on Redis', needs('Redis'), () => {
  const redis = new Redis(redisUrl ?? '', { lazyConnect: true })

  beforeAll(() => void vi.useFakeTimers({ toFake: ['Date'] }))

  afterAll(() => {
    redis.disconnect()
    vi.useRealTimers()
  })

  function create() {
    const manual = manualClock(Date.UTC(2026, 10, 20))
    vi.setSystemTime(manual.now())
    const name = randomUUID()
    const onError = (error: unknown) => {
      throw error
    }
    const settings = readOptions({ name, connection: redisUrl ?? '', pollMs: POLL_MS, onError })
    // The queue looks for jobs, and counts claims, by the machine's time: Redis answers by it, too.
    const clock = {
      ...manual,
      setTimeout: (callback: () => void, ms: number) =>
        ms <= COUNT_AFTER_MS ? setTimeout(callback, ms) : manual.setTimeout(callback, ms),
      clearTimeout(timer: unknown) {
        manual.clearTimeout(timer)
        clearTimeout(timer as NodeJS.Timeout)
      },
    }
    const open = () => createQueue(createBullmqStore(settings, clock), { name, pollMs: POLL_MS, clock, onError })
    return {
      queue: open(),
      now: clock.now,
      async advance(ms: number) {
        await clock.advance(ms)
        vi.setSystemTime(clock.now()) // BullMQ goes by it. No job is due before the clock of the queue is there, too.
        await forget(`bull:${name}:de:*`, ms)
      },
      another: open,
      dedupeWindowMs: settings.dedupeWindowMs,
      exactOrder: false,
      dispose: () => removeQueue(redis, name),
    }
  }

  /** Redis lets the ids of a dedupe window expire by its own time. */
  async function forget(pattern: string, ms: number): Promise<void> {
    for (const key of await redis.keys(pattern)) await redis.pexpire(key, Math.max(0, (await redis.pttl(key)) - ms))
  }

  testQueue('bullmq', create, { hasGroups: false })
})
