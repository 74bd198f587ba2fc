/** The types of calls and results. */

import { expectTypeOf, test } from 'vitest'
import {
  type Attempt,
  createDestination,
  createSender,
  type DeliveryReport,
  type Queued,
  type Round,
} from '../../src/sender.ts'
import { fixtures } from '../../src/testing.ts'

const webhooks = [{ url: 'https://shop.example/webhooks' }]
const sender = createSender({ webhooks, sharedSecret: 'secret' })
const destination = createDestination({
  webhooks,
  onAttempt: (report) => expectTypeOf(report).toEqualTypeOf<DeliveryReport>(),
})

test('a call needs what its message needs', () => {
  void sender.track({ userId: 'u', event: 'E' })
  void sender.track({ anonymousId: 'a', event: 'E', properties: { total: 1 }, timestamp: new Date() })
  void destination.alias({ userId: 'new', previousId: 'old' })
  void destination.delete({ userId: 'u' })
  // @ts-expect-error: no user
  void sender.track({ event: 'E' })
  // @ts-expect-error: no event
  void sender.track({ userId: 'u' })
  // @ts-expect-error: no group
  void destination.group({ userId: 'u' })
  // @ts-expect-error: no old id
  void destination.alias({ userId: 'new' })
  // @ts-expect-error: a deletion has no properties
  void destination.delete({ userId: 'u', properties: {} })
  // @ts-expect-error: no such way
  void sender.send(fixtures.track, { tamper: 'harder' })
})

test('every fixture is a message to send', () => {
  for (const message of Object.values(fixtures)) void sender.send(message)
})

test('results are typed', () => {
  expectTypeOf(sender.page({ userId: 'u' })).resolves.toEqualTypeOf<Round>()
  expectTypeOf(destination.page({ userId: 'u' })).resolves.toEqualTypeOf<Queued>()
  expectTypeOf<Round['attempts'][number]>().toEqualTypeOf<Attempt>()
  expectTypeOf<Attempt['error']>().toExtend<string | undefined>()
})

test('the secret may come from the environment', () => {
  createSender({ webhooks, sharedSecret: process.env.HOOKLINE_SECRET })
})

test('a sync returns what the next one takes as previous', async () => {
  const members = await destination.syncAudience('Beta', ['ada'])
  void destination.syncAudience('Beta', ['ada'], { previous: members })
  const values = await destination.syncTrait('Total', [['ada', 10]])
  expectTypeOf(values).toEqualTypeOf<ReadonlyMap<string, number>>()
  void destination.syncTrait('Total', [['ada', 11]], { previous: values })
})
