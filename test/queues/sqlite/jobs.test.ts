import { describe, expect, it } from 'vitest'
import type { Outcome } from '../../../src/queues/queue.ts'
import { until } from '../../support/until.ts'
import { bodiesOf, done, HOURS_3, jobOf, setUp, work } from './set-up.ts'

describe('a clock that is set', () => {
  it('back: what is due is claimed at once, also after that', async () => {
    const { open, setClock } = setUp({ isHere: true })
    const queue = open()
    await queue.push([jobOf('before')])
    setClock(-HOURS_3)
    await queue.push([jobOf('after')])
    const seen = work(queue)
    await queue.drain()
    expect(bodiesOf(seen).sort()).toEqual(['after', 'before'])
  })

  it('forward: what this process works on is not claimed again', async () => {
    const { open, setClock, clock } = setUp({ isHere: true })
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

describe('a clock that is set back', () => {
  it('remembers the id of a complete job for the dedupe window from then on, and no longer', async () => {
    const { open, setClock, clock, see } = setUp({ isHere: true })
    const queue = open({ dedupeWindowMs: 1_000 })
    const seen = work(queue)
    const job = jobOf('a')
    await queue.push([job])
    await queue.drain()
    setClock(-HOURS_3)
    await queue.push([job])
    await queue.drain()
    await clock.advance(999)
    await queue.push([job])
    await queue.drain()
    expect(seen).toHaveLength(1)
    await clock.advance(1)
    await queue.push([job])
    await see(() => seen.length === 2)
  })
})

describe('order', () => {
  it('of a thousand that come due at once: as they came due, with those that are due already among them', async () => {
    const { open, setClock, clock } = setUp({ isHere: true })
    const queue = open()
    const jobs = Array.from({ length: 1_000 }, (_, index) =>
      jobOf(`${index}`, { notBefore: new Date(clock.now() + index * 10 + 10) }),
    )
    await queue.push([...jobs].reverse())
    setClock(5_005)
    await queue.push([jobOf('in line')])
    setClock(HOURS_3)
    const seen = work(queue, () => done, 7)
    await queue.drain()
    const expected = jobs.map(({ body }) => `${body}`)
    expected.splice(500, 0, 'in line')
    expect(bodiesOf(seen)).toEqual(expected)
  })
})

describe('maxJobs', () => {
  it('is not exceeded by any part of a push, nor by a redrive; ids that are known take no room', async () => {
    const { open } = setUp({ isHere: true })
    const queue = open({ maxJobs: 3 })
    const known = jobOf('known')
    await queue.push([known, jobOf('dies')])
    await expect(queue.push([jobOf(), jobOf()])).rejects.toMatchObject({ code: 'queue_full' })
    expect(await queue.counts()).toMatchObject({ waiting: 2 })
    await queue.push([known, known, jobOf('third')])
    const seen = work(queue, ({ body }) =>
      `${Buffer.from(body)}` === 'dies' ? { deadLetter: 'no' } : { retryAt: new Date(8e15) },
    )
    await until(() => seen.length === 3)
    await queue.drain()
    expect(await queue.counts()).toMatchObject({ waiting: 2, deadLetters: 1 })
    await queue.push([jobOf('fourth', { notBefore: new Date(8e15) })])
    await expect(queue.redrive('all')).rejects.toMatchObject({ code: 'queue_full' })
    await expect(queue.push([jobOf()])).rejects.toThrow(
      'Queue default is full: its maxJobs is 3. Got 4 jobs. Push again later, or raise maxJobs.',
    )
    expect(await queue.counts()).toMatchObject({ waiting: 3, deadLetters: 1 })
  })
})

describe('a queue that holds more than its maxJobs, since that was lowered', () => {
  it('takes what needs no room', async () => {
    const { open } = setUp({ isHere: true })
    const jobs = [jobOf(), jobOf()]
    await open().push(jobs)
    const queue = open({ maxJobs: 1 })
    await queue.push(jobs)
    expect(await queue.redrive('all')).toBe(0)
    await expect(queue.push([jobOf()])).rejects.toMatchObject({ code: 'queue_full' })
  })
})

describe('a paused queue', () => {
  it('is not drained while a job is due that was pushed since its last claim', async () => {
    const { open } = setUp({ isHere: true })
    const queue = open()
    const seen = work(queue)
    await queue.drain()
    queue.pause()
    await queue.push([jobOf('a')])
    let isDrained = false
    const drain = queue.drain().then(() => {
      isDrained = true
    })
    for (let trip = 0; trip < 3; trip += 1) await queue.counts()
    expect([isDrained, seen]).toEqual([false, []])
    queue.resume()
    await drain
    expect(bodiesOf(seen)).toEqual(['a'])
  })
})

describe('dropping all', () => {
  it('drops more than one request does', async () => {
    const { open } = setUp({ isHere: true })
    const queue = open()
    work(queue, () => ({ deadLetter: 'no' }), 500)
    await queue.push(Array.from({ length: 1_001 }, () => jobOf()))
    await queue.drain()
    expect(await queue.drop('all')).toBe(1_001)
    expect(await queue.counts()).toMatchObject({ deadLetters: 0 })
  })
})

describe('times that a Date cannot hold', () => {
  it('become the latest that it can', async () => {
    const { open, connect } = setUp({ isHere: true })
    const queue = open()
    await queue.push([jobOf('later', { notBefore: new Date(8.64e15) }), jobOf('a')])
    connect().exec('UPDATE hookline_queue_jobs SET due_at = (1 << 53) - 1 WHERE phase = 1')
    const seen = work(queue, () => ({ deadLetter: 'no' }))
    await queue.drain()
    expect(bodiesOf(seen)).toEqual(['a'])
    connect().exec('UPDATE hookline_queue_jobs SET due_at = 1 - (1 << 53) WHERE phase = 3')
    expect(await queue.deadLetters()).toMatchObject([{ failedAt: new Date(-8.64e15) }])
  })
})
