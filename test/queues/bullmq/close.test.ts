/** A worker that closes: what it claims too late, and what it releases. */

import { Worker } from 'bullmq'
import { describe, expect, it, vi } from 'vitest'
import { needs } from '../../support/needs.ts'
import { bodiesOf, jobOf, work } from '../../support/queues.ts'
import { until } from '../../support/until.ts'
import { useRedis } from './set-up.ts'

describe('a worker on BullMQ that closes', needs('Redis'), () => {
  const { setUp } = useRedis()

  it('during a claim releases the job, and that claim does not count', async () => {
    const { queue, another, engine } = setUp()
    const { getNextJob } = Worker.prototype
    let closed: Promise<unknown> | undefined
    vi.spyOn(Worker.prototype, 'getNextJob').mockImplementation(async function (this: Worker, ...args) {
      const job = await getNextJob.apply(this, args)
      if (job !== undefined) closed ??= queue.close({ graceMs: 0 })
      return job
    })
    await queue.push([jobOf()])
    const late = work(queue)
    await until(() => closed !== undefined)
    await closed
    vi.restoreAllMocks()
    expect([late, await engine.getWaitingCount()]).toEqual([[], 1])
    const before = Date.now()
    const next = another()
    const seen = work(next)
    await next.drain()
    expect(seen).toMatchObject([{ claimCount: 1 }])
    expect(seen[0]?.firstAt.getTime()).toBeGreaterThanOrEqual(before)
  })

  it('releases several jobs in their order, before what waits', async () => {
    const { queue, another } = setUp()
    const running = work(queue, () => new Promise(() => {}), 3)
    await queue.push(['a', 'b', 'c', 'd'].map((body) => jobOf(body)))
    await until(() => running.length === 3)
    await queue.close({ graceMs: 0 })
    const next = another()
    const seen = work(next, undefined, 1)
    await next.drain()
    expect(bodiesOf(seen)).toEqual(['a', 'b', 'c', 'd'])
    expect(running).toHaveLength(3)
  })
})
