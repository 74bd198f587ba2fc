/** What is left of a user in Redis when a queue has forgotten them. */

import { randomUUID } from 'node:crypto'
import { Queue as Engine } from 'bullmq'
import { describe, expect, it, vi } from 'vitest'
import type { Outcome, StoredJob } from '../../../src/store/queue-types.ts'
import { needs } from '../../support/needs.ts'
import { jobOf, work } from '../../support/queues.ts'
import { until } from '../../support/until.ts'
import { useRedis } from './set-up.ts'

const isOfAda = ({ body }: StoredJob) => Buffer.from(body).includes('ada')

describe('a queue on BullMQ that forgets', needs('Redis'), () => {
  const server = useRedis()
  const { setUp } = server

  async function everything(name: string): Promise<string> {
    const keys = await server.redis.keys(`bull:${name}:*`)
    const values = keys.map(async (key) => {
      const type = await server.redis.type(key)
      if (type === 'hash') return server.redis.hgetall(key)
      if (type === 'stream') return server.redis.xrange(key, '-', '+')
      if (type === 'zset') return server.redis.zrange(key, 0, '-1')
      return type === 'list' ? server.redis.lrange(key, 0, -1) : server.redis.get(key)
    })
    return JSON.stringify([keys, await Promise.all(values)])
  }

  it('keeps nothing of a body, of a retry state or of a reason', async () => {
    const { name, queue } = setUp()
    const traces = (who: string) => [who, `${who} why`].map((text) => Buffer.from(text).toString('base64').slice(0, -4))
    const later = new Date(Date.now() + 60 * 60_000)
    work(queue, ({ body }) => {
      const retryState = Buffer.from(`${body} why`)
      return `${body}`.endsWith('fails') ? { deadLetter: `${body} reason`, retryState } : { retryAt: later, retryState }
    })
    await queue.push(['ada fails', 'bob fails', 'ada waits', 'bob waits'].map((body) => jobOf(body)))
    await queue.drain()
    void queue.pause()
    await queue.push([jobOf('ada due'), { ...jobOf('ada later'), notBefore: later }, jobOf('bob due')])
    const before = await everything(name)
    for (const who of ['ada', 'bob']) {
      for (const text of [`${who} fails reason`, ...traces(`${who} fails`), ...traces(`${who} waits`)]) {
        expect(before).toContain(text)
      }
    }
    expect(await queue.forget(isOfAda)).toEqual({ deleted: 4, active: 0 })
    const after = await everything(name)
    for (const text of [...traces('ada fails'), ...traces('ada waits'), ...traces('ada due'), ...traces('ada later')]) {
      expect(after).not.toContain(text)
    }
    for (const text of [...traces('bob fails'), ...traces('bob waits')]) expect(after).toContain(text)
    expect(await queue.counts()).toMatchObject({ waiting: 2, active: 0, deadLetters: 1 })
  })

  it('deletes the job of a worker that died, when its lease is over', async () => {
    const { queue, engine } = setUp()
    const seen = work(queue, () => new Promise(() => {}))
    const job = jobOf('ada')
    await queue.push([job])
    await until(() => seen.length === 1)
    expect(await queue.forget(isOfAda)).toEqual({ deleted: 0, active: 1 })
    await server.redis.del(`${engine.toKey(job.id)}:lock`)
    expect(await queue.forget(isOfAda)).toEqual({ deleted: 1, active: 0 })
    expect(await engine.getActiveCount()).toBe(0)
  })

  it('counts a job that is handled meanwhile as active', async () => {
    const { queue, engine } = setUp()
    const held = Promise.withResolvers<Outcome>()
    const seen = work(queue, () => held.promise)
    await queue.push([jobOf('ada')])
    await until(() => seen.length === 1)
    const { remove } = Engine.prototype
    vi.spyOn(Engine.prototype, 'remove').mockImplementationOnce(async function (this: Engine, ...args) {
      held.resolve({ complete: true })
      await until(async () => (await engine.getActiveCount()) === 0)
      return remove.apply(this, args)
    })
    expect(await queue.forget(isOfAda)).toEqual({ deleted: 0, active: 1 })
  })

  it('finds what others wrote by its data, and passes over what ends meanwhile', async () => {
    const { queue, engine } = setUp()
    await engine.add('other', { userId: 'ada' })
    vi.spyOn(Engine.prototype, 'getRanges').mockImplementationOnce(async function (this: Engine, ...args) {
      return [randomUUID(), ...(await this.getRanges(...args))]
    })
    expect(await queue.forget(isOfAda)).toEqual({ deleted: 1, active: 0 })
    expect(await engine.getWaitingCount()).toBe(0)
  })
})
