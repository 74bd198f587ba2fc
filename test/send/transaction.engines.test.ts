import { expect, inject, it } from 'vitest'
import { bullmqQueue } from '../../src/queues-bullmq.ts'
import { needs } from '../support/needs.ts'

it('BullMQ has no transactions', needs('Redis'), async () => {
  const queue = bullmqQueue({ name: 'orders', connection: inject('redisUrl') })

  await expect(queue.push([], { db: {} })).rejects.toThrow('`db`')

  await queue.close({ graceMs: 0 })
})
