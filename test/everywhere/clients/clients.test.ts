/** Released clients, unchanged, with their defaults: from a call that a program makes to the message that a receiver verifies. */

import { beforeAll, describe, expect, test } from 'vitest'
import { type Client, type Run, runClients } from './run.ts'
import type { Sent } from './tap.ts'

const CALLS = {
  identify: {
    userId: 'user-1',
    traits: { plan: 'pro', logins: 5, address: { city: 'Zürich' }, tags: [] },
  },
  track: {
    userId: 'user-1',
    event: 'Order Completed',
    properties: {
      total: 39.95,
      tiny: 1e-7,
      large: 9007199254740991,
      note: 'Größe ☃ 🎉 "\\\u2028',
      items: [{ sku: '', price: 0 }],
    },
  },
  page: { userId: 'user-1', category: 'Shop', name: 'Pricing', properties: { path: '/pricing', title: 'Pricing' } },
  screen: { userId: 'user-1', name: 'Basket', properties: { items: 2 } },
  group: { userId: 'user-1', groupId: 'group-1', traits: { 'Employee Count': 12 } },
  alias: { userId: 'user-1', previousId: 'anonymous-1' },
}

const { screen: _, ...WITHOUT_SCREEN } = CALLS

const CLIENTS = {
  'hookline-client': { program: 'hookline-client', refusals: 1, calls: CALLS },
  'analytics-node': { program: 'analytics-node', refusals: 2, calls: CALLS },
  'rudder-sdk-node': { program: 'rudder-sdk-node', refusals: 1, calls: CALLS },
  'rudder-sdk-node, refused': { program: 'rudder-sdk-node', refusals: null, calls: CALLS },
  'analytics-next': { program: 'analytics-next', refusals: 2, calls: CALLS },
  'rudder-analytics-js': { program: 'rudder-analytics-js', refusals: 2, calls: WITHOUT_SCREEN },
  beacon: { program: 'beacon', refusals: 0, calls: CALLS },
} satisfies Record<string, Client>

type Fields = Readonly<Record<string, unknown>>

let run: Run<keyof typeof CLIENTS>
beforeAll(async () => {
  run = await runClients(CLIENTS)
})

const ACCEPTED = [
  'hookline-client',
  'analytics-node',
  'rudder-sdk-node',
  'analytics-next',
  'rudder-analytics-js',
  'beacon',
] as const

describe.each(ACCEPTED)('%s', (name) => {
  test('ends well', () => {
    expect(run.clients[name].code).toBe(0)
  })

  test('what was recorded arrives: once, signed, after the receiver was down and the collector was killed', () => {
    const { posts } = run.clients[name]
    expect(posts.filter(({ isSigned }) => !isSigned)).toEqual([])
    const taken = posts.flatMap(({ status, body }) => (status === 200 ? [body] : []))
    expect(taken).toHaveLength(Object.keys(CLIENTS[name].calls).length)
    for (const body of taken) expect(posts).toContainEqual(expect.objectContaining({ status: 503, body }))

    for (const [type, call] of Object.entries(CLIENTS[name].calls)) {
      const { previousId, ...fields } = inPlace(name, type, call)
      const ids = previousId === undefined ? {} : { 'Previous ID': previousId, 'User ID': fields.userId }
      expect(taken.map(parse)).toContainEqual(expect.objectContaining(containing({ type, ...fields, ...ids })))
    }
  })

  test('what arrives is what the client sent, field by field, but for what the collector documents', () => {
    const { sent, posts } = run.clients[name]
    const messages = posts.flatMap(({ status, body }) => (status === 200 ? [parse(body)] : []))
    const calls = sent.filter(({ status }) => status === 200).flatMap(readCalls)

    expect(calls).toHaveLength(messages.length)
    for (const { call, sentAt, isOfBrowser } of calls) {
      const message = messages.find(({ messageId }) => messageId === call.messageId)
      const { writeKey: _, previousId, ...fields } = call
      const context = { ...(call.context as Fields), ...(isOfBrowser && { ip: '127.0.0.1' }) }
      expect(message).toEqual({
        ...fields,
        ...(previousId !== undefined && { 'Previous ID': previousId, 'User ID': call.userId }),
        version: 1,
        timestamp: call.timestamp ?? message?.receivedAt,
        receivedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        sentAt,
        context,
      })
    }
  })
})

describe('hookline-client', () => {
  test('posts a batch of JSON, and comes back when Retry-After says', () => {
    const { sent } = run.clients['hookline-client']
    expect(sent.map(({ status }) => status)).toEqual([503, 200])
    expect(sent.map(({ path, headers }) => [path, headers['content-type'], headers['x-retry-count']])).toEqual([
      ['/v1/batch', 'application/json', undefined],
      ['/v1/batch', 'application/json', '1'],
    ])
    expect(sent[1]?.body).toEqual(sent[0]?.body)
    expect(gaps(sent)).toEqual([within(5, 6)])
  })
})

describe('analytics-node', () => {
  test('posts a batch of JSON, and comes back after 1 to 2 s, then 2 to 4 s', () => {
    const { sent } = run.clients['analytics-node']
    expect(sent.map(({ status }) => status)).toEqual([503, 503, 200])
    expect(sent.map(({ path, headers }) => [path, headers['content-type'], headers['x-retry-count']])).toEqual([
      ['/v1/batch', 'application/json', undefined],
      ['/v1/batch', 'application/json', '1'],
      ['/v1/batch', 'application/json', '2'],
    ])
    expect(gaps(sent)).toEqual([within(1, 2), within(2, 4)])
  })
})

