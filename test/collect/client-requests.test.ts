import { describe, expect, it } from 'vitest'
import { type Answer, eventsOf, numbered, settle, setUp } from './dispatcher.ts'

describe('a batch request', () => {
  it('is a POST of JSON, authenticated with the write key, and taken with any 2xx', async () => {
    const { client, requests, failures } = setUp([204])

    client.track(numbered(0))
    client.identify({ userId: 'user-1' })
    await client.flush()

    const [request, ...others] = requests
    expect([others, failures]).toEqual([[], []])
    expect(request?.method).toBe('POST')
    expect(request?.headers).toEqual({
      authorization: `Basic ${Buffer.from('write-key:').toString('base64')}`,
      'content-type': 'application/json',
      'user-agent': 'Hookline/1.0',
    })
    expect(JSON.parse(String(request?.bytes))).toEqual({
      batch: [expect.objectContaining({ type: 'track' }), expect.objectContaining({ type: 'identify' })],
      sentAt: '2026-01-15T09:30:00.000Z',
    })
  })

  it.each(['http://127.0.0.1:8080/', 'https://example.com/collect/?token=a%20b'])(
    'Endpoint · %s is posted to as given',
    async (endpoint) => {
      const { client, requests } = setUp([], { endpoint })
      client.track(numbered(0))
      await client.flush()
      expect(requests).toMatchObject([{ url: endpoint }])
    },
  )

  it('is one of four that are on their way at once, each with calls in their order', async () => {
    const options = { flushAt: 2, timeoutMs: 100, maxRetries: 0 }
    const { client, clock, requests, batches } = setUp(Array(4).fill('hang'), options)

    for (let index = 0; index < 10; index++) client.track(numbered(index))
    await settle()
    expect(requests).toHaveLength(4)
    await clock.advance(100)

    const inOrder = Array.from({ length: 5 }, (_, at) => [`Event ${2 * at}`, `Event ${2 * at + 1}`])
    expect(batches().map(eventsOf)).toEqual(inOrder)
  })

  it('counts by its status when its answer is too long, which is not read to the end', async () => {
    const { client, failures, aborted } = setUp([{ status: 200, body: 'x'.repeat(17 * 65_536) }])
    client.track(numbered(0))
    await client.flush()
    expect(aborted()).toBe(1)
    expect(failures).toEqual([])
  })
})

describe('a batch', () => {
  it.each<Answer>([new Error('read ECONNRESET'), 503])('is posted again, the same bytes, after %s', async (answer) => {
    const { client, clock, failures, requests } = setUp([answer, answer])
    client.track(numbered(0))
    await clock.advance(60_000)
    expect(failures).toEqual([])
    expect(requests.map(({ headers }) => headers['x-retry-count'])).toEqual([undefined, '1', '2'])
    expect(new Set(requests.map(({ bytes }) => String(bytes))).size).toBe(1)
  })

  it('that gets no answer in timeoutMs is ended, and posted again', async () => {
    const { client, clock, requests, aborted } = setUp(['hang'], { flushAt: 1 })

    client.track(numbered(0))
    await clock.advance(9_999)
    expect(aborted()).toBe(0)

    await clock.advance(1)
    expect(aborted()).toBe(1)

    await clock.advance(1_000)
    expect(requests).toHaveLength(2)
  })

  it.each([300, 401])('is given up after %i', async (status) => {
    const { client, failures, requests } = setUp([status])
    client.track(numbered(0))
    await client.flush()
    expect(requests).toHaveLength(1)
    const [{ error, calls } = {}] = failures
    expect(error).toMatchObject({ reason: 'batch_refused', status, attempts: 1 })
    expect(eventsOf(calls ?? [])).toEqual(['Event 0'])
  })
})

describe('a retry', () => {
  /** How long after the one before each attempt came, in seconds. Each retry waits as long as it may. */
  async function waitsOf(answers: readonly Answer[]): Promise<number[]> {
    const { client, clock, requests } = setUp(answers, { flushAt: 1 })
    client.track(numbered(0))
    await clock.advance(1_000_000)
    const times = requests.map(({ at }) => at.getTime())
    return times.slice(1).map((time, index) => (time - (times[index] ?? 0)) / 1000)
  }

  it('comes after at most 1 s, then twice as long each time, up to a minute', async () => {
    expect(await waitsOf(Array(10).fill(500))).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60, 60])
  })

  it.each([
    ['seconds', '7', 7],
    ['no sooner than asked, and no later than five minutes', '86400', 300],
    ['less than the backoff, which counts then', '0', 1],
  ])('waits for Retry-After: %s', async (_name, header, seconds) => {
    const answer = { status: 429, headers: { 'retry-after': header } }
    expect(await waitsOf([answer])).toEqual([seconds])
  })

  it('comes as often as given, then the batch has failed', async () => {
    const { client, clock, failures, requests } = setUp(Array(20).fill(503), { maxRetries: 2 })

    for (const index of [0, 1]) client.track(numbered(index))
    await clock.advance(600_000)

    expect(requests).toHaveLength(3)
    const error = { reason: 'out_of_retries', status: 503, attempts: 3 }
    expect(failures).toMatchObject([{ error, calls: [numbered(0), numbered(1)] }])
  })
})
