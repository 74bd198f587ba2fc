/**
 * All seven types from each client to the handlers of a receiver, over real sockets: each client on a framework, and each framework.
 * The clients are those that sources use: ours, one that was written for the real service, and the requests that others make.
 */

import { Analytics } from '@segment/analytics-node'
import { expect, onTestFinished, test } from 'vitest'
import { createClient } from '../../src/collect/create-client.ts'
import { createCollector } from '../../src/collector.ts'
import { createReceiver, type Endpoint, type Message } from '../../src/index.ts'
import type { CallType } from '../../src/protocol/type-table.ts'
import { createDestination } from '../../src/sender.ts'
import { type Host, hosts } from '../support/hosts.ts'

const WRITE_KEY = 'the-key'

const TIME = '2026-01-15T09:30:00.123Z'

const CALLS = {
  identify: { userId: 'user-1', traits: { plan: 'pro', logins: 5 } },
  track: {
    userId: 'user-1',
    event: 'Order Completed',
    properties: { total: 39.95, note: 'Größe ☃', 'Coupon Code': 'X' },
  },
  page: { userId: 'user-1', name: 'Pricing', properties: { path: '/pricing', title: 'Pricing' } },
  screen: { userId: 'user-1', name: 'Basket', properties: { items: 2 } },
  group: { userId: 'user-1', groupId: 'group-1', traits: { 'Employee Count': 12 } },
  alias: { userId: 'user-1', previousId: 'anonymous-1' },
} as const

/** The types of the Go library, version 2 ("Go client library", What the service does 2). */
const FIVE: readonly CallType[] = ['identify', 'track', 'page', 'group', 'alias']
const SIX: readonly CallType[] = [...FIVE, 'screen']

interface Client {
  readonly types: readonly CallType[]
  /** The time that its calls arrive with, where it cannot send milliseconds. Default {@link TIME}. */
  readonly time?: string
  /** Makes the calls. Resolves when the collector has accepted them. */
  run(collector: string): Promise<void>
}

/** How a client without code here writes its requests. */
interface Wire {
  readonly types?: readonly CallType[]
  readonly time?: string
  readonly headers: Readonly<Record<string, string>>
  readonly fields: object
  readonly rename?: (type: CallType, call: object) => object
  readonly batch?: { readonly path: string; readonly fields: object }
}

const basic = `Basic ${btoa(`${WRITE_KEY}:`)}`
const uuid = '5a3c8f0e-6a2b-4c53-9d0c-0b6f3a7d1e24'
const library = (name: string, version: string) => ({ library: { name, version } })

const WIRES: Readonly<Record<string, Wire>> = {
  'the Go library, version 1': {
    time: '2026-01-15T09:30:00.000Z',
    headers: goHeaders('1.2.0'),
    fields: { timestamp: '2026-01-15T10:30:00+0100', messageId: uuid, context: library('analytics-go', '1.2.0') },
    rename: asTraits,
    batch: { path: '/v1/import', fields: { messageId: uuid } },
  },
  'the Go library, version 2': {
    time: '2026-01-15T09:30:00.000Z',
    types: FIVE,
    headers: goHeaders('2.0.0'),
    fields: { timestamp: '2026-01-15T10:30:00+0100', messageId: uuid },
    batch: {
      path: '/v1/batch',
      fields: { messageId: uuid, sentAt: '2026-01-15T10:30:01+0100', context: library('analytics-go', '2.0.0') },
    },
  },
  'the Go library, version 3': {
    headers: goHeaders('3.3.0'),
    fields: { timestamp: '2026-01-15T10:30:00.123456789+01:00', messageId: uuid },
    batch: {
      path: '/v1/batch',
      fields: { messageId: uuid, sentAt: '2026-01-15T10:30:01.5+01:00', context: library('analytics-go', '3.3.0') },
    },
  },
  'a browser': {
    headers: { 'content-type': 'text/plain', origin: 'https://shop.example' },
    fields: {
      timestamp: TIME,
      sentAt: '2026-01-15T09:30:01.000Z',
      messageId: `ajs-next-${uuid}`,
      anonymousId: 'anonymous-1',
      writeKey: WRITE_KEY,
      integrations: {},
      context: { page: { path: '/' }, userAgent: 'Mozilla/5.0', ...library('analytics.js', 'npm:next-1.70.0') },
      _metadata: { bundled: [], unbundled: [], bundledIds: [] },
    },
  },
  'a browser that collects batches': {
    headers: { 'content-type': 'text/plain;charset=UTF-8', origin: 'https://shop.example' },
    fields: {
      timestamp: TIME,
      messageId: `ajs-next-${uuid}`,
      anonymousId: 'anonymous-1',
      integrations: {},
      context: library('analytics.js', 'npm:next-1.70.0'),
    },
    batch: { path: '/v1/b', fields: { writeKey: WRITE_KEY, sentAt: '2026-01-15T09:30:01.000Z' } },
  },
  'a Python library': {
    headers: { authorization: basic, 'content-type': 'application/json', 'user-agent': 'analytics-python/2.3.2' },
    fields: {
      timestamp: '2026-01-15T09:30:00.123456+00:00',
      messageId: uuid,
      anonymousId: null,
      integrations: {},
      context: library('analytics-python', '2.3.2'),
    },
    batch: { path: '/v1/batch', fields: { sentAt: '2026-01-15T09:30:01.123456+00:00', writeKey: WRITE_KEY } },
  },
}

