import { StatementSync } from 'node:sqlite'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { bodiesOf, damage, done, jobOf, pageInside, setUp, work } from './set-up.ts'

describe('a row that cannot be read', () => {
  const update = (values: string) =>
    `UPDATE hookline_queue_jobs SET ${values} WHERE seq = (SELECT min(seq) FROM hookline_queue_jobs)`

  it.each([
    [
      'no body',
      'DELETE FROM hookline_queue_bodies WHERE seq = (SELECT min(seq) FROM hookline_queue_bodies)',
      'its body is missing',
    ],
    ['an id of 3 bytes', update("id = x'010203'"), 'its id is not a UUID of 16 bytes'],
    ['an id of no bytes', update("id = x''"), 'its id is not a UUID of 16 bytes'],
  ])('becomes a dead letter, and others are claimed: %s', async (_what, damage, reason) => {
    const { open, connect, drained } = setUp({ isHere: true })
    const queue = open()
    await queue.push([jobOf('bad'), jobOf('good'), jobOf('good too')])
    connect().exec(damage)
    const seen = work(queue, () => done, 1)
    await drained(queue)
    expect(bodiesOf(seen)).toEqual(['good', 'good too'])
    expect(await queue.deadLetters()).toMatchObject([{ reason: `unreadable: ${reason}` }])
    expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, deadLetters: 1 })
    expect(await queue.redrive('all')).toBe(1)
    await drained(queue)
    expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, deadLetters: 1 })
    expect(await queue.drop('all')).toBe(1)
    expect(await queue.counts()).toMatchObject({ deadLetters: 0 })
  })

  it.each([
    update("claim_count = 'many'"),
    update("due_at = 'soon'"),
    update("first_at = x'00'"),
    update("retry_state = 'text'"),
    update('retry_state = 5'),
    update('claim_count = 1 << 60'),
    update('due_at = 1 << 60'),
    update('first_at = 1 << 60'),
    update('phase = 4'),
    "UPDATE hookline_queue_bodies SET body = 'text'",
    'UPDATE hookline_queue_bodies SET body = 5',
  ])('the file refuses: %s', async (damage) => {
    const { open, connect, drained } = setUp({ isHere: true })
    const queue = open()
    await queue.push([jobOf('bad'), jobOf('good')])
    expect(() => connect().exec(damage)).toThrow()
    const seen = work(queue)
    await drained(queue)
    expect(bodiesOf(seen)).toEqual(['bad', 'good'])
  })

  it('because its page is damaged: the others are claimed', async () => {
    const { path, open, connect, drained } = setUp({ isWhole: false, isHere: true })
    const before = open()
    const jobs = Array.from({ length: 100 }, (_, index) => jobOf(`${index}`.padEnd(1000)))
    await before.push(jobs)
    await before.close({ graceMs: 0 })
    const database = connect()
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    damage(path, pageInside(database, 'hookline_queue_bodies'))
    database.close()
    const queue = open()
    const seen = work(queue)
    await drained(queue)
    const dead = await queue.deadLetters({ limit: 1000 })
    expect(dead.length).toBeGreaterThan(0)
    expect(dead.length).toBeLessThan(10)
    expect(dead[0]?.reason).toMatch(/^unreadable: its body is on a damaged page of the file$/)
    expect([...seen, ...dead].map(({ id }) => id).sort()).toEqual(jobs.map(({ id }) => id).sort())
  })

  it('because the page of a dead letter is damaged: it is listed without its body, and can be dropped', async () => {
    const { path, open, connect } = setUp({ isWhole: false, isHere: true })
    const before = open()
    work(before, () => ({ deadLetter: 'no' }))
    await before.push(Array.from({ length: 100 }, (_, index) => jobOf(`${index}`.padEnd(1000))))
    await before.drain()
    await before.close({ graceMs: 0 })
    const database = connect()
    damage(path, pageInside(database, 'hookline_queue_bodies'))
    database.close()
    const [listing, dropping] = [open(), open()]
    const dead = await listing.deadLetters({ limit: 1000 })
    const lost = dead.filter(({ body }) => body.byteLength === 0)
    expect(dead).toHaveLength(100)
    expect(lost.length).toBeGreaterThan(0)
    expect(lost.length).toBeLessThan(10)
    expect(await dropping.drop([lost[0]?.id as string])).toBe(1)
    expect(await dropping.drop('all')).toBe(99)
    expect(await listing.counts()).toMatchObject({ deadLetters: 0 })
  })

  it('this time only: a dead letter is listed with its body the next time', async () => {
    const { open } = setUp({ isHere: true })
    const queue = open()
    work(queue, () => ({ deadLetter: 'no' }))
    await queue.push([jobOf('a')])
    await queue.drain()
    const { get } = StatementSync.prototype
    const spy = vi.spyOn(StatementSync.prototype, 'get').mockImplementation(function (this: StatementSync, ...values) {
      if (!this.sourceSQL.includes('hookline_queue_bodies')) return get.apply(this, values)
      throw Object.assign(new Error('disk I/O error'), { errcode: 10 })
    })
    onTestFinished(() => spy.mockRestore())
    await expect(queue.deadLetters()).rejects.toThrow('disk I/O error')
    spy.mockRestore()
    expect(bodiesOf(await queue.deadLetters())).toEqual(['a'])
  })
})

describe('a damaged list of completed jobs', () => {
  it('keeps no job from being completed', async () => {
    const { path, open, connect } = setUp({ isWhole: false, isHere: true })
    const before = open()
    work(before, () => done, 500)
    await before.push(Array.from({ length: 500 }, () => jobOf()))
    await before.drain()
    await before.close({ graceMs: 0 })
    const database = connect()
    damage(path, pageInside(database, 'hookline_queue_completed', 0))
    database.close()
    const queue = open()
    const seen = work(queue)
    await queue.push([jobOf('a'), jobOf('b')])
    await queue.drain()
    await queue.push([jobOf('c')])
    await queue.drain()
    expect(bodiesOf(seen)).toEqual(['a', 'b', 'c'])
    expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0 })
  })
})
