/** The options of a receiver: each mistake is a TypeError that names the option, and shows no secret. */

import { expect, it } from 'vitest'
import { createReceiver, type Receiver } from '../../src/index.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { memoryDedupe } from '../../src/receive/memory-dedupe.ts'
import { fixtures } from '../../src/testing.ts'
import { deliver, refusing, setUp } from '../support/receive.ts'

const { log: _, ...withoutLog } = memoryQueue()
const queue = memoryQueue()
const store = memoryDedupe()
const call = () => ''
const history = (options: unknown) => ({ inbox: { queue, history: options } })
const header = (options: object) => ({ secret: undefined, header: { name: 'x-key', value: 'right', ...options } })

const mistakes: readonly (readonly [option: string, options: object | undefined])[] = [
  ['secret', { secret: undefined }],
  ['secret', { secret: '' }],
  ['secret', { secret: [] }],
  ['secret[1]', { secret: ['good', ''] }],
  ['secret', { secret: Promise.resolve('still to come') }],
  ['secret.sauce', { secret: { source: call, secrets: call, sauce: 5 } }],
  ['secret.source', { secret: { secrets: call } }],
  ['secret.secrets', { secret: { source: call, secrets: 'shop' } }],
  ['secert', { secert: 's' }],
  ['allowUnsigned', { allowUnsigned: true }],
  ['allowUnsigned', { allowUnsigned: 'yes' }],
  ['header', { header: { name: 'x-key', value: 'right' } }],
  ['header', { ...header({}), allowUnsigned: true }],
  ['header', { secret: undefined, header: 'x-key' }],
  ['header.name', header({ name: 'x-key:' })],
  ['header.value', header({ value: { source: call, secrets: call } })],
  ['header.value[1]', header({ value: ['a', ''] })],
  ['methods', { methods: [] }],
  ['methods[1]', { methods: ['POST', 'GET'] }],
  ['limit', { limit: 0 }],
  ['deadlineMs', { deadlineMs: 0 }],
  ['batches', { batches: 'signed' }],
  ['batchLimit', { batchLimit: 0 }],
  ['clock.setTimeout', { clock: { now: () => 0, monotonic: () => 0 } }],
  ['custom', { custom: {} }],
  ['events', { events: refusing }],
  ["events['Signup']", { events: { Signup: { parse: call } } }],
  ['traits', { traits: null }],
  ["traits['identify']", { traits: { identify: {} } }],
  ['traits.track', { traits: { track: {} } }],
  ['onRejected', { onRejected: 'log' }],
  ['onRejected', { inbox: queue, onRejected: call }],
  ['onError', { onError: {} }],
  ['onDeadLetter', { inbox: queue, onDeadLetter: 'page me' }],
  ['onDeadLetter', { onDeadLetter: call }],
  ['onUnplanned', { events: {}, onUnplanned: 'log' }],
  ['onUnplanned', { onUnplanned: call }],
  ['strictEvents', { events: {}, strictEvents: 'yes' }],
  ['strictEvents', { strictEvents: true }],
  ['logger.error', { logger: {} }],
  ['inbox', { inbox: {} }],
  ['inbox', { inbox: memoryQueue }],
  ['inbox.queue', { inbox: { queue: { push() {}, work() {} } } }],
  ['inbox.concurency', { inbox: { queue, concurency: 5 } }],
  ['inbox.concurrency', { inbox: { queue, concurrency: 0 } }],
  ['inbox.timeoutMs', { inbox: { queue, timeoutMs: 0 } }],
  ['inbox.random', { inbox: { queue, random: 0.5 } }],
  ['inbox.maxPerSecond', { inbox: { queue, maxPerSecond: 0 } }],
  ['inbox.retries', { inbox: { queue, retries: 5 } }],
  ['inbox.retries[1]', { inbox: { queue, retries: [5, -1] } }],
  ['inbox.key', { inbox: { queue, key: 'messageId' } }],
  ['inbox.transactional', { inbox: { queue, transactional: true } }],
  ['inbox.groupBy', { inbox: { queue, groupBy: 'userId' } }],
  ['inbox.groupBy', { inbox: { queue: { ...queue, hasGroups: false }, groupBy: call } }],
  ['inbox.history.maxAgeMs', history({ maxAgeMs: 0 })],
  ['inbox.history.maxBytes', history({ maxAgeMs: 1, maxBytes: 0 })],
  ['inbox.history', history(7)],
  ['inbox.history', { inbox: { queue: withoutLog, history: { maxAgeMs: 1 } } }],
  ['dedupe', { inbox: queue, dedupe: store }],
  ['dedupe', { dedupe: { claim() {} } }],
  ['dedupe.store', { dedupe: { store: memoryDedupe } }],
  ['dedupe.keys', { dedupe: { store, keys: call } }],
  ['dedupe.key', { dedupe: { store, key: 'messageId' } }],
]

