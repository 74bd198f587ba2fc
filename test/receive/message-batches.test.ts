import { describe, expect, it, type Mock, vi } from 'vitest'
import type { BatchHandler, Message, MessageType, Receiver } from '../../src/index.ts'
import type { ClaimedJob, JobTransaction, Queue } from '../../src/queues.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { sqliteQueue } from '../../src/queues-sqlite.ts'
import { BatchRoom } from '../../src/receive/message-batches.ts'
import { fixtures, manualClock } from '../../src/testing.ts'
import { testMessageBatches } from '../contracts/message-batches.ts'
import { newFile } from '../store/sqlite/set-up.ts'
import { setUpInbox } from '../support/inbox.ts'
import { deliver, setUp } from '../support/receive.ts'

testMessageBatches('memory', () => memoryQueue(), {}, true)
testMessageBatches('a SQLite file', () => sqliteQueue({ path: newFile() }), {}, true)

const away = (): Promise<never> => Promise.reject(new Error('away'))

describe('a handler of batches', () => {
  it.each<[string, object]>([
    ['maxMessages', { maxMessages: 0 }],
    ['maxWaitMs', { maxWaitMs: -1 }],
    ['maxBytes', { maxBytes: 0.5 }],
    ['name', { name: 'Rows' }],
    ['inbox.timeoutMs', { maxWaitMs: 2_000 }],
    ['maxMessage', { maxMessage: 1 }],
  ])('refuses wrong options, and names them: %s', (name, options) => {
    const { receiver } = setUpInbox({ timeoutMs: 2_000 })
    expect(() => receiver.onBatch('*', () => {}, options)).toThrow(`\`${name}\``)
    expect(() => receiver.onBatch('track', 'Order Completed', () => {}, options)).toThrow(TypeError)
    receiver.onBatch('*', () => {}, { maxMessages: 1, maxWaitMs: 0, maxBytes: 1 })
  })

  it('gets the messages of an event or of a list of types, and is removed by off', async () => {
    const { receiver, clock } = setUpInbox()
    const [orders, users, removed] = [vi.fn(), vi.fn(), vi.fn()]
    receiver.onBatch('track', 'Order Completed', orders, { name: 'orders' })
    receiver.onBatch(['identify', 'page'], users).onBatch('track', removed).off('track', removed)
    receiver.start()

    for (const message of [fixtures.track, fixtures.identify, fixtures.page]) await deliver(receiver, message)
    await clock.advance(1_000)

    const types = (handler: Mock) => handler.mock.calls.map(([messages]) => messages.map(({ type }: Message) => type))
    expect([orders, users, removed].map(types)).toEqual([[['track']], [['identify', 'page']], []])
  })

  it('of several types is one in how many messages are claimed, so it is registered before start; by default it gets 500, of 8 MiB', () => {
    const work = vi.fn<Queue['work']>(() => () => {})
    const [history, onUnreadable] = [{ maxAgeMs: 1 }, expect.any(Function)]
    const { receiver } = setUpInbox({ concurrency: 1, history }, {}, { work })
    receiver.onBatch(['identify', 'page'], () => {}, { maxMessages: 5 }).onBatch('track', () => {})
    receiver.start()
    expect(() => receiver.onBatch('track', () => {})).toThrow(TypeError)
    const { room, runsAlone, ...how } = work.mock.calls[0]?.[1] ?? {}
    expect(how).toEqual({ concurrency: 1 + 5 + 500, history, onUnreadable })
    expect(room?.count()).toBe((2 * 8 * 1024) / 512)
    expect([1, 2].map((claimCount) => runsAlone?.({ claimCount } as ClaimedJob))).toEqual([false, true])
  })

  it('gets a message alone, and at once, whose claim was lost, because it may have ended a process', async () => {
    const [work, push] = [vi.fn<Queue['work']>(() => () => {}), vi.fn<Queue['push']>(async () => undefined)]
    const { receiver, clock } = setUpInbox({}, {}, { work, push })
    const handler = vi.fn()
    receiver.onBatch('track', handler).start()
    await deliver(receiver, fixtures.track)
    const claim = { claimCount: 2, firstAt: new Date(5), retryState: undefined }
    const job = { ...push.mock.calls[0]?.[0][0], ...claim } as ClaimedJob
    void work.mock.calls[0]?.[0](job, new AbortController().signal)
    await clock.advance(0)
    expect(handler).toHaveBeenCalledOnce()
  })

  it('that refuses an index of no message has failed', async () => {
    const { receiver, clock, errors } = setUpInbox({ retries: [] })
    receiver.onBatch('track', (_messages, _deliveries, { fail }) => fail(1, new Error('bad row'))).start()
    await deliver(receiver, fixtures.track)
    await clock.advance(1_000)
    expect(errors[0]).toMatchObject({ cause: { errors: [{ message: expect.stringContaining('`fail: index`') }] } })
  })

  it('that hangs has failed at the deadline of its messages, and its signal fires', async () => {
    const { receiver, clock } = setUpInbox({ retries: [], timeoutMs: 5_000 })
    const hangs = vi.fn((..._given: Parameters<BatchHandler>) => new Promise(() => {}))
    receiver.onBatch('track', hangs).start()

    await deliver(receiver, fixtures.track)
    await clock.advance(4_999)
    expect(hangs.mock.calls[0]?.[2].signal.aborted).toBe(false)
    await clock.advance(1)

    expect(hangs.mock.calls[0]?.[2].signal.aborted).toBe(true)
    expect(await receiver.deadLetters()).toMatchObject([{ reason: 'handler_timeout' }])
  })

  it('gets no message whose attempt has ended while it waited', async () => {
    const { receiver, clock, queue } = setUpInbox()
    const handler = vi.fn()
    receiver.onBatch('track', handler).start()
    await deliver(receiver, fixtures.track)
    await clock.advance(500)

    const closing = receiver.close({ graceMs: 0 })
    await clock.advance(1_000)

    expect(await closing).toHaveLength(1)
    expect(handler).not.toHaveBeenCalled()
    await expect(queue.counts()).rejects.toMatchObject({ code: 'shutting_down' })
  })

  it('that fails as often as it may leaves a dead letter for each message, with the error of each', async () => {
    const { receiver, clock } = setUpInbox({ retries: [10] })
    const mail = vi.fn()
    receiver.on('track', mail, { name: 'mail' }).onBatch('*', away, { name: 'rows' }).start()

    await deliver(receiver, fixtures.track)
    await clock.advance(10_000)

    const handlers = { done: ['mail'], failed: ['rows'] }
    const error = { causes: [{ message: 'away' }] }
    expect(await receiver.deadLetters()).toMatchObject([{ attempts: 2, handlers, error }])
    expect(mail).toHaveBeenCalledOnce()
  })
})

