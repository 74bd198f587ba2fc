import { randomUUID } from 'node:crypto'
import type { Job as FetchedJob } from 'pg-boss'
import { describe, expect, it, vi } from 'vitest'
import { systemClock } from '../../../src/kit/clock.ts'
import { isFaultOfItems, lapsed, limitsOf, unavailable } from '../../../src/store/pg-boss/pg-boss-connection.ts'
import { isOurs, laneOf, secondsUntil, toClaim, toInsert, toPushed } from '../../../src/store/pg-boss/pg-boss-job.ts'
import { secondsOf } from '../../../src/store/pg-boss/pg-boss-tables.ts'
import { readTransaction } from '../../../src/store/pg-boss/pg-boss-transaction.ts'

const clock = { ...systemClock, now: () => 5.5 }
const id = randomUUID()
const [body, state] = [Buffer.from('{"é":1}'), Buffer.from('state')]
const data = { at: 1_000_000, body: body.toString('base64'), part: id.charAt(0) }

it('a job is a row with its bytes as base64, in the queue for groups if it has one', () => {
  const group = 'e4ea294c062c' // It begins the SHA-1 of the name.
  const pushed = toPushed({ id, body, group: 'ada', notBefore: new Date(1005.5) }, data.at, clock)
  expect(pushed).toEqual({ id, data, startAfter: 1, singletonKey: group, group: { id: group } })
  expect(toPushed({ id, body }, data.at, clock)).toEqual({ id, data })
  expect(toInsert(id, body, data.at, state)).toEqual({ id, data: { ...data, state: state.toString('base64') } })
  expect([pushed, { id, data }].map((row) => laneOf('orders', row))).toEqual(['orders-groups', 'orders'])
})

it('a claim has what its row and its note say, and of a row of others the data as body', () => {
  const claimOf = (more: object, stored?: object) => {
    const job = { id, data, retryCount: 2, ...more } as FetchedJob<typeof data> & { retryCount: number }
    return toClaim(job as never, { lane: 'orders', leaseMs: 1_000, stored: stored as never, now: 8_000 })
  }
  const held = { id, body, retryCount: 2, lane: 'orders', data, group: undefined, isOurs: true, retryState: undefined }
  const [first, noted] = [new Date(3), { uncounted: 1, state }]
  const again = { claimCount: 2, retryState: state, firstAt: first, note: { first, ...noted }, isNoted: true }
  expect(claimOf({ groupId: 'g' }, { first, ...noted })).toEqual({ ...held, ...again, group: 'g' })
  const unseen = { claimCount: 3, firstAt: new Date(6_000), isNoted: false }
  expect(claimOf({})).toEqual({ ...held, ...unseen, note: { first: unseen.firstAt, uncounted: 0, state: null } })
  const fresh = claimOf({ retryCount: 0 }, { first: null, uncounted: 0, state })
  expect(fresh).toMatchObject({ claimCount: 1, firstAt: new Date(8_000), dueAt: new Date(1_000), retryState: state })
  const lapsedOnce = claimOf({}, { first: null, uncounted: 1, state })
  expect(lapsedOnce).toMatchObject({ claimCount: 2, firstAt: new Date(7_000), isNoted: true })
  const theirs = claimOf({ data: { to: 'ada' } })
  expect([`${theirs.body}`, theirs.isOurs, theirs.data.at]).toEqual(['{"to":"ada"}', false, 8_000_000])
  const others = [data, { ...data, at: '1' }, { ...data, body: 1 }, { ...data, part: 'x' }, null]
  expect(others.map((each) => isOurs({ id, data: each } as never))).toEqual([true, false, false, false, false])
})

it('a transaction of the caller runs statements, and is none outside of BEGIN', async () => {
  const query = vi.fn(async () => ({ rows: [1] }))
  const idle = ['I', null].map((status) => ({ query, getTransactionStatus: () => status }))
  for (const db of [{ query }, { executeSql: query }, { query, getTransactionStatus: () => 'T' }])
    expect(await readTransaction(db).executeSql('SELECT $1', [5])).toEqual({ rows: [1] })
  expect(query.mock.calls).toEqual(Array(3).fill(['SELECT $1', [5]]))
  for (const db of [{}, { query, totalCount: 1 }, ...idle]) expect(() => readTransaction(db)).toThrow('`db`')
  for (const result of [[], undefined])
    await expect(readTransaction({ query: async () => result }).executeSql('')).rejects.toThrow('`db`')
  expect(limitsOf(5, 7)).toMatch(/ statement_timeout = 5;.* lock_timeout = 5;.*session_timeout = 7$/s)
  expect([lapsed('orders').code, isFaultOfItems(lapsed('orders'))]).toEqual(['lease_lapsed', true])
})

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
