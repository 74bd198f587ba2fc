/** Which calls of a destination store in a transaction, and which queues refuse to. On PostgreSQL and SQLite: test/queues. */

import { describe, expect, it } from 'vitest'
import { MESSAGE_TYPES } from '../../src/protocol/type-table.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import type { Destination } from '../../src/send/destination-types.ts'
import type { PushOptions, Queue } from '../../src/store/queue-types.ts'
import { fixtures, manualClock } from '../../src/testing.ts'
import { setUp } from './set-up.ts'

const CALLS: readonly (readonly [string, (destination: Destination, options: PushOptions) => Promise<unknown>])[] = [
  ...MESSAGE_TYPES.map(
    (type) =>
      [
        type,
        (destination: Destination, options: PushOptions) => destination[type](fixtures[type] as never, options),
      ] as const,
  ),
  ['send', (destination, options) => destination.send(fixtures.track, options)],
  ['submit', (destination, options) => destination.submit([{ message: fixtures.track }], options)],
]

describe.each(CALLS)('%s', (_name, call) => {
  it('passes a transaction on to the queue', async () => {
    const clock = manualClock()
    const pushes: (PushOptions | undefined)[] = []
    const queue: Queue = {
      ...memoryQueue({ clock }),
      push: async (_jobs, options) => void pushes.push(options),
    }
    const { destination } = setUp([200], { clock, queue })
    const options = { db: {} }
    await call(destination, options)
    expect(pushes).toEqual([options])
    expect(pushes[0]?.db).toBe(options.db)
  })

  it('refuses one where the queue has no transactions, and stores nothing', async () => {
    const { clock, captured, destination } = setUp()
    await expect(call(destination, { db: {} })).rejects.toThrow('`db`')
    await clock.advance(60_000)
    expect(captured.requests).toEqual([])
    expect((await destination.health()).waiting).toBe(0)
  })
})