it.each(mistakes)('a receiver refuses %s: %j', (option, options) => {
  const create = () => createReceiver({ secret: 'hunter2', ...options } as never)
  expect(create).toThrow(TypeError)
  expect(create).toThrow(`\`${option}`)
  expect(create).not.toThrow('hunter2')
})

it.each([undefined, 'secret'])('a receiver refuses options that are none: %s', (options) => {
  expect(() => createReceiver(options as never)).toThrow(TypeError)
})

it.each([
  ['inbox.key', () => setUp({ inbox: { queue: memoryQueue(), key: () => 5 as never } })],
  ['dedupe.key', () => setUp({ dedupe: { store: memoryDedupe(), key: () => 5 as never } })],
  ['inbox.groupBy', () => setUp({ inbox: { queue: memoryQueue(), groupBy: () => 5 as never } })],
])('%s that returns no text is the cause of a 500', async (name, create) => {
  const { receiver, errors } = create()

  expect(await deliver(receiver, fixtures.track)).toMatchObject({ status: 500, error: { code: 'internal' } })

  expect(errors[0]?.cause).toBeInstanceOf(TypeError)
  expect(String(errors[0]?.cause)).toContain(`\`${name}()\``)
})

type Call = (receiver: Receiver) => unknown
const each = <T>(argument: string, values: readonly T[], call: (receiver: Receiver, value: never) => unknown) =>
  values.map((value): readonly [string, Call] => [argument, (receiver) => call(receiver, value as never)])

/** Every filter that both have, and what only one of them takes. */
const filters: readonly (readonly [option: string, filter: object])[] = [
  ['evnt', { evnt: 'x' }],
  ['since', { since: 'yesterday' }],
  ['until', { since: new Date(2), until: new Date(1) }],
  ['type', { type: 'tracks' }],
  ['event', { type: 'page', event: 'Order Completed' }],
  ['userId', { userId: 7 }],
  ['where', { where: {} }],
  ['limit', { limit: 0 }],
  ['handler', { handler: '' }],
  ['after', { after: 'x' }],
  ['ids', { ids: [] }],
  ['ids', { ids: ['1'] }],
  ['signal', { signal: {} }],
]
const replays: readonly (readonly [option: string, options: object])[] = [
  ['id', { id: 'fix 42' }],
  ['id', { id: 'x'.repeat(101) }],
  ['handlers', { handlers: ['crn'] }],
  ['handlers', { handlers: [''] }],
  ['maxPerSecond', { maxPerSecond: 0 }],
  ['dryRun', { dryRun: 'yes' }],
  ['onProgress', { onProgress: 'log' }],
]
const bytes = Buffer.from('{}')

