/** The options of senders and destinations, and the arguments of their methods: each mistake is a TypeError that names it. */

import { expect, it } from 'vitest'
import { systemClock } from '../../src/kit/clock.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { createDestination } from '../../src/send/create-destination.ts'
import { createSender } from '../../src/send/create-sender.ts'
import { type DestinationOptions, readDestinationOptions } from '../../src/send/destination-options.ts'
import type { Destination } from '../../src/send/destination-types.ts'
import type { Sender } from '../../src/send/sender-types.ts'
import { createCertificate } from '../../src/testing/certificates.ts'
import { fixtures } from '../../src/testing.ts'
import { watchWarnings } from '../support/receive.ts'
import { expectRefusal } from '../support/refusal.ts'
import { openSender, setUp } from './set-up.ts'

const webhooks = [{ url: 'https://shop.example/' }]
const dispatcher = { dispatch() {} }
const { ca } = createCertificate('private_ca')

it.each<[option: string, options: object | undefined]>([
  ['createSender: options', undefined],
  ['secret', { secret: 's' }],
  ['sharedSecret', { sharedSecret: '' }],
  ['userAgent', { userAgent: 'Acme/2' }],
  ['timeoutMs', { timeoutMs: 5_001 }],
  ['addressTimeoutMs', { addressTimeoutMs: 9 }],
  ['allowPrivateAddresses', { allowPrivateAddresses: 'no' }],
  ['dispatcher', { dispatcher: {} }],
  ['dispatcher', { dispatcher, ca }],
  ['dispatcher', { dispatcher, allowPrivateAddresses: false }],
])('a sender refuses a wrong `%s`: %j', async (option, options) => {
  await expectRefusal(() => createSender((options && { webhooks, ...options }) as never), `\`${option}\``)
})

it.each<[option: string, options: object | undefined]>([
  ['createDestination: options', undefined],
  ['onattempt', { onattempt: () => {} }],
  ['enabled', { enabled: 1 }],
  ['whenDisabled', { whenDisabled: 'keep' }],
  ['addressTimeoutMs', { addressTimeoutMs: 5_001 }],
  ['historicalAfterMs', { historicalAfterMs: 0 }],
  ['queue', { queue: [] }],
  ['concurrency', { concurrency: 0 }],
  ['maxPerSecond', { maxPerSecond: 0 }],
  ['circuit.failures', { circuit: { failures: 0 } }],
  ['circuit.maxProbeMs', { circuit: { maxProbeMs: 999 } }],
  ['circuit.lastAttemptsPerSecond', { circuit: { lastAttemptsPerSecond: 0.5 } }],
  ['failure', { circuit: { failure: 1 } }],
  ['filter', { filter: 'yes' }],
  ['transform', { transform: {} }],
  ['random', { random: 0.5 }],
  ['onAttempt', { onAttempt: 'log' }],
  ['onCircuit', { onCircuit: 'log' }],
  ['onDeadLetter', { onDeadLetter: 'page me' }],
  ['logger.error', { logger: {} }],
])('a destination refuses a wrong `%s`: %j', async (option, options) => {
  await expectRefusal(() => createDestination((options && { webhooks, ...options }) as never), `${option}\``)
})

const least: Partial<DestinationOptions> = {
  ...{ timeoutMs: 1, enabled: false, allowPrivateAddresses: false, whenDisabled: 'hold', historicalAfterMs: 1 },
  ...{ concurrency: 1, maxPerSecond: 1, circuit: { failures: 1, maxProbeMs: 1_000, lastAttemptsPerSecond: 1 } },
}
const functions = { filter: () => true, transform: () => fixtures.page }
const callbacks = { onAttempt() {}, onCircuit() {}, onDeadLetter() {} }
const most = { timeoutMs: 5_000, addressTimeoutMs: 5_000, groupBy: () => 'a', ...callbacks }

