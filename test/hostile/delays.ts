/** How long a stranger, or what a stranger sent, keeps the event loop busy: each attack alone, in this process. */

import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as wait } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { createReceiver, type Receiver, sign } from 'hookline'
import { createCollector } from 'hookline/collector'
import { createInspector } from 'hookline/inspector'
import { serve } from 'hookline/node'
import { memoryQueue } from 'hookline/queues/memory'
import { explainSignature } from 'hookline/testing'
import { z } from 'zod'
import { basic, recorder, request, writeKey } from '../support/collect.ts'

const secret = 'a shared secret'
const SIZE = 500_000

/** Members of an object, 500 KB of them, that take long to parse, to walk or to scan. */
const SHAPES: Readonly<Record<string, string>> = {
  'nested lists': `"a":${'['.repeat(SIZE / 2)}${']'.repeat(SIZE / 2)}`,
  'nested objects': `"a":${'{"a":'.repeat(SIZE / 6)}1${'}'.repeat(SIZE / 6)}`,
  'empty lists': `"a":[${'[],'.repeat(SIZE / 3)}1]`,
  'keys of one object': Array.from({ length: SIZE / 11 }, (_, index) => `"k${index}":1`).join(),
  'equal keys': `${'"a":1,'.repeat(SIZE / 6)}"a":1`,
  'escaped keys': `${'"\\u0061":1,'.repeat(SIZE / 12)}"a":1`,
  'escaped quotes': `"a":"${'\\"'.repeat(SIZE / 2)}"`,
  'white space': `"a":${' '.repeat(SIZE)}1`,
  'white space behind keys': `"a"${' '.repeat(SIZE)}:1`,
}

/** Bodies with what makes a parser look for keys that could reach a prototype. */
const bodiesWith = (members: string): Record<string, Buffer> =>
  Object.fromEntries(
    Object.entries(SHAPES).map(([name, shape]) => [name, Buffer.from(`{"proto":1,${shape},${members}}`)]),
  )

const create = () => {
  const receiver = createReceiver({ secret, onError() {} })
  const collector = createCollector({
    sources: [{ name: 'shop', writeKey, destinations: [recorder()] }],
    onError() {},
  })
  const inspector = createInspector({ receiver, collector, token: 't'.repeat(32) })
  const collect = (body: Buffer, headers = {}, path = '/v1/batch') =>
    collector.handle(request(path, body, { headers: { 'content-type': 'application/json', ...headers } }))
  return { receiver, inspector, collect }
}

/** Messages of 480 KB in each state that they are stored in. */
async function storeLarge() {
  const filler = `[${Array(33_000).fill('{"a":1,"b":22}').join(',')}]`
  async function store(fate: 'waits' | 'failed' | 'handled'): Promise<Receiver> {
    const queue = memoryQueue({ name: fate })
    if (fate === 'waits') void queue.pause()
    const inbox = { queue, retries: [], history: { maxAgeMs: 3_600_000 } }
    const receiver = createReceiver({ secret, inbox, onError() {} }).on('track', () => {
      if (fate === 'failed') throw new Error('no')
    })
    receiver.start()
    for (let index = 0; index < 30; index += 1) {
      const fields = `"type":"track","event":"Sold","userId":"user-${index}","messageId":"${index}"`
      const body = Buffer.from(`{${fields},"properties":{"list":${filler}}}`)
      await receiver.receive(body, { 'x-signature': sign(body, secret) })
      await wait(1)
    }
    return receiver
  }
  return { waits: await store('waits'), failed: await store('failed'), handled: await store('handled') }
}

let large: ReturnType<typeof storeLarge> | undefined
let users = 0
const nextUser = (): string => `user-${users++}`

