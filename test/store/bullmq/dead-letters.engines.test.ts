/** Calls about dead letters that meet: in one queue, of two processes, and while it closes. Their order. */

import { setImmediate as nextTurn } from 'node:timers/promises'
import { Queue as Engine } from 'bullmq'
import { describe, expect, it, vi } from 'vitest'
import type { Outcome } from '../../../src/store/queue-types.ts'
import { needs } from '../../support/needs.ts'
import { jobOf, work } from '../../support/queues.ts'
import { useRedis } from './set-up.ts'

describe('the dead letters of a queue on BullMQ', needs('Redis'), () => {
  const server = useRedis()

  async function setUp(count: number) {
    const parts = server.setUp()
    const jobs = Array.from({ length: count }, () => jobOf())
    let outcome: Outcome = { deadLetter: 'no' }
    work(parts.queue, () => outcome)
    await parts.queue.push(jobs)
    await parts.queue.drain()
    outcome = { retryAt: new Date(Date.now() + 60_000), retryState: Buffer.from('kept') }
    return { ...parts, ids: jobs.map(({ id }) => id), id: jobs[0]?.id ?? '' }
  }

  it('keep what a redrive elsewhere led to, and are redriven once', async () => {
    const { queue, engine, id } = await setUp(1)
    const { getJob } = Engine.prototype
    vi.spyOn(Engine.prototype, 'getJob').mockImplementationOnce(async function (this: Engine, jobId) {
      const was = await getJob.call(this, jobId)
      expect(await queue.redrive('all')).toBe(1)
      await queue.drain()
      return was
    })
    expect(await queue.redrive('all')).toBe(0)
    const job = await engine.getJob(id)
    expect(job?.data.retryState).toBe(Buffer.from('kept').toString('base64'))
    expect(await queue.counts()).toMatchObject({ waiting: 1, deadLetters: 0 })
  })

  it('are redriven, dropped or both, when two processes do both to each of them', async () => {
    const { queue, another, ids } = await setUp(300)
    const other = another()
    await other.counts() // It is connected.
    const dropLater = async (id: string, turns: number) => {
      for (let turn = 0; turn < turns; turn++) await nextTurn()
      return other.drop([id])
    }
    const counts = await Promise.all(
      ids.map((id, index) => Promise.all([queue.redrive([id]), dropLater(id, index % 30)])),
    )
    for (const [redriven, dropped] of counts) expect(redriven + dropped).toBeGreaterThanOrEqual(1)
    await queue.drain()
    const waiting = counts.filter(([, dropped]) => dropped === 0).length
    expect(await queue.counts()).toMatchObject({ waiting, active: 0, deadLetters: 0 })
  })

  it('leave nothing behind when they are dropped, and their ids are new', async () => {
    const { queue, engine, ids } = await setUp(2)
    const [one = '', other = ''] = ids
    await (await engine.getJob(one))?.log('by hand')
    expect([await queue.drop([one]), await queue.drop('all')]).toEqual([1, 1])
    for (const id of ids) expect(await server.redis.keys(`*${id}*`)).toEqual([])
    await queue.push([one, other].map((id) => ({ id, body: Buffer.from('body') })))
    await queue.drain()
    expect((await queue.counts()).waiting).toBe(2)
  })
})
