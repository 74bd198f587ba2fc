/** The jobs in a file when the clock is set, when they are too many, and when they are damaged. */

import { describe, expect, it } from 'vitest'
import type { DeadLetter } from '../../../src/store/queue-types.ts'
import { until } from '../../support/until.ts'
import { bodiesOf, damagePage, done, HOURS_3, jobOf, setUp, work } from './set-up.ts'

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
})

describe('a row that cannot be read', () => {
  const update = (values: string) =>
    `UPDATE hookline_queue_jobs SET ${values} WHERE seq = (SELECT min(seq) FROM hookline_queue_jobs)`

  const removeBody = 'DELETE FROM hookline_queue_bodies WHERE seq = (SELECT min(seq) FROM hookline_queue_bodies)'

  it.each([
    ['no body', removeBody, 'its body is missing'],
    ['an id of 3 bytes', update("id = x'010203'"), 'its id is not a UUID of 16 bytes'],
  ])('becomes a dead letter, and others are claimed: %s', async (_what, damage, reason) => {
    const { open, connect, drained } = setUp()
    const queue = open()
    await queue.push(['bad', 'good', 'good too'].map((body) => jobOf(body, { group: 'one group' })))
    connect().exec(damage)
    const told: DeadLetter[] = []
    const seen = work(queue, () => done, 1, [], { onUnreadable: (letter) => void told.push(letter) })
    await drained(queue)
    expect(bodiesOf(seen)).toEqual(['good', 'good too'])
    const letters = await queue.deadLetters()
    expect(letters).toMatchObject([{ reason: `unreadable: ${reason}` }])
    expect(told).toMatchObject(letters.map(({ id }) => ({ id, reason: `unreadable: ${reason}` })))
    expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, deadLetters: 1 })
    expect(await queue.drop(letters.map(({ id }) => id))).toBe(1)
    expect(await queue.counts()).toMatchObject({ deadLetters: 0 })
  })

  it.each([
    update("claim_count = 'many'"),
    update("at = 'soon'"),
    update("retry_state = 'text'"),
    update('first_at = 1 << 60'),
    update('state = 7'),
    update('at = 8640000000000001'),
    'UPDATE hookline_queue_bodies SET body = 5',
  ])('the file refuses: %s', async (damage) => {
    const { open, connect, drained } = setUp()
    const queue = open()
    await queue.push([jobOf('bad'), jobOf('good')])
    expect(() => connect().exec(damage)).toThrow()
    const seen = work(queue)
    await drained(queue)
    expect(bodiesOf(seen)).toEqual(['bad', 'good'])
  })
})

it('a damaged page is reported by each call that reads it; the queue stops there, and loses no more', async () => {
  const { path, open, connect, errors } = setUp({ isWhole: false })
  const before = open()
  await before.push(Array.from({ length: 100 }, (_, index) => jobOf(`${index}`.padEnd(1000))))
  await before.close({ graceMs: 0 })
  damagePage(path, connect(), 'hookline_queue_bodies')
  const queue = open()
  const seen = work(queue)
  await until(() => errors.length > 0)
  expect(`${errors[0]}`).toContain('it is damaged')
  await expect(queue.forget(() => true)).rejects.toThrow('it is damaged')
  expect(seen).toEqual([])
  expect(await queue.counts()).toMatchObject({ waiting: 100, active: 0 })
})
