import { describe, expect, it } from 'vitest'
import { systemClock } from '../../src/protocol/clock.ts'
import { createBatches } from '../../src/queues/pg-boss-batches.ts'
import { isFaultOfData, unavailable } from '../../src/queues/pg-boss-error.ts'
import { createStamps, decode, encode, priorityAt, secondsOf } from '../../src/queues/pg-boss-row.ts'
import { createStatistics } from '../../src/queues/pg-boss-statistics.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'

describe('batches', () => {
  function setUp(isFaultOfItems = (_error: unknown) => false) {
    const sent: { items: readonly number[]; resolve(): void; reject(error: unknown): void }[] = []
    const batches = createBatches<number>({
      send: (items) => new Promise((resolve, reject) => sent.push({ items, resolve, reject })),
      weigh: (item) => item,
      most: 10,
      isFaultOfItems,
    })
    return { sent, add: batches.add }
  }
  const turn = () => new Promise((resolve) => setImmediate(resolve))

  it('take what comes in one turn, then what came meanwhile, up to a weight; one that is too heavy goes alone', async () => {
    const { sent, add } = setUp()
    const added = Promise.all([1, 2].map(add))
    await turn()
    const later = Promise.all([3, 4, 3, 1, 99].map(add))
    sent[0]?.resolve()
    await added
    for (const index of [1, 2, 3]) {
      await turn()
      sent[index]?.resolve()
    }
    await later
    expect(sent.map(({ items }) => items)).toEqual([[1, 2], [3, 4, 3], [1], [99]])
    const again = add(5)
    await turn()
    sent[4]?.resolve()
    await again
  })

  it('fail together when the way is at fault', async () => {
    const { sent, add } = setUp()
    const added = Promise.allSettled([1, 2].map(add))
    await turn()
    sent[0]?.reject('away')
    expect(await added).toEqual([1, 2].map(() => ({ status: 'rejected', reason: 'away' })))
    expect(sent).toHaveLength(1)
  })

  it('are sent one by one when one of them may be at fault', async () => {
    const { sent, add } = setUp((error) => error === 'data')
    const added = Promise.allSettled([1, 2].map(add))
    await turn()
    sent[0]?.reject('data')
    await turn()
    sent[1]?.reject('data')
    sent[2]?.resolve()
    expect(await added).toMatchObject([{ reason: 'data' }, { status: 'fulfilled' }])
    expect(sent.map(({ items }) => items)).toEqual([[1, 2], [1], [2]])
  })
})

describe('what is told of PostgreSQL', () => {
  const failure = (message: string, more: object) => Object.assign(new Error(message), more)

  it.each<[string, unknown, string]>([
    ['its own message', failure('no such user', { code: '28000', detail: 'row' }), 'no such user'],
    ['no data', failure('invalid input: "body"', { code: '22P02', where: 'body' }), 'SQLSTATE 22P02'],
    ['no row', failure('conflict', { code: '23505', detail: 'body' }), 'SQLSTATE 23505'],
    ['the first of several addresses', new AggregateError([failure('refused', { code: 'ECONNREFUSED' })]), 'refused'],
    ['little of what is no error', 'body', 'It threw what is no Error.'],
    ['no URL', failure('Invalid URL', { code: 'ERR_INVALID_URL', input: 'postgres://user:body@' }), 'Invalid URL'],
  ])('%s', (_what, error, text) => {
    const told = unavailable('orders', error)
    expect(told).toMatchObject({ code: 'queue_unavailable', message: expect.stringContaining(text) })
    expect(JSON.stringify([told, told.cause, { ...(told.cause as object) }, told.message])).not.toContain('body')
    expect(isFaultOfData(told)).toBe(text.startsWith('SQLSTATE'))
  })
})

describe('a row', () => {
  it('keeps bytes, and nothing that is no base64', () => {
    const bytes = Uint8Array.from({ length: 256 }, (_, index) => index)
    expect([...(decode(encode(bytes.subarray(3, 200))) ?? [])]).toEqual([...bytes.subarray(3, 200)])
    for (const junk of [undefined, 5, 'a', 'abc ', 'a=bc', '====']) expect(decode(junk)).toBeUndefined()
  })

  it('has a higher priority the sooner it is due, within what a column takes', () => {
    const times = [0, Date.UTC(2026), Date.UTC(2026) + 1000, Date.UTC(2098), Number.MAX_VALUE / 1000]
    const priorities = times.map((ms) => priorityAt(ms * 1000))
    expect(priorities).toEqual([...priorities].sort((one, other) => other - one))
    expect(new Set(priorities).size).toBe(times.length)
    expect(priorityAt(Number.MAX_VALUE)).toBe(-(2 ** 31))
    expect(priorityAt(-Number.MAX_VALUE)).toBe(2 ** 31 - 1)
    expect([secondsOf(1), secondsOf(2000), secondsOf(Number.MAX_SAFE_INTEGER)]).toEqual([1, 2, 2 ** 31 - 1])
  })

  it('has a time of its own', () => {
    const stamp = createStamps({ ...systemClock, now: () => 5.5 })
    expect([stamp(), stamp(), stamp()]).toEqual([5000, 5001, 5002])
  })
})

describe('statistics', () => {
  it('are renewed when looking for jobs is slow, once a minute at most', async () => {
    const clock = manualClock()
    const statements: string[] = []
    const errors: unknown[] = []
    const call = async (make: (session: never) => Promise<unknown>) => {
      await make({ db: { executeSql: async (text: string) => statements.push(text) } } as never)
      throw new Error('away')
    }
    const connection = { call, close: async () => {} } as never
    const note = createStatistics(connection, { schema: 'mine', timeoutMs: 1, clock } as never, (error) =>
      errors.push(error),
    )
    for (const ms of [1, 50, 60]) note(ms)
    await clock.advance(59_999)
    note(60)
    await clock.advance(1)
    note(60)
    await clock.advance(0)
    expect(statements).toEqual(['ANALYZE mine.job', 'ANALYZE mine.job'])
    expect(errors).toHaveLength(2)
  })
})