function goHeaders(version: string): Record<string, string> {
  return {
    authorization: basic,
    'content-type': 'application/json',
    'user-agent': `analytics-go (version: ${version})`,
    'accept-encoding': 'gzip',
  }
}

function asTraits(type: CallType, call: object): object {
  if (type !== 'page' || !('properties' in call)) return call
  const { properties, ...rest } = call
  return { ...rest, traits: properties }
}

function overWire({ types = SIX, time = TIME, headers, fields, rename = (_type, call) => call, batch }: Wire): Client {
  const post = async (url: string, body: object, accepted: number) => {
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
    const answer = (await response.json()) as { readonly accepted?: number }
    if (response.status !== 200 || answer.accepted !== accepted) throw new Error(JSON.stringify(answer))
    if (response.headers.get('access-control-allow-origin') !== '*') throw new Error('A page may not read the answer.')
  }
  return {
    types,
    time,
    async run(collector) {
      const calls = types.map((type) => ({ ...fields, type, ...rename(type, CALLS[type]) }))
      if (batch === undefined) {
        for (const call of calls) await post(`${collector}/v1/${call.type[0]}`, call, 1)
      } else await post(`${collector}${batch.path}`, { ...batch.fields, batch: calls }, calls.length)
    },
  }
}

const ours: Client = {
  types: SIX,
  async run(collector) {
    const errors: unknown[] = []
    const client = createClient(WRITE_KEY, {
      endpoint: `${collector}/v1/batch`,
      onError: (error) => errors.push(error),
    })
    for (const type of SIX) client[type]({ ...CALLS[type], timestamp: TIME } as never)
    await client.close()
    if (errors.length > 0) throw errors[0]
  },
}

const analyticsNode: Client = {
  types: SIX,
  async run(collector) {
    const errors: unknown[] = []
    const { origin, pathname } = new URL(collector)
    const client = new Analytics({ writeKey: WRITE_KEY, host: origin, path: `${pathname}/v1/batch` })
    client.on('error', (error) => errors.push(error))
    for (const type of SIX) client[type]({ ...CALLS[type], timestamp: new Date(TIME) } as never)
    await client.closeAndFlush()
    if (errors.length > 0) throw errors[0]
  },
}

const clients: Readonly<Record<string, Client>> = {
  hookline: ours,
  '@segment/analytics-node': analyticsNode,
  ...Object.fromEntries(Object.entries(WIRES).map(([name, wire]) => [name, overWire(wire)])),
}

const ALIAS = { 'User ID': 'user-1', 'Previous ID': 'anonymous-1', userId: 'user-1' }

const UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const frameworks = hosts.filter(({ name }) => ['Express 5', 'Koa 3', 'Fastify 5'].includes(name))
const pairs = Object.entries(clients).flatMap(([client, given], index) =>
  // Each client, and each framework, in turn; ours on each of them.
  frameworks
    .filter((_, at) => client === 'hookline' || at === index % 3)
    .map((host) => ({ client, framework: host.name, given, host })),
)

/** Everything between a client and a handler. */
async function startPath(host: Host) {
  const serve = async (endpoint: Endpoint): Promise<string> => {
    const { port, close } = await host.start(endpoint, 'nothing')
    onTestFinished(close)
    return `http://127.0.0.1:${port}/webhooks`
  }
  const handled: Message[] = []
  const receiver = createReceiver({ secret: 'secret' })
  receiver.on('*', (message) => void handled.push(message))
  const destination = createDestination({ webhooks: [{ url: await serve(receiver) }], sharedSecret: 'secret' })
  onTestFinished(() => void destination.close({ graceMs: 0 }))
  const collector = createCollector({
    sources: [{ name: 'shop', kind: 'web', writeKey: WRITE_KEY, destinations: [destination] }],
  })
  return { collector, url: await serve(collector), destination, handled }
}

test.each(pairs)('what $client sends arrives on $framework', async ({ given: { types, time = TIME, run }, host }) => {
  const { url, collector, destination, handled } = await startPath(host)

  await run(url)
  expect(await collector.delete('user-1')).toEqual([{ source: 'shop', queued: 1 }])
  await destination.close()

  expect(handled.map(({ type }) => type).sort()).toEqual([...types, 'delete'].sort())
  for (const message of handled) {
    if (message.type === 'delete') {
      expect(message).toEqual({ type: 'delete', userId: 'user-1', timestamp: expect.stringMatching(UTC) })
    } else {
      expect(message).toMatchObject({
        version: 1,
        timestamp: time,
        ...(message.type === 'alias' ? ALIAS : CALLS[message.type]),
      })
      expect(message.context).toMatchObject({ ip: '127.0.0.1', library: { name: expect.any(String) } })
    }
    expect(JSON.stringify(message)).not.toContain('the-key')
  }
})
