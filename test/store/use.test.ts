import { afterAll, describe, expect, it } from 'vitest'
import { memoryQueue } from '../../src/queues-memory.ts'
import { sqliteQueue } from '../../src/queues-sqlite.ts'
import { createReceiver } from '../../src/receive/create-receiver.ts'
import { createDestination } from '../../src/send/create-destination.ts'
import type { QueueUse } from '../../src/store/queue-types.ts'
import { requireNote } from '../../src/store/use.ts'
import { secret } from '../support/receive.ts'
import { newFile } from './sqlite/set-up.ts'
import { testUse } from './use-cases.ts'

describe('in a SQLite file', () => {
  const path = newFile(afterAll)

  testUse({
    open: (name, onError) => sqliteQueue({ path, name, onError }),
    refusesAtOnce: true,
    names: ['orders-inbox', 'o\'r"d é*{x} %', 'o\u0000d', '__proto__'],
  })
})

it('a queue of one process serves an inbox or a destination', async () => {
  const [queue, outbox] = [memoryQueue({ name: 'jobs' }), memoryQueue({ name: 'outbox' })]
  const options = { webhooks: [{ url: 'https://shop.example/webhooks' }], sharedSecret: secret }
  createReceiver({ secret, inbox: queue })
  const destination = createDestination({ ...options, queue: outbox })

  expect(() => createDestination({ ...options, queue })).toThrow(TypeError)
  expect(() => createReceiver({ secret, inbox: outbox })).toThrow(TypeError)
  expect(() => createDestination({ ...options, queue: outbox })).toThrow(TypeError)
  queue.reserve?.('inbox') // The same use again.
  await expect(queue.drain()).rejects.toThrow(TypeError)
  await queue.close()
  await queue.drain()
  await destination.close({ graceMs: 0 })
})

it('a queue whose note is of another version, or of another use, is refused', () => {
  const refusal = expect.objectContaining({ code: 'queue_unavailable' })
  const require = (note: object | undefined, use?: QueueUse) => () => requireNote('jobs', 2, note, use)
  expect(require(undefined)).not.toThrow()
  expect(require({ version: 2, use: 'inbox' }, 'inbox')).not.toThrow()
  for (const note of [{ version: 1, use: 'inbox' }, {}]) expect(require(note, 'inbox')).toThrow(refusal)
  expect(require({ version: 2, use: 'inbox' }, 'destination')).toThrow(refusal)
})
