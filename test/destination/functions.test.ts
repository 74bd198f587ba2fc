/** Functions of a destination and of the sources of a collector: what they leave out, change, and fail for. */

import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Source } from '../../src/collector/api.ts'
import { createDestination } from '../../src/destination/destination.ts'
import type { DestinationOptions } from '../../src/destination/options.ts'
import type { Message } from '../../src/message/message.ts'
import { sqliteQueue } from '../../src/queues/sqlite/index.ts'
import { capture, fixtures } from '../../src/testing.ts'
import { basic, setUpCollector, writeKey } from '../support/collect.ts'
import { until } from '../support/until.ts'
import { setUp as setUpDestination } from './set-up.ts'

const track = { ...fixtures.track, messageId: 'm-1', context: {} }
const page = { ...fixtures.page, messageId: 'm-2', context: {}, userId: 'user-2' }

function setUp(options: Partial<DestinationOptions> = {}, script: Parameters<typeof setUpDestination>[0] = [200]) {
  const set = setUpDestination(script, options)
  const sent = () => set.captured.requests.map(({ bytes }) => JSON.parse(String(bytes)))
  return { ...set, sent }
}

const fail = (): never => {
  throw new Error('the plan is missing')
}

describe('filter', () => {
  it('leaves messages out, which are counted and reported', async () => {
    const { destination, clock, sent } = setUp({ filter: ({ type }) => type === 'track' })
    const skipped: unknown[] = []
    destination.observe({ skipped: ({ message, reason }) => skipped.push([message.type, reason]) })
    expect(await destination.send(page)).toEqual({ queued: false, reason: 'filtered' })
    expect(await destination.send(track)).toMatchObject({ queued: true })
    await clock.advance(0)
    expect(sent()).toMatchObject([{ type: 'track' }])
    expect(skipped).toEqual([['page', 'filtered']])
    expect(await destination.health()).toMatchObject({ skipped: { filtered: 1 }, transformFailed: 0 })
  })

  it('may return a promise', async () => {
    const { destination } = setUp({ filter: async () => false })
    expect(await destination.send(track)).toEqual({ queued: false, reason: 'filtered' })
  })

  it('is not called for what is not queued anyway', async () => {
    const { destination } = setUp({ filter: fail, enabled: false })
    expect(await destination.send(track)).toEqual({ queued: false, reason: 'switched_off' })
  })

  it.each([undefined, null, 0, 'yes'])('that returns %j makes a dead letter: nothing is lost', async (answer) => {
    const { destination, clock } = setUp({ filter: () => answer as never, onAttempt: () => {} })
    await destination.send(track)
    await clock.advance(0)
    expect(await destination.deadLetters()).toMatchObject([{ reason: 'transform_failed', message: track }])
  })

  it('of an audience: who is left out is synced', async () => {
    const { destination } = setUp({ filter: (message) => message.userId === 'user-1' })
    const previous = await destination.syncAudience('vip', ['user-1', 'user-2'])
    expect([...previous]).toEqual(['user-1', 'user-2'])
  })
})

