/** The types of calls, options and results. */

import type pg from 'pg'
import type { Db } from 'pg-boss'
import { expectTypeOf, test } from 'vitest'
import type { DestinationOptions } from '../../src/send/destination-options.ts'
import type { Destination, DestinationChanges } from '../../src/send/destination-types.ts'
import type { Sender } from '../../src/send/sender-types.ts'
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
  void sender.track({ anonymousId: 'a', event: 'E', properties: { total: 1 }, timestamp: new Date() })
  void destination.alias({ userId: 'new', previousId: 'old' })
  for (const message of Object.values(fixtures)) void sender.send(message)
  // @ts-expect-error: no event
  void sender.track({ userId: 'u' })
  // @ts-expect-error: no group
  void destination.group({ userId: 'u' })
  // @ts-expect-error: a deletion has no properties
  void destination.delete({ userId: 'u', properties: {} })
  // @ts-expect-error: no such way
  void sender.send(fixtures.track, { tamper: 'harder' })
})

test('results are typed', () => {
  expectTypeOf(sender.page({ userId: 'u' })).resolves.toEqualTypeOf<Round>()
  expectTypeOf(destination.page({ userId: 'u' })).resolves.toEqualTypeOf<Queued>()
  expectTypeOf<Round['attempts'][number]>().toEqualTypeOf<Attempt>()
  expectTypeOf<Attempt['error']>().toExtend<string | undefined>()
})

test('a sync returns what the next one takes as previous', async () => {
  const members = await destination.syncAudience('Beta', ['ada'])
  void destination.syncAudience('Beta', ['ada'], { previous: members })
  const values = await destination.syncTrait('Total', [['ada', 10]])
  expectTypeOf(values).toEqualTypeOf<ReadonlyMap<string, number>>()
  void destination.syncTrait('Total', [['ada', 11]], { previous: values })
})

test('an update takes webhooks and the switch as at creation', () => {
  expectTypeOf<DestinationChanges['webhooks']>().toEqualTypeOf<DestinationOptions['webhooks'] | undefined>()
  expectTypeOf<DestinationChanges['enabled']>().toEqualTypeOf<DestinationOptions['enabled']>()
})

test('a message takes a transaction, of whatever library', () => {
  expectTypeOf<Destination['track']>().toBeCallableWith({ userId: 'u', event: 'E' }, { db: {} as pg.PoolClient })
  expectTypeOf<Destination['identify']>().toBeCallableWith({ userId: 'u' }, { db: {} as Db })
  // @ts-expect-error: an address is no transaction
  expectTypeOf<Destination['track']>().toBeCallableWith({ userId: 'u', event: 'E' }, { db: 'postgres://localhost' })
  // @ts-expect-error: undefined would store outside of the transaction
  expectTypeOf<Destination['track']>().toBeCallableWith({ userId: 'u', event: 'E' }, { db: undefined })
  // @ts-expect-error: a sender stores nothing
  expectTypeOf<Sender['track']>().toBeCallableWith({ userId: 'u', event: 'E' }, {})
})

test('a secret may come from process.env as it is, and null removes it', () => {
  createSender({ webhooks, sharedSecret: process.env.HOOKLINE_SECRET })
  type Update = Destination['update']
  expectTypeOf<Update>().toBeCallableWith({ sharedSecret: process.env.HOOKLINE_SECRET })
  expectTypeOf<Update>().toBeCallableWith({ sharedSecret: null })
  // @ts-expect-error: a destination needs webhooks
  expectTypeOf<Update>().toBeCallableWith({ webhooks: null })
  // @ts-expect-error: it is on or off
  expectTypeOf<Update>().toBeCallableWith({ enabled: null })
  // @ts-expect-error: undefined would change nothing
  expectTypeOf<Update>().toBeCallableWith({ enabled: undefined })
})