it.each<readonly [argument: string, call: Call]>([
  ...each('receive: bytes', ['{}', {}], (receiver, value) => receiver.receive(value, {})),
  ...each('receive: headers', [undefined, 'x'], (receiver, value) => receiver.receive(bytes, value)),
  ...each('path', [{ path: '' }, { path: 5 }], (receiver, value) => receiver.receive(bytes, {}, value)),
  ...each('query', [{ query: 5 }], (receiver, value) => receiver.receive(bytes, {}, value)),
  ...each('paht', [{ paht: '/' }], (receiver, value) => receiver.receive(bytes, {}, value)),
  ...each('graceMs', [{ graceMs: -1 }, { graceMs: 1.5 }], (receiver, value) => receiver.close(value)),
  ...each('grace', [{ grace: 5 }], (receiver, value) => receiver.close(value)),
  ...each('answerd', [{ answerd() {} }], (receiver, value) => receiver.observe(value)),
  ...each('observe: answered', [{ answered: 'yes' }], (receiver, value) => receiver.observe(value)),
  ...each('on: name', ['', 'CRM', '-crm', 'a b', 'x'.repeat(65), 5], (receiver, name) => {
    return receiver.on('track', () => {}, { name })
  }),
  ...each('onAudience: handlers', [{}], (receiver, value) => receiver.onAudience('Trial Users', value)),
  ...each('onAudience: entered', [{ entered: 'yes' }], (receiver, value) => receiver.onAudience('Trial Users', value)),
  ...each('source', [{ source: '' }, { source: 5 }], (receiver, value) => receiver.forget('ada', value)),
  ...each('sauce', [{ sauce: 'shop' }], (receiver, value) => receiver.forget('ada', value)),
  ...each('suppressForMs', [{ suppressForMs: -1 }, { suppressForMs: '1' }], (receiver, value) => {
    return receiver.forget('ada', value)
  }),
  ...each('work', [{}], (receiver, value) => receiver.work(value)),
  ...each('work: forMs', [{ forMs: 0 }], (receiver, value) => receiver.work(value)),
  ...each('work: until', [{ until: 'late' }], (receiver, value) => receiver.work(value)),
  ...each('work: signal', [{ forMs: 1, signal: 5 }], (receiver, value) => receiver.work(value)),
  ...each('for', [{ for: 1 }], (receiver, value) => receiver.work(value)),
  ...each('drop', [{}, { userId: undefined }, { olderThan: undefined }], (receiver, value) => receiver.drop(value)),
  ...each('drop: reason', [{ reason: null }], (receiver, value) => receiver.drop(value)),
  ...each('reasons', [{ reasons: 'unreadable' }], (receiver, value) => receiver.drop(value)),
  ...filters.map(([option, filter]): [string, Call] => [
    option,
    (receiver) => receiver.history(filter)[Symbol.asyncIterator]().next(),
  ]),
  ...[...filters, ...replays].map(([option, options]): [string, Call] => {
    return [option, (receiver) => receiver.replay({ id: 'fix-42', ...options })]
  }),
])('a receiver refuses an argument, `%s`, and stays open (%#)', async (argument, call) => {
  const { receiver } = setUp({ inbox: { queue: memoryQueue(), history: { maxAgeMs: 1 } } })
  receiver.on('track', () => {}, { name: 'crm' })
  const called = async () => call(receiver)

  await expect(called()).rejects.toThrow(TypeError)
  await expect(called()).rejects.toThrow(new RegExp(`^\`?([a-z]+: )?${argument}\\b`))

  expect(await deliver(receiver, fixtures.track)).toMatchObject({ status: 200 })
})

it.each<readonly [method: string, call: Call]>([
  ['start', (receiver) => receiver.start()],
  ['onBatch', (receiver) => receiver.onBatch('*', () => {})],
  ['pause', (receiver) => receiver.pause()],
  ['resume', (receiver) => receiver.resume()],
  ['work', (receiver) => receiver.work({ forMs: 1 })],
  ['deadLetters', (receiver) => receiver.deadLetters()],
  ['redrive', (receiver) => receiver.redrive('all')],
  ['drop', (receiver) => receiver.drop('all')],
  ['forget', (receiver) => receiver.forget('ada')],
  ['history', (receiver) => receiver.history()[Symbol.asyncIterator]().next()],
  ['replay', (receiver) => receiver.replay()],
])('a receiver without an inbox refuses `%s`', async (method, call) => {
  const { receiver } = setUp()

  await expect((async () => call(receiver))()).rejects.toThrow(new RegExp(`^\`${method}\``))
})
