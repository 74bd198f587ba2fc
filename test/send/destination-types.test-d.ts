import type pg from 'pg'
import type { Db } from 'pg-boss'
import { expectTypeOf, test } from 'vitest'
import type { DestinationOptions } from '../../src/send/destination-options.ts'
import type { Destination, DestinationChanges } from '../../src/send/destination-types.ts'
import type { Sender } from '../../src/send/sender-types.ts'

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
