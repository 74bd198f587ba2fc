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
  'hookline-client': { refusals: 1, calls: CALLS },
  'analytics-node': { refusals: 2, calls: CALLS },
  'rudder-sdk-node': { refusals: 1, calls: CALLS },
  'analytics-next': { refusals: 2, calls: CALLS, isPage: true },
  'rudder-analytics-js': { refusals: 2, calls: WITHOUT_SCREEN, isPage: true },
  beacon: { refusals: 0, calls: CALLS, isPage: true },
} satisfies Record<string, Client>

type Fields = Readonly<Record<string, unknown>>

let run: Run<keyof typeof CLIENTS>
beforeAll(async () => {
  run = await runClients(CLIENTS)
})

describe.each(Object.keys(CLIENTS) as (keyof typeof CLIENTS)[])('%s', (name) => {
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

test.each(['analytics-next', 'rudder-analytics-js'] as const)(
  '%s asks first whether it may, once for each path',
  (name) => {
    const { origin } = run.clients[name].sent[0]?.headers ?? {}
    const preflights = run.preflights.filter(({ headers }) => headers.origin === origin)
    const paths = new Set(run.clients[name].sent.map(({ path }) => path))
    expect(preflights.map(({ path }) => path).sort()).toEqual([...paths].sort())
    expect(new Set(preflights.map(({ status }) => status))).toEqual(new Set([200]))
  },
)

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
