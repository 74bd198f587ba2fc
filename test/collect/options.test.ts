/** The options of clients and collectors, and the arguments of their methods: each mistake is a TypeError that names it. */

import { expect, it } from 'vitest'
import { type ClientOptions, createClient } from '../../src/client.ts'
import { readOptions } from '../../src/collect/client-options.ts'
import type { Collector } from '../../src/collect/collector-types.ts'
import { createCollector } from '../../src/collect/create-collector.ts'
import { systemClock } from '../../src/kit/clock.ts'
import { createCertificate } from '../../src/testing/certificates.ts'
import { recorder, setUpCollector } from '../support/collect.ts'
import { watchWarnings } from '../support/receive.ts'
import { expectRefusal } from '../support/refusal.ts'
import { ENDPOINT } from './dispatcher.ts'

const dispatcher = { dispatch: () => true }
const { ca } = createCertificate('private_ca')

it.each([undefined, '', 7, null, 'write:key'])('a client refuses the write key %j', async (writeKey) => {
  await expectRefusal(() => createClient(writeKey as string, { endpoint: ENDPOINT }), '`writeKey`')
})

it.each<[option: string, options: object | undefined]>([
  ['createClient: options', undefined],
  ['flushInterval', { flushInterval: 1 }],
  ['endpoint', { endpoint: undefined }],
  ['endpoint', { endpoint: 'example.com/v1/batch' }],
  ['endpoint', { endpoint: 'https://user:t0ken@example.com/?token=t0ken' }],
  ['size', { size: 1, flushAt: 2 }],
  ['flushAt', { flushAt: 3, maxQueued: 2 }],
  ['flushAfterMs', { flushAfterMs: 0 }],
  ['maxQueued', { maxQueued: 0 }],
  ['maxQueuedBytes', { maxQueuedBytes: 32 * 1024 - 1 }],
  ['whenFull', { whenFull: 'drop' }],
  ['maxRetries', { maxRetries: -1 }],
  ['maxInFlight', { maxInFlight: 0 }],
  ['timeoutMs', { timeoutMs: 0 }],
  ['onError', { onError: 'log' }],
  ['logger.error', { logger: {} }],
  ['random', { random: 0.5 }],
  ['dispatcher', { dispatcher: {} }],
  ['dispatcher', { dispatcher, ca }],
  ['ca', { ca: './ca.pem' }],
  ['clock.now', { clock: {} }],
])('a client refuses a wrong `%s`, and shows no token of a URL: %j', async (option, options) => {
  const given = options && { endpoint: ENDPOINT, ...options }
  await expectRefusal(() => createClient('write-key', given as never), `\`${option}\``, /t0ken/)
})

it('the settings of a client are the documented defaults, or as given', () => {
  const least: Partial<ClientOptions> = {
    ...{ flushAt: 1, flushAfterMs: 1, maxQueued: 1, maxQueuedBytes: 32 * 1024, whenFull: 'drop_oldest', maxRetries: 0 },
    ...{ maxInFlight: 1, timeoutMs: 1, onError() {}, dispatcher, random: () => 0 },
  }
  expect(readOptions('k', { endpoint: ENDPOINT, ...least })).toMatchObject(least)
  expect(readOptions('k', { endpoint: ENDPOINT, maxQueued: 2 })).toMatchObject({ flushAt: 2 })
  expect(readOptions('k', { endpoint: ENDPOINT, size: 7, ca })).toEqual({
    ...{ authorization: 'Basic azo=', origin: 'https://analytics.example.com', path: '/v1/batch', flushAt: 7 },
    ...{ flushAfterMs: 5_000, maxQueued: 10_000, maxQueuedBytes: 32 * 1024 ** 2, whenFull: 'throw', maxRetries: 10 },
    ...{ maxInFlight: 4, timeoutMs: 10_000, log: expect.any(Object), ca: [ca] },
    ...{ clock: systemClock, random: Math.random },
  })
})

it('a write key that looks as if it was read wrongly is a warning, which does not show it', () => {
  const warnings = watchWarnings()
  createClient(' s3cret', { endpoint: ENDPOINT })
  createCollector({ sources: [app, { ...shop, writeKey: '"s3cret"' }] })
  const texts = [/^`writeKey` (?!.*s3cret)/, /^`sources\[1\]\.writeKey` (?!.*s3cret)/]
  const code = 'HOOKLINE_SECRET'
  expect(warnings.mock.calls).toEqual(texts.map((text) => [expect.stringMatching(text), { code }]))
})

const destination = recorder()
const shop = { name: 'shop', writeKey: 'hunter2', destinations: [destination] }
const app = { name: 'app', writeKey: 'key 2', destinations: [destination] }

it.each<[option: string, options: object | undefined]>([
  ['createCollector: options', undefined],
  ['source', { source: [] }],
  ['sources', { sources: shop }],
  ['sources[1]', { sources: [shop, null] }],
  ['sources[0].name', { sources: [{ ...shop, name: '' }] }],
  ['sources[1].name', { sources: [shop, { ...app, name: 'shop' }] }],
  ['sources[0].writeKey', { sources: [{ ...shop, writeKey: '' }] }],
  ['sources[0].writeKey', { sources: [{ ...shop, writeKey: 'hunter2:' }] }],
  ['sources[1].writeKey', { sources: [shop, { ...app, writeKey: 'hunter2' }] }],
  ['sources[0].writekey', { sources: [{ ...shop, writekey: 'x' }] }],
  ['sources[0].kind', { sources: [{ ...shop, kind: 'sever' }] }],
  ['sources[0].destinations', { sources: [{ ...shop, destinations: destination }] }],
  ['sources[0].destinations[1]', { sources: [{ ...shop, destinations: [destination, {}] }] }],
  ['sources[0].destinations[1]', { sources: [{ ...shop, destinations: [destination, destination] }] }],
  ['ipHeader', { ipHeader: 'X-Real-IP:' }],
  ['deadlineMs', { deadlineMs: 0 }],
  ['onError', { onError: {} }],
  ['logger.error', { logger: {} }],
  ['clock.setTimeout', { clock: { now: () => 0, monotonic: () => 0 } }],
])('a collector refuses a wrong `%s`, and shows no write key: %j', async (option, options) => {
  const given = options && { sources: [shop], ...options }
  await expectRefusal(() => createCollector(given as never), `\`${option}\``, /hunter2/)
})

it.each<[argument: string, call: (collector: Collector) => unknown]>([
  ['userId', (collector) => collector.delete('')],
  ["'shop'", (collector) => collector.delete('u', { sources: ['shop', 'web'] })],
  ['`sources`', (collector) => collector.delete('u', { sources: [] })],
  ['`delete: options`', (collector) => collector.delete('u', null as never)],
  ['`source`', (collector) => collector.delete('u', { source: ['shop'] } as never)],
  ['`answer`', (collector) => collector.observe({ answer() {} } as never)],
  ['`observe: answered`', (collector) => collector.observe({ answered: {} } as never)],
])('a collector refuses an argument, %s, and queues nothing (%#)', async (argument, call) => {
  const { collector, destination: queued } = setUpCollector()
  await expectRefusal(() => call(collector), argument)
  expect(queued.messages).toEqual([])
})
