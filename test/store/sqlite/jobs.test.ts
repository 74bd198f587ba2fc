import { describe, expect, it } from 'vitest'
import type { Outcome } from '../../../src/store/queue-types.ts'
import { until } from '../../support/until.ts'
import { bodiesOf, done, HOURS_3, jobOf, setUp, work } from './set-up.ts'

describe('a clock that is set', () => {
  it('back: what is due is claimed at once, also after that', async () => {
    const { open, setClock } = setUp()
    const queue = open()
    await queue.push([jobOf('before')])
    setClock(-HOURS_3)
    await queue.push([jobOf('after')])
    const seen = work(queue)
    await queue.drain()
    expect(bodiesOf(seen).sort()).toEqual(['after', 'before'])
  })

  it('forward: what this process works on is not claimed again', async () => {
    const { open, setClock, clock } = setUp()
    const queue = open()
    const held = Promise.withResolvers<Outcome>()
    const seen = work(queue, () => held.promise)
    await queue.push([jobOf('held'), jobOf('later', { notBefore: new Date(clock.now() + HOURS_3) })])
    await until(() => seen.length === 1)
    setClock(HOURS_3)
    while (seen.length < 2) {
      await queue.counts()
      await clock.advance(200)
    }
    expect(bodiesOf(seen)).toEqual(['held', 'later'])
    held.resolve(done)
    await queue.drain()
    expect(seen).toHaveLength(2)
    expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0 })
  })
})

it('a queue that holds more than its maxJobs, since that was lowered, takes what needs no room', async () => {
  const { open } = setUp()
  const jobs = [jobOf(), jobOf()]
  await open().push(jobs)
  const queue = open({ maxJobs: 1 })
  await queue.push(jobs)
  expect(await queue.redrive('all')).toBe(0)
  await expect(queue.push([jobOf()])).rejects.toMatchObject({ code: 'queue_full' })
})