describe('transform', () => {
  it('changes what is queued, signed and posted; the caller and other destinations keep theirs', async () => {
    const transform = (message: Message): Message => {
      Object.assign(message, { userId: 'hidden', previousId: undefined, traits: undefined })
      return message
    }
    const { destination, clock, sent } = setUp({ transform })
    const queued: Message[] = []
    destination.observe({ queued: ({ bytes }) => queued.push(JSON.parse(String(Buffer.from(bytes)))) })
    const given = structuredClone(track)
    await destination.send(given)
    expect(given).toEqual(track)
    expect(queued).toMatchObject([{ userId: 'hidden' }])
    await clock.advance(0)
    expect(sent()).toMatchObject([{ userId: 'hidden', event: track.event, messageId: track.messageId }])
  })

  it('may make another message, also in a promise, and comes after the filter', async () => {
    const calls: string[] = []
    const { destination, clock, sent } = setUp({
      filter: ({ type }) => calls.push(`filter ${type}`) > 0,
      async transform({ userId }) {
        calls.push('transform')
        return { type: 'identify', userId: String(userId), traits: { seen: true } }
      },
    })
    await destination.send(track)
    await clock.advance(0)
    expect(sent()).toMatchObject([{ type: 'identify', traits: { seen: true }, version: 1 }])
    expect(calls).toEqual(['filter track', 'transform'])
  })

  it('groups by what is sent', async () => {
    const groups: unknown[] = []
    const { destination } = setUp({
      transform: (message) => ({ ...message, userId: 'other' }) as Message,
      groupBy: ({ userId }) => void groups.push(userId),
    })
    await destination.send(track)
    expect(groups).toEqual(['other'])
  })

  it.each<[string, (message: Message) => unknown]>([
    ['throws', fail],
    ['rejects', async () => fail()],
    ['returns nothing', () => undefined],
    ['returns what is no message', () => ({ type: 'track', userId: 'u' })],
    ['returns what cannot be written', (message) => ({ ...message, context: { size: 1n } })],
  ])('that %s: a dead letter with the original, which is never posted', async (_how, transform) => {
    const lines: string[] = []
    const stacks: unknown[] = []
    const error = (fields: object, text: string) => {
      lines.push(text)
      stacks.push((fields as { stack?: string }).stack)
    }
    const logger = { error, warn: error, info: error, debug: error }
    const { destination, clock, captured } = setUp({ transform: transform as never, logger })
    const reports: unknown[] = []
    const seen: string[] = []
    const see = ({ bytes }: { readonly bytes: Uint8Array }) => void seen.push(Buffer.from(bytes).toString())
    destination.observe({ queued: see, attempted: see })
    destination.observe({ attempted: (report) => reports.push(report) })
    const result = await destination.send(track)
    expect(result).toMatchObject({ queued: true })
    await clock.advance(0)
    expect(seen).toEqual(Array(2).fill(JSON.stringify(track)))
    expect(captured.requests).toEqual([])
    expect(reports).toMatchObject([{ status: 'failed', reason: 'transform_failed', error: expect.any(Error) }])
    expect(await destination.deadLetters({ reason: 'transform_failed' })).toMatchObject([
      { id: (result as { id: string }).id, message: track, attempts: [] },
    ])
    expect((await destination.deadLetters())[0]?.message).toEqual(track)
    const [{ error: text, stack } = {}] = await destination.deadLetters()
    expect(stack).toContain(text)
    expect(stack).toMatch(/\n +at /)
    expect(stacks).toEqual([expect.stringMatching(/\n +at /)])
    expect(await destination.health()).toMatchObject({ transformFailed: 1, deadLetters: 1 })
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain('transform_failed, because its `filter` or `transform` failed.')
  })

  it('that is mended: a redrive sends what it makes, under the same id; what it leaves out then is complete', async () => {
    let isBroken = true
    const filter = ({ type }: Message) => (isBroken ? fail() : type === 'track')
    const transform = (message: Message) => ({ ...message, userId: 'mended' }) as Message
    const { destination, clock, sent, last } = setUp({ filter, transform }, [500, 200])
    const result = await destination.send(track)
    await destination.send(page)
    await clock.advance(0)
    isBroken = false
    expect(await destination.redrive('all')).toBe(2)
    await clock.advance(60_000)
    expect(sent()).toMatchObject([{ userId: 'mended' }, { userId: 'mended' }])
    expect(last()).toMatchObject({
      status: 'delivered',
      message: { userId: 'mended' },
      id: (result as { id: string }).id,
    })
    expect(await destination.health()).toMatchObject({ skipped: { filtered: 1 }, deadLetters: 0, waiting: 0 })
  })

  it('that fails for a redriven message again: a dead letter again', async () => {
    const { destination, clock } = setUp({ transform: fail, onAttempt: () => {} })
    await destination.send(track)
    await clock.advance(0)
    await destination.redrive('all')
    await clock.advance(0)
    expect(await destination.health()).toMatchObject({ transformFailed: 2, deadLetters: 1 })
  })

  it('that failed: its message is forgotten with its user, and left over as it was given', async () => {
    const { destination } = setUp({ transform: fail, enabled: false, whenDisabled: 'hold', onAttempt: () => {} })
    await destination.send(track)
    await destination.send(page)
    expect(await destination.forget(String(track.userId))).toMatchObject({ deleted: 1 })
    expect(await destination.close({ graceMs: 0 })).toEqual([page])
  })

  it('that closes the destination: nothing is queued', async () => {
    const set = setUp({
      async transform(message) {
        void set.destination.close()
        return message
      },
    })
    await expect(set.destination.send(track)).rejects.toMatchObject({ code: 'shutting_down' })
  })

  it('that takes more than 5 seconds fails, and holds nothing up', async () => {
    const { destination, clock } = setUp({ transform: () => new Promise<never>(() => {}), onAttempt: () => {} })
    const sent = destination.send(track)
    await clock.advance(5_000)
    expect(await sent).toMatchObject({ queued: true })
    await clock.advance(5_000)
    expect(await destination.deadLetters()).toMatchObject([
      { reason: 'transform_failed', error: expect.stringContaining('must end within 5000 ms') },
    ])
  })

  it('that makes other bytes each time: each attempt of a message has the same', async () => {
    let calls = 0
    const transform = (message: Message) => {
      if (calls++ === 0) fail()
      return { ...message, messageId: `made ${calls}` } as Message
    }
    const { destination, clock, sent } = setUp({ transform }, [500, 500, 200])
    await destination.send(track)
    await clock.advance(3_600_000)
    expect(sent().map(({ messageId }) => messageId)).toEqual(Array(3).fill('made 2'))
  })

  it('that failed: what is in the queue has no group, whatever `groupBy` would throw for it', async () => {
    const groupBy = (message: Message & { tenant?: { id: string } }) => (message.tenant as { id: string }).id
    const { destination, clock } = setUp({ transform: fail, groupBy, onAttempt: () => {} })
    expect(await destination.send(track)).toMatchObject({ queued: true })
    await clock.advance(0)
    expect(await destination.deadLetters()).toHaveLength(1)
  })

  it('of a field that the message has from a stranger: it says nothing of what is needed', async () => {
    let isBroken = true
    const transform = (message: Message) => (isBroken ? fail() : message)
    const { destination, clock, sent } = setUp({ transform, onAttempt: () => {} })
    const needs = { own: false, source: 'nobody' }
    await destination.send({ ...track, 'hookline:needs': needs } as Message)
    await clock.advance(0)
    isBroken = false
    await destination.redrive('all')
    await clock.advance(0)
    expect(sent()).toMatchObject([{ messageId: 'm-1' }])
  })

  it('during which the destination closes: its message is left over, and not posted', async () => {
    let calls = 0
    let finish = (_message: Message): void => {}
    const transform = (): Promise<Message> =>
      calls++ === 0 ? Promise.reject(new Error('broken')) : new Promise((resolve) => (finish = resolve))
    const { destination, clock, captured } = setUp({ transform, onAttempt: () => {} })
    await destination.send(track)
    await clock.advance(0)
    expect(await destination.close({ graceMs: 0 })).toEqual([track])
    finish(track)
    await clock.advance(60_000)
    expect(captured.requests).toEqual([])
  })

  it('during which settings change: they count', async () => {
    let calls = 0
    const set = setUp({
      async transform(message) {
        if (calls++ === 0) fail()
        set.destination.disable()
        return message
      },
    })
    await set.destination.send(track)
    await set.clock.advance(60_000)
    expect(set.captured.requests).toEqual([])
  })

  it.each([
    ['filter', 'yes'],
    ['transform', {}],
    ['whenDisabled', 'keep'],
  ])('an option %s that is %j is a TypeError', (name, value) => {
    expect(() => setUp({ [name]: value })).toThrow(`\`${name}\` must be`)
  })
})

