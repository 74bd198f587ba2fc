/** An observer of a queue: beside running workers; it changes nothing that it is not asked to change. */

import { randomUUID } from 'node:crypto'
import { expect, it, onTestFinished } from 'vitest'
import { createReceiver } from '../../src/receive/create-receiver.ts'
import type { QueueCounts } from '../../src/store/health.ts'
import type { Queue } from '../../src/store/queue-types.ts'
import { leaveJobs } from '../support/left-jobs.ts'
import { jobOf, work } from '../support/queues.ts'
import { until } from '../support/until.ts'

export interface ObservedEngine {
  open(name: string, observe: boolean): Queue
  list(): Promise<readonly string[]>
  /** All that the engine stores, of every queue, but what workers wake for and when they supervised. */
  read(): Promise<unknown>
  /** Whether it counts the jobs that are retried. */
  readonly countsRetries: boolean
  /** Makes the next counts current. */
  refresh?(): Promise<unknown>
  /** Waits for what a worker stores by itself soon after it has claimed a job. */
  settle?(name: string): Promise<unknown>
  remove?(name: string): Promise<unknown>
}

export function testObserver(engine: ObservedEngine): void {
  const { list, read, refresh } = engine

  function setUp(name: string = randomUUID()) {
    const open = (observe = false) => {
      const queue = engine.open(name, observe)
      onTestFinished(async () => {
        await queue.close({ graceMs: 0 })
        await engine.remove?.(name)
      })
      return queue
    }
    return { name, open }
  }

  async function countsOf(queue: Queue) {
    await refresh?.()
    return queue.counts()
  }

  it('is refused by each call while its queue does not exist, with the names of those that do, and creates nothing', async () => {
    const { name, open } = setUp(`orders-${randomUUID().slice(0, 8)}`)
    const other = setUp()
    await other.open().counts()
    const before = await read()

    const observer = open(true)
    const refusal = { code: 'queue_unavailable', message: expect.stringContaining(other.name) }

    const calls = [observer.counts, observer.deadLetters, () => observer.redrive('all'), () => observer.drop('all')]
    for (const call of calls) await expect(call()).rejects.toMatchObject(refusal)
    expect(await read()).toEqual(before)

    await open().push([jobOf()])
    expect(await countsOf(observer)).toMatchObject({ waiting: 1, active: 0, deadLetters: 0 })
    expect(await list()).toEqual(expect.arrayContaining([name, other.name]))
  })

  it('reads jobs in every phase, and leaves all that is stored as it is', async () => {
    const { name, open } = setUp()
    const worker = open()
    await leaveJobs(worker, new Date(Date.now() + 60 * 60_000))
    await engine.settle?.(name)
    const before = await read()

    const observer = open(true)
    const counts: QueueCounts = await countsOf(observer)
    const letters = await observer.deadLetters()
    const after = await observer.deadLetters({ after: letters[0]?.id ?? '' })
    await observer.close({ graceMs: 0 })

    expect(counts).toMatchObject({ waiting: 3, active: 1, deadLetters: 1 })
    expect(counts.retrying).toBe(engine.countsRetries ? 1 : undefined)
    expect(Math.abs(Date.now() - (counts.oldestDueAt?.getTime() ?? 0))).toBeLessThan(60_000)
    expect(letters).toEqual(await worker.deadLetters())
    expect(letters.map(({ reason, body }) => [reason, `${Buffer.from(body)}`])).toEqual([['reason', 'body 4']])
    expect(after).toEqual([])
    expect(await read()).toEqual(before)
  })

  it('pushes, and claims nothing', async () => {
    const { name, open } = setUp()
    const worker = open()
    await worker.counts()
    const observer = open(true)

    await observer.push([jobOf()])
    await expect(observer.push([jobOf()], { db: {} })).rejects.toThrow(TypeError)
    expect(() => work(observer)).toThrow(TypeError)
    expect(() => createReceiver({ secret: 'a secret', inbox: observer })).toThrow(name)
    expect(await countsOf(observer)).toMatchObject({ waiting: 1, active: 0 })

    work(worker)
    await until(async () => (await countsOf(observer)).waiting === 0)
  })
}
