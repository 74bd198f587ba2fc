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
  const collect = (body: Buffer, headers: object) =>
    collector.handle(request('/v1/batch', body, { headers: { 'content-type': 'application/json', ...headers } }))
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
  ...mapped(STORED, 'stored', (run) => async () => {
    large ??= storeLarge()
    const stored = await large
    return () => run(stored)
  }),
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