it('a process without the functions that failed sends nothing, also not the original', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'hookline-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true, maxRetries: 9 }))
  const captured = capture({ script: [200] })
  const open = (options: Partial<DestinationOptions>) =>
    createDestination({
      webhooks: [{ url: 'https://shop.example/webhooks' }],
      queue: sqliteQueue({ path: join(directory, 'outbox.sqlite') }),
      dispatcher: captured.dispatcher,
      onAttempt: () => {},
      ...options,
    })
  const before = open({ transform: fail, enabled: false, whenDisabled: 'hold' })
  await before.send(track)
  await before.close()
  const without = open({})
  await until(async () => (await without.health()).deadLetters === 1)
  expect(await without.deadLetters()).toMatchObject([
    { message: track, error: expect.stringContaining('its destination') },
  ])
  await without.close()
  const unchanged = open({ transform: (message) => message })
  await unchanged.redrive('all')
  await until(() => captured.requests.length === 1)
  await unchanged.close()
})

describe('whenDisabled: hold', () => {
  it('keeps messages until the destination is on again', async () => {
    const { destination, clock, sent } = setUp({ enabled: false, whenDisabled: 'hold' })
    expect(await destination.send(track)).toMatchObject({ queued: true })
    await clock.advance(60_000)
    expect(sent()).toEqual([])
    destination.enable()
    await clock.advance(10_000)
    expect(sent()).toMatchObject([{ type: 'track' }])
  })

  it('for four hours: then it is a dead letter', async () => {
    const { destination, clock } = setUp({ enabled: false, whenDisabled: 'hold', onAttempt: () => {} })
    await destination.send(track)
    await clock.advance(4.1 * 3_600_000)
    expect(await destination.deadLetters()).toMatchObject([{ reason: 'switched_off' }])
  })
})

