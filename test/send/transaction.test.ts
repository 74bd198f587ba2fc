/** Which calls of a destination store in a transaction, and which queues refuse to. On PostgreSQL and SQLite: test/queues. */

import { expect, it, vi } from 'vitest'
import { MESSAGE_TYPES } from '../../src/protocol/type-table.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import type { Destination } from '../../src/send/destination-types.ts'
import type { PushOptions } from '../../src/store/queue-types.ts'
import { fixtures } from '../../src/testing.ts'
import { setUp } from './set-up.ts'

type Call = (destination: Destination, options: PushOptions) => Promise<unknown>

const CALLS: readonly (readonly [string, Call])[] = [
  ...MESSAGE_TYPES.map((type): [string, Call] => [type, (to, options) => to[type](fixtures[type] as never, options)]),
  ['send', (each, options) => each.send(fixtures.track, options)],
  ['submit', (each, options) => each.submit([{ message: fixtures.track }], options)],
]

it.each(CALLS)('%s passes a transaction on to the queue, and is refused where there are none', async (_name, call) => {
  const push = vi.fn()
  const options = { db: {} }
  await call(setUp([200], { queue: { ...memoryQueue(), push } }).destination, options)
  expect(push.mock.calls).toEqual([[expect.any(Array), options]])
  expect(push.mock.calls[0]?.[1].db).toBe(options.db)

  const { destination } = setUp()
  await expect(call(destination, options)).rejects.toThrow('`db`')
  expect((await destination.health()).waiting).toBe(0)
})
