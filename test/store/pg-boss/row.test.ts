import { describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/kit/clock.ts'
import { isFaultOfItems, unavailable } from '../../../src/store/pg-boss/pg-boss-connection.ts'
import { secondsUntil } from '../../../src/store/pg-boss/pg-boss-job.ts'
import { secondsOf } from '../../../src/store/pg-boss/pg-boss-tables.ts'

const clock = { ...systemClock, now: () => 5.5 }

it('a row waits for times as PostgreSQL takes them', () => {
  const until = [0, 5, 6, 1005.5].map((at) => secondsUntil(new Date(at), clock))
  expect(until).toEqual([0, 0, 0.001, 1])
  expect(secondsUntil(new Date(8.64e15), clock)).toBe(100 * 365 * 24 * 60 * 60)
  expect([secondsOf(1), secondsOf(2000), secondsOf(Number.MAX_SAFE_INTEGER)]).toEqual([1, 2, 2 ** 31 - 1])
})

describe('an error of PostgreSQL', () => {
  const failure = (message: string, more: object) => Object.assign(new Error(message), more)

  it.each<[string, unknown, string]>([
    ['shows its own message', failure('no such user', { code: '28000', detail: 'row' }), 'no such user'],
    ['shows no data', failure('invalid input: "body"', { code: '22P02', where: 'body' }), 'SQLSTATE 22P02'],
    ['shows no row', failure('conflict', { code: '23505', detail: 'body' }), 'SQLSTATE 23505'],
    ['shows the first of several', new AggregateError([failure('refused', { code: 'ECONNREFUSED' })]), 'refused'],
    ['shows the kind of what is no error', 'body', 'a thrown string'],
    [
      'shows no URL',
      failure('Invalid URL', { code: 'ERR_INVALID_URL', input: 'postgres://user:body@' }),
      'Invalid URL',
    ],
  ])('%s', (_what, error, text) => {
    const reported = unavailable('orders', error)
    expect(reported.message).toMatch(/^Queue orders: a call to PostgreSQL failed: .+\. Check that .+\.$/)
    expect(reported).toMatchObject({ code: 'queue_unavailable', message: expect.stringContaining(text) })
    const { cause } = reported
    expect(JSON.stringify([reported, cause, { ...(cause as object) }, reported.message])).not.toContain('body')
    expect(isFaultOfItems(reported)).toBe(text.startsWith('SQLSTATE'))
  })

  it('stays the error it is when it was reported already', () => {
    const reported = unavailable('orders', new Error('no'))
    expect(unavailable('orders', reported)).toBe(reported)
  })
})
