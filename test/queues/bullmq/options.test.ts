import { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'
import { bullmqQueue } from '../../../src/queues/bullmq/index.ts'

const connection = 'redis://127.0.0.1:6379'

describe('bullmqQueue refuses', () => {
  it.each([
    ['options', undefined],
    ['options', null],
    ['name', { connection }],
    ['name', { name: '', connection }],
    ['name', { name: 'a:b', connection }],
    ['connection', { name: 'a' }],
    ['connection', { name: 'a', connection: '' }],
    ['connection', { name: 'a', connection: 'http://:hush@127.0.0.1' }],
    ['connection', { name: 'a', connection: ':hush' }],
    ['connection', { name: 'a', connection: null }],
    ['keyPrefix', { name: 'a', connection: { keyPrefix: 'app:' } }],
    ['prefix', { name: 'a', connection, prefix: '' }],
    ['leaseMs', { name: 'a', connection, leaseMs: 99 }],
    ['pollMs', { name: 'a', connection, pollMs: 0 }],
    ['dedupeWindowMs', { name: 'a', connection, dedupeWindowMs: 0 }],
    ['deadLetterRetentionMs', { name: 'a', connection, deadLetterRetentionMs: 0 }],
    ['timeoutMs', { name: 'a', connection, timeoutMs: 0 }],
    ['onError', { name: 'a', connection, onError: 'log' }],
    ['logger.error', { name: 'a', connection, logger: {} }],
    ['concurrency', { name: 'a', connection, concurrency: 5 }],
  ])('a wrong %s: %j', (what, options) => {
    const create = () => bullmqQueue(options as never)
    expect(create).toThrow(TypeError)
    expect(create).toThrow(what)
    expect(create).not.toThrow('hush')
  })

  it('an instance of ioredis with a keyPrefix, which BullMQ cannot use', () => {
    const redis = new Redis({ keyPrefix: 'app:', lazyConnect: true })
    expect(() => bullmqQueue({ name: 'a', connection: redis })).toThrow('must have no keyPrefix')
  })
})
