/** inspectQueue(): the queue of an inbox and of a destination, read and changed without either. */

import { randomUUID } from 'node:crypto'
import { describe, expect, it, vi } from 'vitest'
import { inspectQueue } from '../../src/observe/inspect-queue.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { setUp as setUpDestination } from '../send/set-up.ts'
import { setUpInbox } from '../support/inbox.ts'
import { jobOf } from '../support/queues.ts'
import { deliver } from '../support/receive.ts'

async function list<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const listed: Item[] = []
  for await (const item of items) listed.push(item)
  return listed
}

const HOUR = 3_600_000
const history = { maxAgeMs: 30 * 24 * HOUR }

/** An inbox with three dead letters: of a track and a page, whose handler `crm` failed, and of what is no message. */
async function failMessages() {
  const set = setUpInbox({ retries: [] })
  const { receiver, queue, clock } = set
  const crm = vi.fn().mockRejectedValue(new Error('the CRM is down'))
  receiver.on('*', crm, { name: 'crm' }).start()
  for (const body of [{ ...fixtures.track, userId: 'ada' }, { ...fixtures.page, userId: 'bob' }, 'no message']) {
    await deliver(receiver, body)
    await clock.advance(HOUR)
  }
  return { ...set, crm, inspected: inspectQueue(queue, { clock }) }
}

/** A queue of jobs that end as dead letters for these reasons. */
async function failByHand(reasons: readonly string[]) {
  const queue = memoryQueue({})
  await queue.push(reasons.map((reason) => ({ id: randomUUID(), body: Buffer.from(JSON.stringify(reason)) })))
  queue.work(async ({ body }) => ({ deadLetter: JSON.parse(Buffer.from(body).toString()) }), { concurrency: 1 })
  await queue.drain()
  return inspectQueue(queue)
}

describe('the dead letters of an inbox', () => {
  it('are those of its receiver', async () => {
    const { receiver, inspected } = await failMessages()
    const letters = await list(inspected.deadLetters())
    expect(letters).toHaveLength(3)
    expect(letters).toEqual((await receiver.deadLetters()).map((letter) => ({ ...letter, use: 'inbox' })))
  })

  it('are found by each filter, and from either end', async () => {
    const { inspected } = await failMessages()
    const find = async (filter: Parameters<typeof inspected.deadLetters>[0]) =>
      (await list(inspected.deadLetters(filter))).map(({ message }) => message?.type)

    expect(await find({ handler: 'crm' })).toEqual(['track', 'page'])
    expect(await find({ reason: 'body_not_json' })).toEqual([undefined])
    expect(await find({ userId: 'ada' })).toEqual(['track'])
    expect(await find({ newestFirst: true })).toEqual([undefined, 'page', 'track'])
    const [first] = await list(inspected.deadLetters())
    expect(await find({ after: first?.id as string })).toEqual(['page', undefined])
  })

  it('are counted, redriven and dropped', async () => {
    const { inspected, crm, clock } = await failMessages()
    const reasons = { handler_failed: 2, body_not_json: 1 }
    expect(await inspected.redrive('all', { dryRun: true })).toEqual({ count: 3, reasons })

    crm.mockResolvedValue(undefined)
    expect(await inspected.redrive({ handler: 'crm', type: 'track' })).toBe(1)
    expect(await inspected.drop({ reason: 'body_not_json' })).toBe(1)
    await clock.advance(0)

    expect(await list(inspected.deadLetters())).toMatchObject([{ message: { type: 'page' } }])
    expect(await inspected.health()).toMatchObject({ status: 'ok', deadLetters: 1 })
  })

  it('refuse an unknown filter', async () => {
    const { inspected } = await failMessages()
    await expect(list(inspected.deadLetters({ evnt: 'x' } as never))).rejects.toThrow(/`event`/)
    await expect(list(inspected.deadLetters({ after: 'x' }))).rejects.toThrow(TypeError)
    await expect(inspected.drop({})).rejects.toThrow(TypeError)
  })
})