it('the room of batches is as many messages of the latest size as fit, and none while one waits for a place', async () => {
  const wake = vi.fn()
  const room = new BatchRoom(1, 1_000_000, wake)
  expect(room.count()).toBe(2) // As large as they can be.
  const [first, second] = [room.enter(1_000, true), room.enter(1_000, true)]
  expect([room.count(), first.place, second.place]).toEqual([0, undefined, expect.any(Promise)])

  first.leavePlace()
  first.leave()
  await second.place
  second.leave()

  expect(wake).toHaveBeenCalledTimes(1)
  for (let count = 0; count < 400; count += 1) room.enter(1_000, false).leave()
  expect(room.count()).toBe(1_000)
  room.enter(2_000_000, false)
  expect(room.count()).toBe(0)
})

describe('in an inbox with transactions', () => {
  const setUpTransactional = () => setUpInbox({ transactional: true }, {}, { isTransactional: true }).receiver
  type Register = (receiver: Receiver) => Receiver
  const batchOf =
    (...types: readonly MessageType[]): Register =>
    (receiver) =>
      receiver.onBatch(types, () => {})
  const ordersInBatches: Register = (receiver) => receiver.onBatch('track', 'Order Completed', () => {})

  it('a batch completes in one transaction those that did not fail, and writes nothing when it throws', async () => {
    const clock = manualClock()
    const memory = memoryQueue({ clock })
    const commits: string[] = []
    const transaction: JobTransaction = {
      db: {},
      commit: async (completions) => void commits.push(completions.map(({ log }) => `${log}`).join()),
      rollback: async () => {},
    }
    const begin = vi.fn(async () => transaction).mockRejectedValueOnce(new Error('away'))
    const work: Queue['work'] = (handle, options) =>
      memory.work((job, signal, save) => handle(job, signal, save, begin), options)
    const queue: Queue = { ...memory, isTransactional: true, work }
    const { receiver, errors } = setUp({
      clock,
      inbox: { queue, transactional: true, retries: [], history: { maxAgeMs: 1 } },
    })
    let isDown = false
    const handler: BatchHandler = (_messages, _deliveries, { db, fail }) => {
      expect(db).toBe(transaction.db)
      if (isDown) throw new Error('down')
      fail(1, new Error('bad row'))
    }
    receiver.onBatch('track', handler, { name: 'rows' })
    receiver.start()
    const deliverThree = async () => {
      for (const messageId of ['1', '2', '3'])
        await deliver(receiver, { ...fixtures.track, messageId: `${isDown}-${messageId}` })
      await clock.advance(1_000)
    }

    await deliverThree()
    expect([await receiver.deadLetters(), commits]).toEqual([[], []]) // The database was away, which is no attempt.
    expect(errors.map(({ code }) => code)).toEqual(['internal', 'internal', 'internal'])
    await clock.advance(2_000)
    expect(await receiver.deadLetters()).toMatchObject([{ error: { causes: [{ message: 'bad row' }] } }])
    isDown = true
    await deliverThree()

    expect(commits).toEqual(['{"handlers":["rows"]},{"handlers":["rows"]}'])
    expect(await receiver.deadLetters()).toHaveLength(4)
  })

  it.each<[string, Register, Register]>([
    ['of its type', batchOf('page', 'track'), (receiver) => receiver.on('track', () => {})],
    ['of any type', batchOf('page'), (receiver) => receiver.on('*', () => {})],
    ['of its event', ordersInBatches, (receiver) => receiver.on('track', 'Order Completed', () => {})],
    ['of the type of its event', ordersInBatches, (receiver) => receiver.on(['track', 'page'], () => {})],
    ['of batches, too', ordersInBatches, batchOf('track')],
    ['of an audience', batchOf('identify'), (receiver) => receiver.onAudience('vip', { exited: () => {} })],
    ['of an audience in events', batchOf('track'), (receiver) => receiver.onAudience('vip', { entered: () => {} })],
  ])('a handler of batches shares no message with one %s', (_what, one, other) => {
    const advice = 'must not share messages'
    expect(() => other(one(setUpTransactional()))).toThrow(advice)
    expect(() => one(other(setUpTransactional()))).toThrow(advice)
  })
})