describe('the functions of a source', () => {
  const call = { type: 'track', userId: 'u', event: 'E', messageId: 'm' }

  function collect(...sources: readonly Omit<Source, 'writeKey'>[]) {
    return setUpCollector({
      sources: sources.map((source, index) => ({ writeKey: index ? `${index}` : writeKey, ...source })),
    })
  }

  it('are for that source alone, and come before those of the destination', async () => {
    const calls: string[] = []
    const set = setUp({
      transform(message) {
        calls.push(`own ${message.userId}`)
        return message
      },
    })
    const { destination } = set
    const { post } = collect(
      {
        name: 'shop',
        destinations: [
          {
            destination,
            filter: ({ userId }) => userId !== 'left out',
            transform: (message) => ({ ...message, userId: 'of the shop' }) as Message,
          },
        ],
      },
      { name: 'site', destinations: [destination] },
    )
    await post('/v1/batch', { batch: [call, { ...call, messageId: 'n', userId: 'left out' }] })
    await post(
      '/v1/batch',
      { batch: [call], writeKey: '1' },
      { headers: { 'content-type': 'application/json', authorization: basic('1') } },
    )
    await set.clock.advance(0)
    expect(calls).toEqual(['own of the shop', 'own u'])
    expect(await destination.health()).toMatchObject({ skipped: { filtered: 1 } })
  })

  it('of two collectors with one name: the second is refused, unless neither has functions for the destination', async () => {
    const { destination, sent, clock } = setUp()
    const functions = { destination, transform: (message: Message) => ({ ...message, context: {} }) as Message }
    const { post } = collect({ name: 'shop', destinations: [functions] })
    const text = 'must be the only source of its name that has functions for its destination'
    for (const other of [destination, functions]) {
      expect(() => collect({ name: 'shop', destinations: [other] })).toThrow(text)
    }
    const other = collect({ name: 'site', destinations: [destination] })
    expect(() =>
      other.collector.update({ sources: [{ name: 'shop', writeKey, destinations: [destination] }] }),
    ).toThrow(text)
    await post('/v1/track', { ...call, context: { ip: '192.0.2.1' } })
    await clock.advance(0)
    expect(sent()).toMatchObject([{ context: {} }])
    const free = setUp().destination
    for (const _ of [1, 2]) collect({ name: 'shop', destinations: [free] })
  })

  it('leave the messages of other destinations as they are', async () => {
    const [one, two] = [setUp(), setUp()]
    const transform = (message: Message) => Object.assign(message, { userId: 'changed' }) as Message
    const { post } = collect({
      name: 'shop',
      destinations: [{ destination: one.destination, transform }, two.destination],
    })
    await post('/v1/track', call)
    await Promise.all([one.clock.advance(0), two.clock.advance(0)])
    expect([...one.sent(), ...two.sent()]).toMatchObject([{ userId: 'changed' }, { userId: 'u' }])
  })

  it('that fail: the call is accepted, its dead letter keeps the source, and a later process redrives it with the functions of then', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'hookline-'))
    onTestFinished(() => rm(directory, { recursive: true, force: true, maxRetries: 9 }))
    const captured = capture({ script: [200] })
    const open = () => {
      const queue = sqliteQueue({ path: join(directory, 'outbox.sqlite') })
      const webhooks = [{ url: 'https://shop.example/webhooks' }]
      return createDestination({ webhooks, queue, dispatcher: captured.dispatcher, onAttempt: () => {} })
    }
    const before = open()
    const { post } = collect({ name: 'shop', destinations: [{ destination: before, transform: fail }] })
    expect((await post('/v1/track', call)).status).toBe(200)
    await until(async () => (await before.health()).deadLetters === 1)
    await before.close()

    for (const destinations of [[], 'without functions'] as const) {
      const without = open()
      if (destinations.length > 0) collect({ name: 'shop', destinations: [without] })
      await without.redrive('all')
      await until(async () => (await without.health()).transformFailed === 1)
      await until(async () => (await without.health()).deadLetters === 1)
      expect(await without.deadLetters()).toMatchObject([{ error: expect.stringContaining("source 'shop'") }])
      await without.close()
    }
    expect(captured.requests).toEqual([])

    const after = open()
    const transform = (message: Message) => ({ ...message, userId: 'mended' }) as Message
    collect({ name: 'shop', destinations: [{ destination: after, transform }] })
    expect(await after.deadLetters()).toMatchObject([{ message: { event: 'E', userId: 'u' } }])
    await after.redrive('all')
    await until(() => captured.requests.length === 1)
    expect(JSON.parse(String(captured.requests[0]?.bytes))).toMatchObject({ event: 'E', userId: 'mended' })
    expect(String(captured.requests[0]?.bytes)).not.toContain('hookline:')
    await after.close()
  })

  it('change with an update of the collector, or go', async () => {
    const { destination, sent, clock } = setUp()
    const { collector, post } = collect({ name: 'shop', destinations: [{ destination, filter: () => false }] })
    await post('/v1/track', call)
    collector.update({ sources: [{ name: 'shop', writeKey, destinations: [destination] }] })
    await post('/v1/track', { ...call, messageId: 'n' })
    await clock.advance(0)
    expect(sent()).toMatchObject([{ messageId: 'n' }])
  })

  it.each<[string, (destination: object) => unknown, string]>([
    [
      'of your own destination',
      () => ({ destination: { submit: async () => [] } }),
      'must be one of createDestination',
    ],
    ['without a destination', () => ({ filter: () => true }), 'must be a destination'],
    ['that are no functions', (destination) => ({ destination, filter: true }), '.filter` must be a function'],
    [
      'beside the methods of the destination',
      (destination) => ({ ...destination, filter: () => false }),
      'must be a destination',
    ],
    ['with another name', (destination) => ({ destination, map: () => {} }), 'map'],
  ])('%s: a TypeError', (_what, make, text) => {
    const { destination } = setUp()
    expect(() => collect({ name: 'shop', destinations: [make(destination) as never] })).toThrow(text)
  })
})