it('the dead letters of a destination are those of the destination, without the URLs', async () => {
  const queue = memoryQueue({})
  const { destination, clock } = setUpDestination([404], { queue })
  await destination.submit([{ message: { ...fixtures.track, userId: 'ada' }, source: 'import' }])
  await clock.advance(0)
  const [letter] = await destination.deadLetters()
  const attempts = letter?.attempts.map(({ url: _, ...attempt }) => attempt)

  const [inspected] = await list(inspectQueue(queue).deadLetters({ reason: 'refused', userId: 'ada' }))

  expect(inspected).toEqual({ ...letter, use: 'destination', attempts, bytes: expect.any(Uint8Array) })
  expect(JSON.parse(JSON.stringify(inspected)).bytes).toBe(JSON.stringify(letter?.message))
})

it('a job of neither is unreadable, and its error is what is stored', async () => {
  const inspected = await failByHand(['the printer is on fire'])
  const letters = await list(inspected.deadLetters({ reason: 'unreadable' }))
  const error = { code: 'internal', message: 'the printer is on fire', causes: [] }
  expect(letters).toMatchObject([{ use: undefined, message: undefined, reason: 'unreadable', error }])
})

it('the age of what waits is told by the clock of the queue', async () => {
  const clock = manualClock()
  const queue = memoryQueue({ clock })
  await queue.push([jobOf()])
  await clock.advance(HOUR)
  expect(await inspectQueue(queue, { clock }).health()).toMatchObject({ waiting: 1, oldestDueAgeMs: HOUR })
})

it('many dead letters are read, each once', async () => {
  const inspected = await failByHand(Array.from({ length: 1_100 }, () => 'refused'))
  const ids = (await list(inspected.deadLetters())).map(({ id }) => id)
  expect(new Set(ids).size).toBe(1_100)
  expect(ids).toHaveLength(1_100)
})

describe('the history', () => {
  async function handleMessages() {
    const set = setUpInbox({ history })
    const { receiver, queue, clock } = set
    const [crm, mail] = [vi.fn(), vi.fn()]
    receiver.on(['track', 'page'], crm, { name: 'crm' }).on('track', mail, { name: 'mail' }).start()
    for (const message of [fixtures.track, fixtures.page, fixtures.identify]) await deliver(receiver, message)
    await clock.advance(HOUR)
    return { ...set, crm, inspected: inspectQueue(queue, { clock }) }
  }

  it('is that of the receiver, and finds messages by their ids', async () => {
    const { receiver, inspected } = await handleMessages()
    const all = await list(receiver.history())
    expect(await list(inspected.history())).toEqual(all)

    const ids = [all[1]?.id ?? '', randomUUID()]

    for (const { history } of [inspected, receiver]) {
      expect(await list(history({ ids }))).toEqual([all[1]])
      expect(await list(history({ ids, type: 'track' }))).toEqual([])
    }
  })

  it('is replayed to the workers, and counted by the handlers that had each message', async () => {
    const { inspected, crm, clock } = await handleMessages()
    const since = new Date(0)
    const plan = { id: 'fix-42', count: 3, types: { track: 1, page: 1, identify: 1 }, events: { 'Order Completed': 1 } }
    const handlers = { crm: 2, mail: 1 }
    expect(await inspected.replay({ id: 'fix-42', since, dryRun: true })).toEqual({ ...plan, handlers })

    expect(await inspected.replay({ id: 'fix-42', since, handlers: ['crm'] })).toEqual({ ...plan, handlers })
    await clock.advance(0)

    expect(crm).toHaveBeenCalledTimes(4)
  })

  it('needs an engine that keeps one', async () => {
    const { log: _, ...queue } = memoryQueue({})
    const inspected = inspectQueue(queue)
    await expect(list(inspected.history())).rejects.toThrow(/`history`/)
    await expect(inspected.replay()).rejects.toThrow(/`replay`/)
  })
})

it('what is no queue is refused', () => {
  expect(() => inspectQueue({} as never)).toThrow(/`queue.counts`/)
  expect(() => inspectQueue(memoryQueue({}), { clok: 1 } as never)).toThrow(/`clock`/)
})
