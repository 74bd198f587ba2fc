/** The contract of batches of messages, which holds on every engine. The receiver has a clock that a test moves; that of the queue runs. */

import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createReceiver } from '../../src/receive/create-receiver.ts'
import type { InboxOptions } from '../../src/receive/inbox-options.ts'
import type { BatchHandler, BatchOptions } from '../../src/receive/message-batches.ts'
import type { HandleJob, Queue } from '../../src/store/queue-types.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { deliver, secret } from '../support/receive.ts'
import { until } from '../support/until.ts'

const numbers = (count: number): string[] => Array.from({ length: count }, (_, index) => `message-${10 + index}`)

export function testMessageBatches(engine: string, createQueue: () => Queue, needed: object, hasGroups: boolean): void {
  /** A receiver whose handler of batches keeps what it gets. */
  function setUp(options: BatchOptions = {}, inbox: Partial<InboxOptions> = {}, handle: BatchHandler = () => {}) {
    const clock = manualClock()
    const engine = createQueue()
    let held = 0
    let ended = 0
    const work: Queue['work'] = (handle, options) => {
      const count: HandleJob = async (...claimed) => {
        held += 1
        const outcome = await handle(...claimed)
        held -= 1
        if (!('retryAt' in outcome)) ended += 1
        return outcome
      }
      return engine.work(count, options)
    }
    const queue = { ...engine, work }
    const receiver = createReceiver({ secret, clock, inbox: { queue, retries: [0, 0], ...inbox }, onError: () => {} })
    onTestFinished(async () => void (await receiver.close({ graceMs: 0 })))
    const batches: string[][] = []
    const note: BatchHandler = (messages, deliveries, batch) => {
      batches.push(messages.map(({ messageId }) => messageId ?? ''))
      return handle(messages, deliveries, batch)
    }
    receiver.onBatch('*', note, options)
    return {
      ...{ clock, queue, receiver, batches },
      async send(messageIds: readonly string[], more: object = {}) {
        const answers = messageIds.map((messageId) => deliver(receiver, { ...fixtures.track, ...more, messageId }))
        expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(messageIds.map(() => 200))
      },
      /** Waits until so many messages are held. */
      claimed: (count: number) => until(() => held === count),
      /** Waits until so many are complete or dead letters, and meanwhile has each batch close. */
      handled: (count: number) =>
        until(async () => {
          await clock.advance(1_000)
          return ended === count
        }),
    }
  }

  describe(`batches of messages on ${engine}`, needed, () => {
    it('have at most maxMessages', async () => {
      const { clock, receiver, batches, send, claimed } = setUp({ maxMessages: 10 })
      await send(numbers(25))

      receiver.start()
      await until(() => batches.length === 2)
      await claimed(5)
      await clock.advance(1_000)

      expect(batches.flat().sort()).toEqual(numbers(25))
      expect(batches.map(({ length }) => length)).toEqual([10, 10, 5])
      await claimed(0)
    })

    it('wait for maxWaitMs from the first message on, and no longer', async () => {
      const { clock, receiver, batches, send, claimed } = setUp({ maxWaitMs: 3_000 })
      receiver.start()

      await send(numbers(1))
      await claimed(1)
      await clock.advance(2_000)
      await send(numbers(3).slice(1))
      await claimed(3)
      await clock.advance(999)
      expect(batches).toEqual([])
      await clock.advance(1)

      expect(batches.map((batch) => batch.sort())).toEqual([numbers(3)])
      await claimed(0)
    })

    it('have at most maxBytes, or one larger message', async () => {
      const { receiver, batches, send, claimed } = setUp({ maxBytes: 25_000 })
      await send(numbers(4), { properties: { text: 'x'.repeat(10_000) } })
      await send(['large'], { properties: { text: 'x'.repeat(30_000) } })

      receiver.start()
      await until(() => batches.length === 3)

      expect(batches.map(({ length }) => length)).toEqual([2, 2, 1])
      await claimed(0)
    })

    it('fail as a whole when the handler throws: each message is retried, and becomes a dead letter, on its own', async () => {
      const { receiver, batches, send, handled } = setUp({}, {}, () => Promise.reject(new Error('away')))
      await send(numbers(3))

      receiver.start()
      await handled(3)

      await until(async () => (await receiver.deadLetters()).length === 3)
      const letters = await receiver.deadLetters()
      expect(letters.map(({ message }) => (message as { messageId: string }).messageId).sort()).toEqual(numbers(3))
      expect(letters.map(({ attempts, reason }) => [attempts, reason])).toEqual(Array(3).fill([3, 'handler_failed']))
      expect(batches.flat()).toHaveLength(9)
    })

    it('retry the messages that the handler fails, and complete the others', async () => {
      let isAway = true
      const { receiver, batches, send, handled, claimed } = setUp({}, {}, (messages, _deliveries, { fail }) => {
        const bad = messages.findIndex(({ messageId }) => messageId === numbers(2)[1])
        if (isAway) fail(bad, new Error('bad row'))
        isAway = false
      })
      await send(numbers(3))

      receiver.start()
      await claimed(3)
      await handled(3)

      expect(batches.map((batch) => batch.sort())).toEqual([numbers(3), [numbers(2)[1]]])
      expect(await receiver.deadLetters()).toEqual([])
    })

    it('close early when the receiver closes', async () => {
      const { clock, receiver, batches, send, claimed } = setUp({ maxWaitMs: 60_000 })
      receiver.start()
      await send(numbers(2))
      await claimed(2)

      const closing = receiver.close({ graceMs: 30_000 })
      await until(async () => {
        await clock.advance(0)
        return batches.length > 0
      })

      expect(await closing).toEqual([])
      expect(batches.map((batch) => batch.sort())).toEqual([numbers(2)])
    })

    it('leave other handlers their concurrency', async () => {
      let running = 0
      let most = 0
      const { receiver, batches, send, claimed } = setUp({ maxMessages: 10 }, { concurrency: 2 })
      receiver.on('track', async () => {
        running += 1
        most = Math.max(most, running)
        await nextTurn()
        running -= 1
      })
      await send(numbers(20))

      receiver.start()
      await until(() => batches.length === 2)
      await claimed(0)

      expect(most).toBe(2)
      expect(batches.map(({ length }) => length)).toEqual([10, 10])
    })

    if (!hasGroups) return

    it('have at most one message of a group, in their order', async () => {
      const groupBy: InboxOptions['groupBy'] = ({ userId }) => userId
      const { clock, receiver, batches, send, claimed } = setUp({}, { groupBy })
      for (const messageId of numbers(3)) {
        await send([`one ${messageId}`], { userId: 'one' })
        await send([`two ${messageId}`], { userId: 'two' })
      }

      receiver.start()
      for (const round of numbers(3).keys()) {
        await until(async () => {
          await claimed(2)
          await clock.advance(1_000)
          return batches.length > round
        })
      }

      expect(batches.map((batch) => batch.sort())).toEqual(numbers(3).map((id) => [`one ${id}`, `two ${id}`]))
    })
  })
}
