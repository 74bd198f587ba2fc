/** Queues on the Redis of the tests, and BullMQ's own view of them. Both are gone when a test has ended. */

import { randomUUID } from 'node:crypto'
import { Queue as Engine } from 'bullmq'
import { Redis } from 'ioredis'
import { afterAll, afterEach, inject, vi } from 'vitest'
import { type BullmqQueueOptions, bullmqQueue } from '../../../src/queues-bullmq.ts'
import type { Queue } from '../../../src/store/queue-types.ts'
import { removeQueue } from '../../support/redis.ts'

export function useRedis() {
  const connection = inject('redisUrl') ?? ''
  const open: { readonly queues: Queue[]; readonly engine: Engine }[] = []
  const redis = new Redis(connection, { lazyConnect: true })

  afterEach(async () => {
    vi.restoreAllMocks()
    for (const { queues, engine } of open.splice(0)) {
      await Promise.all(queues.map((queue) => queue.close({ graceMs: 0 })))
      await removeQueue(redis, engine.name, engine.opts.prefix)
      await engine.close()
    }
  })

  afterAll(() => redis.disconnect())

  return {
    redis,
    setUp(options: Partial<BullmqQueueOptions> = {}) {
      const name = randomUUID()
      const errors: unknown[] = []
      const onError = (error: unknown) => errors.push(error)
      const queues: Queue[] = []
      const engine = new Engine(name, { connection: redis, prefix: options.prefix ?? 'bull' })
      open.push({ queues, engine })
      function another(more: Partial<BullmqQueueOptions> = {}): Queue {
        const queue = bullmqQueue({ name, connection, pollMs: 10, onError, ...options, ...more })
        queues.push(queue)
        return queue
      }
      return { name, engine, errors, another, queue: another() }
    },
  }
}
