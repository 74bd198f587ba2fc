/** What a Redis must be like: one that deletes jobs is refused; what it may lose is reported. */

import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { type BullmqQueueOptions, bullmqQueue } from '../../../src/queues-bullmq.ts'
import { needs } from '../../support/needs.ts'
import { jobOf, work } from '../../support/queues.ts'
import { watchWarnings } from '../../support/receive.ts'
import { type PrivateRedis, privateRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

describe('a Redis', needs('redis-server'), () => {
  let redis: PrivateRedis
  let client: Redis

  beforeAll(async () => {
    redis = await privateRedis('--maxmemory', '100mb')
    await redis.start()
    client = new Redis(redis.url)
  })

  afterEach(async () => {
    await client.config('SET', 'maxmemory-policy', 'noeviction', 'maxmemory', '100mb', 'appendonly', 'yes')
  })

  afterAll(async () => {
    client.disconnect()
    await redis.dispose()
  })

  function openQueue(options: Partial<BullmqQueueOptions> = {}) {
    const errors: unknown[] = []
    const onError = (error: unknown) => errors.push(error)
    const queue = bullmqQueue({ name: 'orders', connection: redis.url, onError, ...options })
    onTestFinished(async () => {
      await queue.close({ graceMs: 0 })
      await client.flushall()
    })
    return { queue, errors }
  }

  it.each(['allkeys-lru', 'volatile-ttl'])('with maxmemory-policy %s is refused by each call', async (policy) => {
    await client.config('SET', 'maxmemory-policy', policy)
    const { queue, errors } = openQueue()
    work(queue)
    const message = expect.stringMatching(new RegExp(`${policy}.*\`allowEviction`))
    for (const call of [() => queue.push([jobOf()]), () => queue.counts(), () => queue.deadLetters()])
      await expect(call()).rejects.toMatchObject({ code: 'queue_unavailable', message })
    expect(errors[0]).toMatchObject({ code: 'queue_unavailable', message })
    expect(await client.keys('*:wait')).toEqual([])
    await client.config('SET', 'maxmemory-policy', 'noeviction')
    await queue.push([jobOf()])
    await queue.drain()
    expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0 })
  })

  it('that keeps what it acknowledges, may evict by the options, or has no limit, is used without a warning', async () => {
    const warn = watchWarnings()
    await openQueue().queue.push([jobOf()])
    await client.config('SET', 'maxmemory-policy', 'allkeys-lru')
    await openQueue({ allowEviction: true }).queue.push([jobOf()])
    await client.config('SET', 'maxmemory', '0')
    await openQueue({ name: 'users' }).queue.push([jobOf()])
    expect(warn).not.toHaveBeenCalled()
  })

  it('that began to evict, or was emptied, is found within a minute', async () => {
    const { queue } = openQueue()
    queue.reserve?.('inbox')
    await queue.push([jobOf()])
    await client.flushall()
    const now = performance.now()
    const time = vi.spyOn(performance, 'now').mockReturnValue(now + 61_000)
    onTestFinished(() => time.mockRestore())
    await queue.push([jobOf()])
    expect(await client.hgetall('bull-hookline:orders')).toEqual({ use: 'inbox', version: '1' })
    await client.config('SET', 'maxmemory-policy', 'allkeys-lru')
    await queue.push([jobOf()])
    time.mockReturnValue(now + 122_000)
    await expect(queue.push([jobOf()])).rejects.toThrow('allkeys-lru')
  })

  it('without an append-only file: a warning, once', async () => {
    const warn = watchWarnings()
    await client.config('SET', 'appendonly', 'no')
    const { queue } = openQueue()
    await Promise.all([queue.push([jobOf()]), queue.push([jobOf()])])
    await client.client('KILL', 'TYPE', 'NORMAL')
    await until(() => queue.counts().then(Boolean, () => false))
    expect(warn.mock.calls).toEqual([[expect.stringContaining('appendonly'), { code: 'HOOKLINE_REDIS_PERSISTENCE' }]])
  })

  it('that does not tell: warnings, and it is used', async () => {
    const warn = watchWarnings()
    await client.call('ACL', 'SETUSER', 'shop', 'on', '>secret', '~*', '+@all', '-info', '-client|list')
    const connection = `redis://shop:secret@127.0.0.1:${redis.port}`
    await openQueue({ connection }).queue.push([jobOf()])
    expect(warn.mock.calls).toEqual([
      [expect.stringContaining('maxmemory-policy'), { code: 'HOOKLINE_REDIS_EVICTION' }],
      [expect.any(String), { code: 'HOOKLINE_REDIS_PERSISTENCE' }],
    ])
  })

  it('whose queue another version reserved is refused, also by an observer', async () => {
    const { queue } = openQueue()
    await queue.push([jobOf()])
    await client.hset('bull-hookline:orders', 'version', 7)
    for (const observe of [false, true])
      await expect(openQueue({ observe }).queue.counts()).rejects.toThrow('format version 7,')
  })
})
