/** Redis unreachable, silent, cut off, killed, full and guarded by a password. */

import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import { inspect } from 'node:util'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../../src/kit/clock.ts'
import type { HooklineError } from '../../../src/protocol/error.ts'
import { type BullmqQueueOptions, bullmqQueue } from '../../../src/queues-bullmq.ts'
import { readOptions } from '../../../src/store/bullmq/bullmq-options.ts'
import { createBullmqStore } from '../../../src/store/bullmq/bullmq-store.ts'
import type { ClaimedJob, Queue } from '../../../src/store/queue-types.ts'
import { needs } from '../../support/needs.ts'
import { complete, jobOf, work } from '../../support/queues.ts'
import { freePort, openProxy, type PrivateRedis, privateRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

const unavailable = { code: 'queue_unavailable', status: 503 }
const open: Queue[] = []
const fail = () => expect.fail('it was not rejected')

afterEach(async () => {
  for (const queue of open.splice(0)) await queue.close({ graceMs: 0 })
})

function openQueue(options: Partial<BullmqQueueOptions> & Pick<BullmqQueueOptions, 'connection'>): Queue {
  const queue = bullmqQueue({ name: randomUUID(), timeoutMs: 2000, onError() {}, ...options })
  open.push(queue)
  return queue
}

describe('an unreachable Redis', () => {
  it('lets a queue open and close; each call rejects', async () => {
    const errors: unknown[] = []
    const connection = `redis://:hush-hush@127.0.0.1:${await freePort()}`
    const queue = openQueue({ name: 'orders', connection, timeoutMs: 300, onError: (error) => errors.push(error) })
    work(queue)
    const drain = queue.drain()
    const calls = [() => queue.push([jobOf()]), queue.counts, queue.deadLetters, () => queue.redrive('all')]
    for (const call of [...calls, () => queue.drop('all')]) {
      const error = await call().then(fail, (caught: unknown) => caught)
      expect(error).toMatchObject({ ...unavailable, cause: { code: 'ECONNREFUSED' } })
      expect(String(error)).toContain('`connection`')
    }
    expect(errors).not.toEqual([])
    expect(inspect(errors, { depth: 9 })).not.toContain('hush-hush')
    await queue.close({ graceMs: 0 })
    await drain
    await expect(queue.push([jobOf()])).rejects.toMatchObject({ code: 'shutting_down' })
  })

  it('is not connected to before the first call: a build may import the module', async () => {
    let connections = 0
    const server = createServer((socket) => {
      connections++
      socket.on('error', () => {})
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    openQueue({ connection: { port, host: '127.0.0.1' } })
    const queue = openQueue({ connection: `redis://127.0.0.1:${port}`, timeoutMs: 300 })
    await delay(100)
    expect(connections).toBe(0)
    await expect(queue.push([jobOf()])).rejects.toMatchObject(unavailable)
    expect(connections).toBe(1)
    server.close()
  })
})

describe('a redis-server', needs('redis-server'), () => {
  let redis: PrivateRedis

  beforeAll(async () => {
    redis = await privateRedis()
    await redis.start()
  })

  afterAll(() => redis.dispose())

  async function openProxyTo(port: number) {
    const proxy = await openProxy(port)
    onTestFinished(proxy.close)
    return { ...proxy, url: `redis://127.0.0.1:${proxy.port}` }
  }

  /** A Redis for one test, and a client of it. */
  async function startRedis(...options: readonly string[]) {
    const started = await privateRedis(...options)
    onTestFinished(started.dispose)
    await started.start()
    const client = new Redis(started.url, { lazyConnect: true })
    onTestFinished(() => client.disconnect())
    return { ...started, client }
  }

  it('killed and restarted under load: no acknowledged job is lost, and the queue recovers by itself', async () => {
    const queue = openQueue({ connection: redis.url, leaseMs: 400, timeoutMs: 300 })
    const handled = new Set<string>()
    work(queue, ({ id, claimCount }) => {
      if (claimCount === 1 && id < '4') return { retryAt: new Date(Date.now() + 50) }
      handled.add(id)
      return complete
    })
    const [acknowledged, refused] = [new Set<string>(), [] as unknown[]]
    let stop = false
    const load = Array.from({ length: 20 }, async () => {
      while (!stop) {
        const job = jobOf()
        try {
          await queue.push([job])
          acknowledged.add(job.id)
        } catch (error) {
          refused.push(error)
          await nextTurn() // A connection that ends can refuse at once, until the event loop tells of it.
          stop ||= (error as HooklineError).code === 'shutting_down' // The test has failed, and its queue is closed.
        }
      }
    })
    await until(() => acknowledged.size > 200 && handled.size > 50)
    await redis.kill()
    const before = acknowledged.size
    await until(() => refused.length >= 20)
    for (const error of refused) expect(error).toMatchObject(unavailable)
    await redis.start()
    await until(() => acknowledged.size > before + 200)
    stop = true
    await Promise.all(load)
    await until(() => [...acknowledged].every((id) => handled.has(id)))
    await queue.drain()
    expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, deadLetters: 0 })
  }, 30_000)

  it('cut off before it got a push: the push is rejected, and is not sent afterwards', async () => {
    const proxy = await openProxyTo(redis.port)
    const queue = openQueue({ connection: proxy.url })
    await queue.counts()
    proxy.silence()
    const push = queue.push([jobOf()])
    await nextTurn()
    proxy.cut()
    await expect(push).rejects.toMatchObject(unavailable)
    proxy.resume()
    await until(() => queue.counts().then(Boolean, () => false))
    expect(await queue.counts()).toMatchObject({ waiting: 0 })
  })

  it('cut off whenever it answers a claim: the jobs are released soon, and no such claim counts', async () => {
    const proxy = await openProxyTo(redis.port)
    const name = randomUUID()
    await openQueue({ name, connection: redis.url }).push([jobOf(), jobOf(), jobOf()])
    const store = createBullmqStore(readOptions({ name, connection: proxy.url, onError() {} }), systemClock)
    onTestFinished(async () => void (await store.close()))
    await store.counts()
    for (let count = 0; count < 10; count++) {
      await until(() => Promise.resolve(store.counts()).then(Boolean, () => false))
      proxy.loseAnswer()
      await expect(Promise.resolve(store.claim(3))).rejects.toMatchObject(unavailable)
    }
    const claims: ClaimedJob[] = []
    await until(async () => claims.push(...(await Promise.resolve(store.claim(3)).catch(() => []))) >= 3)
    expect(claims.map(({ claimCount }) => claimCount)).toEqual([1, 1, 1])
  })

  it('with another password: rejects with the code, and never shows the password', async () => {
    const guarded = await startRedis('--requirepass', 'right')
    const errors: unknown[] = []
    const connection = `redis://:wrong-one@127.0.0.1:${guarded.port}`
    const queue = openQueue({ connection, onError: (error) => errors.push(error) })
    work(queue)
    const error = await queue.push([jobOf()]).then(fail, (caught: unknown) => caught)
    expect(error).toMatchObject(unavailable)
    expect(String(error)).toMatch(/WRONGPASS|NOAUTH/)
    await until(() => errors.length > 0)
    expect(inspect([error, ...errors], { depth: 9 })).not.toContain('wrong-one')
  })

  it('that is full: queue_unavailable, and the stored jobs stay until there is room again', async () => {
    const { client, ...small } = await startRedis('--maxmemory', '4mb')
    const queue = openQueue({ connection: small.url, timeoutMs: 20_000 })
    queue.reserve?.('inbox')
    await queue.push([jobOf()])
    const body = Buffer.alloc(1024 * 1024)
    const results = await Promise.allSettled(Array.from({ length: 5 }, () => queue.push([{ ...jobOf(), body }])))
    const refused = results.filter((result) => result.status === 'rejected')
    expect(refused.length).toBeGreaterThan(0)
    for (const { reason } of refused) expect(reason).toMatchObject({ ...unavailable, cause: { name: 'ReplyError' } })
    expect(String(refused[0]?.reason)).toContain('Got OOM.')
    expect(inspect(refused[0], { depth: 9 }).length).toBeLessThan(5000)
    const { waiting } = await queue.counts()
    expect(waiting).toBe(1 + results.length - refused.length)
    await client.config('SET', 'maxmemory', '1mb')
    await expect(queue.push([jobOf()])).rejects.toThrow('Got OOM.')
    expect(await queue.counts()).toMatchObject({ waiting, pushError: expect.stringContaining('Got OOM.') })
    await client.config('SET', 'maxmemory', '100mb')
    const seen = work(queue)
    await queue.drain()
    expect(seen).toHaveLength(waiting)
  })

  it('whose place another one takes: the connection to the replica ends, and calls go to the new one', async () => {
    const [first, next] = [await startRedis(), await startRedis()]
    const proxy = await openProxyTo(first.port)
    const queue = openQueue({ connection: proxy.url })
    await queue.push([jobOf()])
    proxy.moveTo(next.port)
    await first.client.replicaof('127.0.0.1', next.port)
    await expect(queue.push([jobOf()])).rejects.toThrow('Got READONLY.')
    const isPushed = () => queue.push([jobOf()]).then(Boolean, () => 'rejected')
    await until(async () => (await isPushed()) !== 'rejected')
    expect(await queue.counts()).toMatchObject({ waiting: 1 })
  })

  it('over a connection of the user: it stays open, without listeners', async () => {
    const connection = new Redis(redis.url)
    const queue = openQueue({ connection })
    const seen = work(queue)
    await queue.push([jobOf()])
    await queue.drain()
    await queue.close({ graceMs: 0 })
    await delay(0)
    expect(await connection.ping()).toBe('PONG')
    const listeners = ['error', 'ready', 'close', 'end'].map((event) => connection.listenerCount(event))
    expect([seen.length, ...listeners]).toEqual([1, 0, 0, 0, 0])
    connection.disconnect()
  })
})
