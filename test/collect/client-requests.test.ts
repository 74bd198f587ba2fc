import { describe, expect, it, test } from 'vitest'
import { type Answer, eventsOf, numbered, settle, setUp } from './dispatcher.ts'

describe('a batch request', () => {
  it('is a POST of JSON, authenticated with the write key', async () => {
    const { client, sent } = setUp()
    client.track(numbered(0))
    client.identify({ userId: 'user-1' })
    await client.flush()
    expect(sent).toHaveLength(1)
    expect(sent[0]).toMatchObject({ method: 'POST' })
    expect(sent[0]?.headers).toEqual({
      authorization: `Basic ${Buffer.from('write-key:').toString('base64')}`,
      'content-type': 'application/json',
      'user-agent': 'Hookline/1.0',
    })
    expect(JSON.parse(sent[0]?.body ?? '')).toEqual({
      batch: [expect.objectContaining({ type: 'track' }), expect.objectContaining({ type: 'identify' })],
      sentAt: '2026-01-15T09:30:00.000Z',
    })
  })

  it('four are on their way at once, each with calls in their order', async () => {
    const { client, sent, clock } = setUp(Array(4).fill('silence'), { flushAt: 2, timeoutMs: 100, maxRetries: 0 })
    for (let index = 0; index < 10; index++) client.track(numbered(index))
    await settle()
    const inOrder = [
      ['Event 0', 'Event 1'],
      ['Event 2', 'Event 3'],
      ['Event 4', 'Event 5'],
      ['Event 6', 'Event 7'],
    ]
    expect(sent.map(({ calls }) => eventsOf(calls))).toEqual(inOrder)
    await clock.advance(100)
    expect(sent.map(({ calls }) => eventsOf(calls))).toEqual([...inOrder, ['Event 8', 'Event 9']])
  })
})

const network = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })

describe('what is tried again', () => {
  it.each<[string, Answer]>([
    ['a network error', network],
    ['408', 408],
    ['429', 429],
    ['500', 500],
    ['599', 599],
  ])('%s', async (_name, answer) => {
    const { client, clock, failures, sent } = setUp([answer, answer])
    client.track(numbered(0))
    const flushed = client.flush()
    await clock.advance(60_000)
    await flushed
    expect(sent).toHaveLength(3)
    expect(failures).toEqual([])
    expect(new Set(sent.map(({ body }) => body)).size).toBe(1)
    expect(sent.map(({ headers }) => headers['x-retry-count'])).toEqual([undefined, '1', '2'])
  })

  it('no answer in timeoutMs: the request is ended', async () => {
    const { client, clock, aborted, sent } = setUp(['silence'], { flushAt: 1 })
    client.track(numbered(0))
    await clock.advance(9999)
    expect(aborted).toHaveLength(0)
    await clock.advance(1)
    expect(aborted).toHaveLength(1)
    await clock.advance(1000)
    expect(sent).toHaveLength(2)
  })
})

describe('what is final', () => {
  it.each([300, 307, 400, 401, 413, 499])('%i', async (status) => {
    const { client, failures, sent } = setUp([status])
    client.track(numbered(0))
    await client.flush()
    expect(sent).toHaveLength(1)
    expect(failures).toEqual([
      {
        error: expect.objectContaining({ name: 'BatchError', reason: 'batch_refused', status, attempts: 1 }),
        calls: [expect.objectContaining({ event: 'Event 0' })],
      },
    ])
    expect(failures[0]?.error.message).toMatch(
      new RegExp(`^The collection service refused the batch\\. Got status ${status} after 1 attempt\\. [A-Z].*\\.$`),
    )
  })

  it.each([200, 299])('%i, which is success', async (status) => {
    const { client, failures, sent } = setUp([status])
    client.track(numbered(0))
    await client.flush()
    expect(sent).toHaveLength(1)
    expect(failures).toEqual([])
  })
})

describe('when it is tried again', () => {
  /** How long after the one before each attempt came, in seconds. */
  async function waitsOf(answers: readonly Answer[], random: () => number): Promise<number[]> {
    const { client, clock, dispatcher } = setUp(answers, { flushAt: 1, random })
    const { dispatch } = dispatcher
    const times: number[] = []
    dispatcher.dispatch = (options, handler) => {
      times.push(clock.now())
      return dispatch(options, handler)
    }
    client.track(numbered(0))
    await clock.advance(1_000_000)
    return times.slice(1).map((time, index) => (time - (times[index] ?? 0)) / 1000)
  }

  it('after at most 1 s, then twice as long each time, up to a minute', async () => {
    expect(await waitsOf(Array(10).fill(500), () => 0.999_999)).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60, 60])
  })

  it.each([
    ['seconds', '7', 7],
    ['an HTTP date', 'Thu, 15 Jan 2026 09:30:09 GMT', 9],
    ['no sooner than asked, and no later than five minutes', '86400', 300],
    ['less than the backoff, which counts then', '0', 1],
    ['neither, which says nothing', 'soon', 1],
  ])('Retry-After: %s', async (_name, header, seconds) => {
    const answer = { status: 429, headers: { 'retry-after': header } }
    expect(await waitsOf([answer], () => 0.999_999)).toEqual([seconds])
  })

  test.each([
    ['10 by default', {}, 11],
    ['as given', { maxRetries: 2 }, 3],
    ['never', { maxRetries: 0 }, 1],
  ])('retries: %s', async (_name, options, attempts) => {
    const { client, clock, failures, sent } = setUp(Array(20).fill(503), options)
    client.track(numbered(0))
    client.track(numbered(1))
    const flushed = client.flush()
    await clock.advance(600_000)
    await flushed
    expect(sent).toHaveLength(attempts)
    expect(failures).toEqual([
      {
        error: expect.objectContaining({ reason: 'out_of_retries', status: 503, attempts }),
        calls: [expect.objectContaining({ event: 'Event 0' }), expect.objectContaining({ event: 'Event 1' })],
      },
    ])
  })
})

describe('an answer that is too long', () => {
  const chunks = Array(17).fill(Buffer.alloc(65_536, 'x'))

  it('counts by its status, and is not read to the end', async () => {
    const { client, aborted, failures } = setUp([{ status: 200, body: chunks }])
    client.track(numbered(0))
    await client.flush()
    expect(aborted).toHaveLength(1)
    expect(failures).toEqual([])
  })
})
