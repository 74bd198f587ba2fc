/** How long a stranger, or what a stranger sent, keeps the event loop busy: each attack alone, in this process. */

import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as wait } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { createReceiver, sign } from 'hookline'
import { createCollector } from 'hookline/collector'
import { createInspector } from 'hookline/inspector'
import { createReasons } from '../../src/cli/requests/listen/reasons.ts'
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
  const collect = (body: Buffer, headers = {}) =>
    collector.handle(request('/v1/batch', body, { headers: { 'content-type': 'application/json', ...headers } }))
  return { receiver, inspector, collect }
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
      const headers = { ...local.headers, 'x-hookline-inspector': 't'.repeat(32) }
      const answer = await inspector.handle({ ...request('/api/stream', ''), ...local, method: 'GET', headers })
      if (answer?.status !== 200) throw new Error(`The stream was answered ${answer?.status}.`)
      for await (const chunk of answer.body as AsyncIterable<unknown>) if (String(chunk).includes('rows')) break
    }
  },
  'five signatures for `listen` to explain': () => {
    const reasons = createReasons(secret)
    const parts = [32, 40, 56, 64, 96, 128].map((digits) => 'ab'.repeat(digits / 2))
    const signature = ['t=1492774577', ...parts, ...Array(15).fill('ab'.repeat(16))].join(',').slice(0, 987)
    const body = Buffer.from(`{"type":"track","event":"${'x'.repeat(40)}"}`)
    return async () => {
      await Promise.all(Array.from({ length: 5 }, (_, index) => reasons.find(`${index}`, body, signature)))
      await reasons.close()
    }
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

const local = { remoteAddress: '127.0.0.1', headers: { host: 'localhost:3000' } }

function mapped<Value>(values: Readonly<Record<string, Value>>, what: string, prepare: (value: Value) => Prepare) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [`${what}: ${name}`, prepare(value)]))
}

/**
 * Measures the longest delay of each attack, in milliseconds: the least of four turns. The first one compiles the code, and what
 * else runs on the machine adds to each.
 */
export async function measureDelays(): Promise<Map<string, number>> {
  const delays = new Map<string, number>()
  const staying = setInterval(() => {}, 1_000) // The thread that explains does not keep the process.
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
  clearInterval(staying)
  return delays
}