describe('rudder-sdk-node', () => {
  const FORM = ['/v1/batch', 'application/x-www-form-urlencoded', 'gzip']

  test('posts gzip that it says is a form, the first call alone, and comes back when Retry-After says', () => {
    const { sent } = run.clients['rudder-sdk-node']
    expect(sent.map(({ status }) => status)).toEqual([503, 200, 503, 200])
    for (const { path, headers } of sent) {
      expect([path, headers['content-type'], headers['content-encoding']]).toEqual(FORM)
    }
    expect(sent.map(({ json }) => (json.batch as unknown[]).length)).toEqual([1, 1, 5, 5])
    expect(sent[1]?.body).toEqual(sent[0]?.body)
    expect(gaps(sent.slice(0, 2))).toEqual([within(5, 6)])
  })

  test('gives up after three retries, and ends a process that handles no error', () => {
    const { sent, posts, code, printed } = run.clients['rudder-sdk-node, refused']
    expect(sent.map(({ status }) => status)).toEqual([503, 503, 503, 503])
    expect(gaps(sent)).toEqual([within(5, 6), within(5, 6), within(5, 6)])
    expect([code, posts]).toEqual([1, []])
    expect(printed).toContain('Error: Service Unavailable')
  })
})

describe('analytics-next', () => {
  test('posts each call as text from another origin, and comes back at once, then after 1 to 2 s', () => {
    const { sent } = run.clients['analytics-next']
    for (const letter of ['i', 't', 'p', 's', 'g', 'a']) {
      const attempts = sent.filter(({ path }) => path === `/v1/${letter}`)
      expect(attempts.map(({ status }) => status)).toEqual([503, 503, 200])
      expect(attempts.map(({ headers }) => headers['x-retry-count'])).toEqual([undefined, '1', '2'])
      for (const { headers } of attempts) {
        expect(headers).toMatchObject({ 'content-type': 'text/plain', origin: expect.stringContaining('127.0.0.1') })
        expect(headers.origin).not.toBe(`http://${headers.host}`)
      }
      expect(gaps(attempts)).toEqual([within(0, 1), within(1, 3)])
    }
  })
})

describe('rudder-analytics-js', () => {
  test('posts each call as JSON from another origin, and comes back after 2 s, then 4 s', () => {
    const { sent } = run.clients['rudder-analytics-js']
    for (const type of Object.keys(WITHOUT_SCREEN)) {
      const attempts = sent.filter(({ path }) => path === `/v1/${type}`)
      expect(attempts.map(({ status }) => status)).toEqual([503, 503, 200])
      expect(attempts.map(({ headers }) => headers['rsa-retry-attempt'])).toEqual([undefined, '1', '2'])
      expect(new Set(attempts.map(({ headers }) => headers['content-type']))).toEqual(
        new Set(['application/json;charset=UTF-8']),
      )
      expect(gaps(attempts)).toEqual([within(2, 2), within(4, 4)])
    }
  })
})

describe.each(['analytics-next', 'rudder-analytics-js'] as const)('%s', (name) => {
  test('asks first whether it may, once for each path', () => {
    const { origin } = run.clients[name].sent[0]?.headers ?? {}
    const preflights = run.preflights.filter(({ headers }) => headers.origin === origin)
    const paths = new Set(run.clients[name].sent.map(({ path }) => path))
    expect(preflights.map(({ path }) => path).sort()).toEqual([...paths].sort())
    expect(new Set(preflights.map(({ status }) => status))).toEqual(new Set([200]))
  })

  test('asks nothing of any other machine', () => {
    const requests: string[] = JSON.parse(run.clients[name].printed)
    expect(requests.length).toBeGreaterThan(20)
    expect(new Set(requests.map((url) => new URL(url).hostname))).toEqual(new Set(['127.0.0.1']))
  })
})

describe('beacon', () => {
  test('a page posts its calls as text while it is left, each once, and asks nothing first', () => {
    const { sent } = run.clients.beacon
    expect(sent.map(({ path }) => path)).toEqual(Object.keys(CALLS).map((type) => `/v1/${type}`))
    for (const { headers, status } of sent) {
      expect([status, headers['content-type'], headers.authorization]).toEqual([
        200,
        'text/plain;charset=UTF-8',
        undefined,
      ])
    }
  })
})

function inPlace(client: string, type: string, { traits, ...call }: Fields): Fields {
  if (traits === undefined) return call
  return client === 'rudder-analytics-js' && type === 'identify'
    ? { ...call, context: { traits } }
    : { ...call, traits }
}

function parse(body: string): Fields {
  return JSON.parse(body)
}

function containing(fields: Fields): Fields {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => {
      const isPlain = typeof value === 'object' && value !== null && !Array.isArray(value)
      return [name, isPlain ? expect.objectContaining(containing(value as Fields)) : value]
    }),
  )
}

function readCalls({ path, headers, json }: Sent) {
  const { batch, sentAt } = json
  const calls = (batch ?? [{ type: typeOf(path), ...json }]) as readonly Fields[]
  return calls.map((call) => ({ call, sentAt: call.sentAt ?? sentAt, isOfBrowser: headers.origin !== undefined }))
}

function typeOf(path: string): string | undefined {
  return Object.keys(CALLS).find((type) => path === `/v1/${type}` || path === `/v1/${type[0]}`)
}

/** The seconds between requests. */
function gaps(sent: readonly Sent[]): number[] {
  return sent.slice(1).map(({ at }, index) => (at - (sent[index]?.at ?? 0)) / 1000)
}

/** Matches seconds; a busy machine adds up to four. */
function within(least: number, most: number): unknown {
  return expect.toSatisfy((seconds: number) => seconds >= least - 0.05 && seconds <= most + 4, `${least} to ${most} s`)
}
