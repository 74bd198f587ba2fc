/** No public object leads to a secret, and nothing that a callback, an observer or a channel gets does. */

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createClient } from '../src/client.ts'
import { createCollector } from '../src/collector.ts'
import { bullmqQueue } from '../src/queues-bullmq.ts'
import { memoryQueue } from '../src/queues-memory.ts'
import { pgBossQueue } from '../src/queues-pg-boss.ts'
import { createReceiver } from '../src/receive/create-receiver.ts'
import { memoryDedupe } from '../src/receive/memory-dedupe.ts'
import type { ReceiverOptions } from '../src/receive/receiver-options.ts'
import { createDestination, createSender } from '../src/sender.ts'
import { fixtures } from '../src/testing/fixtures.ts'
import { startPlatform } from '../src/testing.ts'
import { createInspector } from '../tools/inspector/src/index.ts'
import { find } from './docs/names.ts'
import { hostRequest, watchWarnings } from './support/receive.ts'

const SECRET = 'tell-nobody-7f3a'

/**
 * Everything that is reached from a value as text: keys, symbols, prototypes, getters, entries, bytes, functions that a symbol names,
 * what a console and JSON show.
 */
function reached(root: unknown): string {
  const texts: string[] = []
  const seen = new Set<unknown>()
  const rest: unknown[] = [root]
  const read = (get: () => unknown): void => {
    try {
      rest.push(get())
    } catch (error) {
      rest.push(error)
    }
  }
  read(() => JSON.stringify(root)) // Of a cycle it throws.
  while (rest.length > 0) {
    const value = rest.pop()
    if (typeof value === 'string') texts.push(value)
    if (!isHolder(value) || seen.has(value) || BUILT_IN.has(value)) continue
    seen.add(value)
    if (ArrayBuffer.isView(value)) {
      texts.push(Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('latin1'))
      continue
    }
    if (value instanceof Map || value instanceof Set) rest.push(...[...value].flat())
    for (let owner: unknown = value; isHolder(owner) && !BUILT_IN.has(owner); owner = Object.getPrototypeOf(owner)) {
      for (const key of Reflect.ownKeys(owner)) {
        const { value: held, get } = Object.getOwnPropertyDescriptor(owner, key) ?? {}
        if (typeof key === 'string') texts.push(key)
        if (get === undefined) rest.push(held)
        else read(() => Reflect.apply(get, value, []))
        if (typeof key === 'symbol' && typeof held === 'function' && owner === value)
          read(() => Reflect.apply(held, value, []))
      }
    }
  }
  return [...texts, inspect(root, { showHidden: true, depth: 20, getters: true })].join('\n')
}