const STORED: Readonly<Record<string, (stored: Awaited<ReturnType<typeof storeLarge>>) => Promise<unknown>>> = {
  'a user is forgotten': ({ waits }) => waits.forget(nextUser()),
  'ten users are forgotten at once': ({ waits }) =>
    Promise.all(Array.from({ length: 10 }, (_, index) => waits.forget(`nobody-${index}`))),
  'dead letters of a type are listed': ({ failed }) => failed.deadLetters({ type: 'track', limit: 10 }),
  'a redrive is counted': ({ failed }) => failed.redrive({ type: 'track' }, { dryRun: true }),
  'dead letters of a user are dropped': ({ failed }) => failed.drop({ type: 'track', userId: nextUser() }),
  'a replay is counted': ({ handled }) => handled.replay({ dryRun: true, type: 'track' }),
  async 'the history is listed'({ handled }) {
    for await (const _ of handled.history({ type: 'track' }));
  },
}

/** Prepares an attack, and returns what is measured. */
type Prepare = () => Promise<() => unknown> | (() => unknown)

const ATTACKS: Readonly<Record<string, Prepare>> = {
  ...mapped(bodiesWith('"writeKey":"a guess"'), 'a collector, a wrong key', (body) => () => {
    const { collect } = create()
    const compressed = gzipSync(body)
    return () => collect(compressed, { 'content-encoding': 'gzip' })
  }),
  ...mapped(bodiesWith('"batch":[]'), 'a collector, the right key', (body) => () => {
    const { collect } = create()
    return () => collect(body, { authorization: basic(writeKey) })
  }),
  ...mapped(bodiesWith('"type":"track"'), 'a receiver, a forged signature', (body) => () => {
    const { receiver } = create()
    return () => receiver.receive(body, { 'x-signature': sign(body, 'another') })
  }),
  ...mapped(bodiesWith('"type":"track"'), 'a receiver, the right signature', (body) => () => {
    const { receiver } = create()
    return () => receiver.receive(body, { 'x-signature': sign(body, secret) })
  }),
  'an inspector forgets a user of 2000 honest batches': async () => {
    const { inspector, collect } = create()
    const batch = Array.from({ length: 40 }, (_, index) => ({ type: 'track', event: 'Sold', userId: `user-${index}` }))
    const body = Buffer.from(JSON.stringify({ batch, text: 'é\n'.repeat(3_000) }))
    for (let index = 0; index < 2_000; index += 1) await collect(body, { authorization: basic(writeKey) })
    return () => inspector.forget('user-1')
  },
  'an inspector forgets a user of hostile requests': async () => {
    const { inspector, collect, receiver } = create()
    for (const body of Object.values(bodiesWith('"userId":"user-1","a":"\\u0061"'))) {
      for (let index = 0; index < 10; index += 1) {
        await receiver.receive(body, { 'x-signature': sign(body, 'another') })
        await collect(body, { authorization: basic(writeKey) })
      }
    }
    return () => inspector.forget('user-1')
  },
  'a message arrives while 1000 users are forgotten': async () => {
    const { inspector, receiver } = create()
    const { promise, resolve } = Promise.withResolvers<void>()
    receiver.on('track', () => promise)
    const body = Buffer.from(JSON.stringify({ type: 'track', event: 'Sold', userId: 'u', text: 'x'.repeat(16_000) }))
    const received = receiver.receive(body, { 'x-signature': sign(body, secret) })
    for (let index = 0; index < 1_000; index += 1) inspector.forget(`user-${index}`)
    return () => {
      resolve()
      return received
    }
  },
  'a page is opened on 2000 collected batches': async () => {
    const { inspector, collect } = create()
    const calls = Array.from({ length: 100 }, () => ({
      type: 'track',
      event: 'Sold',
      userId: 'u',
      name: 'é'.repeat(50),
    }))
    const body = Buffer.from(JSON.stringify({ batch: calls }))
    for (let index = 0; index < 2_000; index += 1) await collect(body, { authorization: basic(writeKey) })
    return async () => {
      const url = new URL('api/stream', await inspector.listen({ port: 0 }))
      const answer = await fetch(url, { headers: { 'x-hookline-inspector': 't'.repeat(32) } })
      if (answer.status !== 200) throw new Error(`The stream was answered ${answer.status}.`)
      for await (const chunk of answer.body ?? []) if (Buffer.from(chunk).includes('rows')) break
      await inspector.close()
    }
  },
  'a signature for `listen` to explain': () => {
    const parts = [32, 40, 56, 64, 96, 128].map((digits) => 'ab'.repeat(digits / 2))
    const signature = ['t=1492774577', ...parts, ...Array(15).fill('ab'.repeat(16))].join(',').slice(0, 987)
    const body = Buffer.from(`{"type":"track","event":"${'x'.repeat(40)}"}`)
    return () => explainSignature(body, signature, secret, { maxBytes: 3_000_000 })
  },
  ...mapped(STORED, 'stored', (run) => async () => {
    large ??= storeLarge()
    const stored = await large
    return () => run(stored)
  }),
  'an inspector watches refused calls whose ids are trees': () => {
    const { collect } = create()
    const tree = Array(3_000).fill([[]])
    const body = Buffer.from(JSON.stringify({ type: 'track', event: 'Sold', userId: tree, anonymousId: { a: tree } }))
    return async () => {
      for (let index = 0; index < 200; index += 1) {
        await collect(body, { authorization: basic(writeKey) }, '/v1/track')
        await wait(0)
      }
    }
  },
  'a body that arrives byte by byte': () => {
    const { receiver } = create()
    const receive = serve(receiver, { path: '/' })
    return async () => {
      const server = createServer(receive).listen(0, '127.0.0.1')
      await once(server, 'listening')
      const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').setNoDelay()
      socket.write(`POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 20000\r\nx-signature: ${'0'.repeat(40)}\r\n\r\n`)
      for (let index = 0; index < 20_000; index += 1) {
        socket.write(' ')
        if (index % 50 === 0) await wait(0)
      }
      await once(socket, 'data')
      socket.destroy()
      server.close()
    }
  },
  'a record keyed by e-mail, under a schema': () => {
    const records = z.object({ owners: z.record(z.email(), z.number()) })
    const receiver = createReceiver({ secret, events: { Sold: records }, onError() {} }).on('track', 'Sold', () => {})
    const owners = Object.fromEntries(Array.from({ length: 8_000 }, (_, index) => [`jane.${index}@shop.example`, 'no']))
    const message = { type: 'track', userId: 'u', event: 'Sold', properties: { owners } }
    const body = Buffer.from(JSON.stringify(message))
    return () => receiver.receive(body, { 'x-signature': sign(body, secret) })
  },
  '10 000 sources that do not exist': () => {
    const secrets = () => wait(100, undefined, { ref: false })
    const source = ({ path }: { readonly path: string }) => path
    const receiver = createReceiver({ secret: { source, secrets }, onError() {} })
    const body = Buffer.from('{}')
    const headers = { 'x-signature': sign(body, 'a guess') }
    return async () => {
      for (let index = 0; index < 10_000; index += 1) {
        void receiver.receive(body, headers, { path: `/${index}` })
        if (index % 100 === 0) await wait(1)
      }
    }
  },
}

function mapped<Value>(values: Readonly<Record<string, Value>>, what: string, prepare: (value: Value) => Prepare) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [`${what}: ${name}`, prepare(value)]))
}

/**
 * Measures the longest delay of each attack, in milliseconds: the least of four turns. The first one compiles the code, and what
 * else runs on the machine adds to each.
 */
export async function measureDelays(): Promise<Map<string, number>> {
  const delays = new Map<string, number>()
  for (const [name, prepare] of Object.entries(ATTACKS)) {
    for (let turn = 0; turn < 4; turn += 1) {
      const attack = await prepare()
      const histogram = monitorEventLoopDelay({ resolution: 1 })
      histogram.enable()
      await wait(5)
      await attack()
      await wait(5)
      histogram.disable()
      delays.set(name, Math.min(histogram.max / 1e6, delays.get(name) ?? Infinity))
    }
  }
  return delays
}