it('the settings of a destination are the documented defaults, or as given', () => {
  expect(readDestinationOptions({ webhooks })).toEqual({
    ...{ targets: [expect.objectContaining(webhooks[0])], userAgent: 'Hookline/1.0', timeoutMs: 5_000 },
    ...{ connections: Number.POSITIVE_INFINITY, allowPrivateAddresses: true, clock: systemClock, enabled: true },
    ...{ whenDisabled: 'drop', functions: {}, queue: expect.any(Object), concurrency: 50, log: expect.any(Object) },
    circuit: { failures: 10, maxProbeMs: 30_000, lastAttemptsPerSecond: 1 },
    random: expect.any(Function),
  })
  expect(readDestinationOptions({ webhooks, ...least })).toMatchObject(least)
  const settings = { ...most, functions, userAgent: 'Acme/1.0' }
  expect(readDestinationOptions({ webhooks, ...most, ...functions, userAgent: 'Acme' })).toMatchObject(settings)
})

it('a secret that looks as if it was read wrongly is a warning, which does not show it', () => {
  const warnings = watchWarnings()
  openSender({ webhooks, sharedSecret: ' s3cret' })
  setUp([200], { sharedSecret: 's3cret\n' }).destination.update({ sharedSecret: '"s3cret"' })
  const warning = [expect.stringMatching(/^`sharedSecret` (?!.*s3cret)/), { code: 'HOOKLINE_SECRET' }]
  expect(warnings.mock.calls).toEqual(Array(3).fill(warning))
})

it('a destination refuses a queue that serves another one', () => {
  const queue = memoryQueue()
  createDestination({ webhooks, queue })
  expect(() => createDestination({ webhooks, queue })).toThrow(TypeError)
})

it.each<[argument: string, call: (sender: Sender) => unknown]>([
  ['message.type', (sender) => sender.send(null as never)],
  ['message.type', (sender) => sender.request({ type: 'order' } as never)],
  ['track: call', (sender) => sender.track(undefined as never)],
  ['event', (sender) => sender.send({ type: 'track', userId: 'u' } as never)],
  ['tampr', (sender) => sender.send(fixtures.page, { tampr: 'truncated' } as never)],
  ['tamper', (sender) => sender.send(fixtures.page, { tamper: 'harder' as never })],
  ['webook', (sender) => sender.request(fixtures.page, { webook: 1 } as never)],
  ['webhook', (sender) => sender.request(fixtures.page, { webhook: 1 })],
  ['tamper', () => openSender({ webhooks }).request(fixtures.page, { tamper: 'bad-signature' })], // There is none.
])('a sender refuses an argument, `%s` (%#)', async (argument, call) => {
  const sender = openSender({ webhooks, sharedSecret: 'secret' })
  await expectRefusal(() => call(sender), `${argument}\``)
})

it.each<[argument: string, call: (destination: Destination) => unknown]>([
  ['event', (each) => each.track({ userId: 'u' } as never)],
  ['submissions', (each) => each.submit({ message: fixtures.page } as never)],
  ['message.type', (each) => each.submit([{ message: { type: 'x' } as never }])],
  ['key', (each) => each.submit([{ message: fixtures.page, key: 5 as never }])],
  ['source', (each) => each.submit([{ message: fixtures.page, source: '' }])],
  ['drop', (each) => each.drop({})],
  ['drop: reason', (each) => each.drop({ reason: 'window-over' as never })],
  ['ids', (each) => each.forget('')],
  ['graceMs', (each) => each.close({ graceMs: -1 })],
  ['grace', (each) => each.close({ grace: 1 } as never)],
  ['members', (each) => each.syncAudience('Beta', 'ada')],
  ['members', (each) => each.syncAudience('Beta', [''])],
  ['values', (each) => each.syncTrait('Plan', ['ada', 'bob'] as never)],
  // Without `previous`, every member would be sent again.
  ['prevous', (each) => each.syncAudience('Beta', ['ada'], { prevous: ['ada'] } as never)],
  ['prevous', (each) => each.syncTrait('Beta', [['ada', 1]], { prevous: [] } as never)],
  ['attempt', (each) => each.observe({ attempt() {} } as never)],
  ['observe: queued', (each) => each.observe({ queued: 1 } as never)],
])('a destination refuses an argument, `%s`, and goes on (%#)', async (argument, call) => {
  const { destination } = setUp()
  await expectRefusal(() => call(destination), `${argument}\``)
  expect(await destination.delete({ userId: 'u' })).toMatchObject({ queued: true })
})