function isHolder(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

const BUILT_IN = new Set<unknown>([globalThis, process, Object.prototype, Function.prototype, Array.prototype])

/** Texts that a secret is found in: as it is, and as Basic authentication has it. */
const FORMS = [SECRET, Buffer.from(`${SECRET}:`).toString('base64').slice(0, 20)]

function expectNoSecret(found: Readonly<Record<string, unknown>>): void {
  const leading = Object.entries(found).filter(([, value]) => {
    const text = reached(value)
    return FORMS.some((form) => text.includes(form))
  })
  expect(leading.map(([name]) => name)).toEqual([])
}

const webhook = (url: string) => ({ url: `${url}?token=${SECRET}`, headers: { 'X-Team': SECRET } })
const silent = { onError: () => {} }

describe('no way leads to a secret from', () => {
  const sources = { source: () => 'shop', secrets: () => SECRET }
  const receivers: Readonly<Record<string, ReceiverOptions>> = {
    'one secret': { secret: SECRET },
    'a list': { secret: [SECRET, `${SECRET}2`] },
    'a provider': { secret: () => SECRET },
    sources: { secret: sources },
    'a header': { header: { name: 'authorization', value: SECRET } },
    'an inbox': { secret: SECRET, inbox: memoryQueue() },
    dedupe: { secret: SECRET, dedupe: memoryDedupe() },
  }
  it.each(Object.entries(receivers))('a receiver with %s', async (_which, options) => {
    const receiver = createReceiver({ ...options, ...silent })
    await receiver.handle(hostRequest({ headers: { 'content-type': 'application/json', authorization: SECRET } }))
    expectNoSecret({ receiver, health: await receiver.health() })
    await receiver.close()
  })

  it('what sends, collects, records and shows', async () => {
    const webhooks = [webhook('http://127.0.0.1:9/webhooks')]
    const sender = createSender({ webhooks, sharedSecret: SECRET })
    const destination = createDestination({ webhooks, sharedSecret: SECRET, queue: memoryQueue() })
    destination.update({ sharedSecret: SECRET })
    const collector = createCollector({ sources: [{ name: 'shop', writeKey: SECRET, destinations: [destination] }] })
    const client = createClient(SECRET, { endpoint: `http://127.0.0.1:9/v1/batch?token=${SECRET}` })
    const receiver = createReceiver({ secret: SECRET })
    const parts = { receiver, destinations: destination, collector, senders: sender }
    const { url: _url, ...inspector } = createInspector(parts)
    const health = await destination.health()
    expectNoSecret({ sender, destination, health, collector, client, inspector })
    await Promise.all([client.close(), destination.close(), receiver.close(), sender.close(), inspector.close()])
  })

  it('queues on servers, and what they say when these cannot be reached', async () => {
    const errors: unknown[] = []
    const onError = (error: unknown) => errors.push(error)
    const queues = [
      bullmqQueue({ name: 'orders', connection: `redis://:${SECRET}@127.0.0.1:9`, onError }),
      pgBossQueue({ name: 'orders', connectionString: `postgres://me:${SECRET}@127.0.0.1:9/x?a=${SECRET}`, onError }),
    ]
    const failures = await Promise.allSettled(queues.map((queue) => queue.counts()))
    expect(failures.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expectNoSecret({ queues, failures, errors })
    await Promise.allSettled(queues.map((queue) => queue.close({ graceMs: 0 })))
  })

  it('a platform', async () => {
    const options = { secret: SECRET, collector: silent, destination: { onAttempt: () => {} } }
    await using platform = await startPlatform({ to: webhook('http://127.0.0.1:9/webhooks'), ...options })
    await platform.destination.track({ userId: 'u', event: 'Order Completed' })
    expectNoSecret({ platform })
  })
})

it('no observer, callback, handler, line of the log or channel gets a secret', async () => {
  watchWarnings()
  const got: Record<string, unknown[]> = {}
  const keep =
    (name: string) =>
    (...args: readonly unknown[]): void => {
      got[name] ??= []
      got[name].push(...args)
    }
  const observer = (owner: string, names: readonly string[]) =>
    Object.fromEntries(names.map((name) => [name, keep(`${owner} ${name}`)]))
  const logger = (owner: string) => observer(`${owner} log`, ['debug', 'info', 'warn', 'error']) as never
  for (const name of find(/channel\('(hookline:\w+)'\)/g)) {
    const listen = keep(name)
    subscribe(name, listen)
    onTestFinished(() => void unsubscribe(name, listen))
  }

  const header = { name: 'authorization', value: [SECRET, `${SECRET}2`] }
  const told = {
    onError: keep('receiver onError'),
    onRejected: keep('receiver onRejected'),
    logger: logger('receiver'),
  }
  const receiver = createReceiver({ header, ...told })
  receiver.on('*', (...args) => {
    keep('handler')(...args)
    if (args[0].type === 'page') throw new Error('out of stock')
  })
  receiver.observe(observer('receiver', ['answered', 'stored', 'handled', 'ignored', 'failed']))
  const server = http.createServer((request, response) => void request.resume().on('end', () => response.end('thanks')))
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close().closeAllConnections())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks`

  const webhooks = [webhook(url), webhook('http://127.0.0.1:9/x')]
  const queue = memoryQueue()
  const destination = createDestination({
    webhooks,
    sharedSecret: SECRET,
    queue,
    onAttempt: keep('destination onAttempt'),
    onCircuit: keep('destination onCircuit'),
    onDeadLetter: keep('destination onDeadLetter'),
    logger: logger('destination'),
  })
  destination.observe(observer('destination', ['queued', 'skipped', 'attempted', 'circuit']))
  const sources = [{ name: 'shop', writeKey: SECRET, destinations: [destination] }]
  const collector = createCollector({ sources, onError: keep('collector onError'), logger: logger('collector') })
  collector.observe(observer('collector', ['answered']))
  const post = (writeKey: string, body: object) => {
    const bytes = Buffer.from(JSON.stringify(body))
    const authorization = `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}`
    const given = { 'content-type': 'application/json', authorization }
    return collector.handle(
      hostRequest({ path: '/v1/track', headers: given, readBody: () => ({ bytes, source: 'stream' }) }),
    )
  }

  const { version: _, ...track } = fixtures.track
  expect((await post(SECRET, track))?.status).toBe(200)
  expect((await post(`${SECRET}2`, track))?.status).toBe(401)
  await destination.page({ userId: 'u' })
  for (const [authorization, body] of [
    [SECRET, fixtures.track],
    [SECRET, fixtures.page],
    [SECRET, '{"type":"track"}'],
    [`${SECRET}3`, fixtures.track],
  ] as const) {
    const rawHeaders = ['Content-Type', 'application/json', 'Authorization', authorization]
    const given = { 'content-type': 'application/json', authorization }
    await receiver.handle(hostRequest({ headers: given, rawHeaders }, body))
  }
  await queue.drain()
  const sender = createSender({ webhooks, sharedSecret: SECRET })
  got.round = [await sender.send(fixtures.track)]

  const receivers = ['handler', 'receiver answered', 'receiver onError', 'receiver onRejected', 'round']
  const others = ['destination attempted', 'collector answered', 'collector onError', 'hookline:attempt']
  expect(Object.keys(got)).toEqual(expect.arrayContaining([...receivers, ...others]))
  expectNoSecret(got)
  await Promise.all([destination.close({ graceMs: 0 }), sender.close(), receiver.close()])
})
