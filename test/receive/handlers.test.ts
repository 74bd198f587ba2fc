import { describe, expect, it, vi } from 'vitest'
import { memoryQueue } from '../../src/queues-memory.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { deliver, hostRequest, schemaOf, setUp, watchWarnings } from '../support/receive.ts'
import { throwing } from '../support/throwing.ts'

const { track, identify, group, page } = fixtures

describe('on', () => {
  it('calls a handler as often as it was registered, until off removes that, and nothing else', async () => {
    const { receiver } = setUp()
    const [one, two] = [vi.fn(), vi.fn()]
    receiver.on(['track', 'page'], one).on('track', one).on('track', 'Order Completed', one)
    receiver.on('*', one).on('track', two)
    await deliver(receiver, track)
    receiver.off('track', one).off('track', 'Order Completed', one).off('*', one).off('group', two)
    await deliver(receiver, track)
    await deliver(receiver, page)
    expect([one.mock.calls.length, two.mock.calls.length]).toEqual([4 + 1, 2])
  })

  it('calls those that match, each once: by type, event, audience, for all; within each as they were registered', async () => {
    const { receiver } = setUp()
    const calls: string[] = []
    const call = (name: string) => () => void calls.push(name)
    receiver.on('*', call('all')).on('track', 'Audience Entered', call('event')).on('track', call('type'))
    receiver.onAudience('VIP', { entered: call('audience') }).onAudience('vip', { entered: call('audience 2') })
    receiver.on('*', call('all 2')).on('track', 'Audience Entered', call('event 2'))
    receiver.on(['track', 'group', 'track'], call('type 2'))
    receiver.on('identify', call('another type')).on('track', 'Order Refunded', call('another event'))
    await deliver(receiver, { ...track, event: 'Audience Entered', properties: { audience_key: 'vip' } })
    expect(calls).toEqual(['type', 'type 2', 'event', 'event 2', 'audience', 'audience 2', 'all', 'all 2'])
  })

  it('takes the name of an event literally, also one that every object has', async () => {
    const { receiver } = setUp()
    const handler = vi.fn()
    receiver.on('track', 'constructor', handler).on('track', '__proto__', handler)
    await deliver(receiver, { ...track, event: 'toString' })
    expect(handler).not.toHaveBeenCalled()
    await deliver(receiver, { ...track, event: 'constructor' })
    await deliver(receiver, { ...track, event: '__proto__' })
    expect(handler).toHaveBeenCalledTimes(2)
  })

  it.each<[argument: string, selection: unknown[]]>([
    ['handler', ['track']],
    ['handler', ['track', 'Order Completed']],
    ['handler', ['track', 'Order Completed', undefined]],
    ['type', [() => {}]],
    ['type', []],
    ['type', ['tracks', () => {}]],
    ['type', [['track', 'tracks'], () => {}]],
    ['type', ['constructor', () => {}]],
    ['type', ['page', 'Home', () => {}]],
    ['type', [['track'], 'Home', () => {}]],
    ['type', [[], () => {}]],
    ['type', ['custom', () => {}]],
    ['event', ['track', '', () => {}]],
  ])('says which argument is wrong: %s of %j', (argument, selection) => {
    const { receiver } = setUp()
    for (const call of ['on', 'off'] as const) {
      const made = () => (receiver[call] as (...given: unknown[]) => unknown)(...selection)
      expect(made).toThrow(TypeError)
      expect(made).toThrow(new RegExp(`^\`${call}: ${argument}\` `))
    }
  })

  it('takes one event', () => {
    const on = setUp().receiver.on as (...given: unknown[]) => unknown
    expect(() => on('track', 'Order Completed', 'Order Refunded', () => {})).toThrow(TypeError)
  })

  describe('warns', () => {
    const warning = (name: string, nearMiss = '') => [
      expect.stringMatching(new RegExp(`${name}.*${nearMiss}`)),
      { code: 'HOOKLINE_NO_HANDLER' },
    ]

    it('once that a message was answered and no handler is registered', async () => {
      const warn = watchWarnings()
      const { receiver } = setUp()
      for (const _ of [1, 2]) expect(await receiver.handle(hostRequest())).toMatchObject({ status: 200 })
      expect(warn.mock.calls).toEqual([warning('`on`')])
    })

    it('not of a receiver with a handler or an inbox, and not who calls receive() and gets the message back', async () => {
      const warn = watchWarnings()
      const handling = setUp().receiver.on('track', () => {})
      for (const receiver of [handling, setUp({ inbox: memoryQueue() }).receiver]) {
        expect(await receiver.handle(hostRequest())).toMatchObject({ status: 200 })
      }
      await deliver(setUp().receiver, track)
      expect(warn).not.toHaveBeenCalled()
    })

    it('once of each event and type without a handler, with the near miss', async () => {
      const warn = watchWarnings()
      const { receiver } = setUp()
      receiver.on('track', 'Order Completed', () => {})
      for (const event of ['Order Complete', 'Order Complete', 'Cart\u001b[2J', 'Order Completed']) {
        await deliver(receiver, { type: 'track', event, userId: 'u' })
      }
      await deliver(receiver, page)
      expect(warn.mock.calls).toEqual([
        warning("'Order Complete'", "'Order Completed'"),
        warning("'Cart\\\\u\\{1b\\}\\[2J'"),
        warning('page'),
      ])
      expect((await receiver.health()).ignored).toBe(4)
    })

    it('of a schema without a handler, and of 20 names at most', async () => {
      const warn = watchWarnings()
      const schema = schemaOf((value) => ({ value: Object(value) }))
      const { receiver } = setUp({ events: { 'Order Completed': schema, 'Order Refunded': schema } })
      receiver.on('track', 'Order Complete', () => {}).on('track', 'Order Refunded', () => {})
      for (let count = 0; count < 30; count += 1) {
        await deliver(receiver, { type: 'track', event: `Guess ${count}`.padEnd(8 * count, 'x'), userId: 'u' })
      }
      expect(warn.mock.calls[0]).toEqual(warning("'Order Completed'", "'Order Complete'"))
      expect(warn).toHaveBeenCalledTimes(20)
      expect(warn.mock.calls[19]?.[0]).toContain(`'${'Guess 18'.padEnd(100, 'x')}'`)
    })
  })
})

it('all handlers run when some fail, and every failure is given at once', async () => {
  const { receiver, errors } = setUp()
  const last = vi.fn()
  receiver.on('track', throwing('thrown')).on('track', () => Promise.reject(new Error('rejected')))
  receiver.on('track', () => Promise.reject()).on('*', last)
  expect(await deliver(receiver, track)).toMatchObject({ status: 500 })
  expect(last).toHaveBeenCalledOnce()
  expect(errors).toHaveLength(1)
  const cause = errors[0]?.cause as AggregateError
  expect(cause).toBeInstanceOf(AggregateError)
  expect(cause.errors).toEqual([new Error('thrown'), new Error('rejected'), undefined])
})

it('a handler that changes the message changes nothing of who gets it', async () => {
  const { receiver } = setUp()
  const entered = vi.fn()
  receiver.on('identify', ({ traits }) => void Reflect.deleteProperty(traits ?? {}, 'high_value_users'))
  receiver.onAudience('High Value Users', { entered })
  await deliver(receiver, identify)
  expect(entered).toHaveBeenCalledOnce()
})

describe('onAudience', () => {
  const enter = { ...identify, traits: { high_value_users: true } }
  const leave = { ...identify, traits: { high_value_users: false } }
  const change = (event: string) => ({ ...track, event, properties: { audience_key: 'high_value_users' } })

  it('calls entered and exited, from identify and from track', async () => {
    const { receiver } = setUp()
    const [entered, exited, others] = [vi.fn(), vi.fn(), vi.fn()]
    receiver.onAudience('High Value Users', { entered, exited })
    receiver.onAudience('Trial Users', { entered: others, exited: others })
    for (const message of [enter, change('Audience Entered')]) await deliver(receiver, message)
    expect(entered.mock.calls.map(([message]) => message.type)).toEqual(['identify', 'track'])
    for (const message of [leave, change('Audience Exited')]) await deliver(receiver, message)
    expect(exited.mock.calls.map(([message]) => message.type)).toEqual(['identify', 'track'])
    await deliver(receiver, group)
    expect([entered.mock.calls.length, exited.mock.calls.length, others.mock.calls.length]).toEqual([2, 2, 0])
  })

  it('calls in the order of registration, whatever the order of the traits', async () => {
    const { receiver } = setUp()
    const calls: string[] = []
    for (const [index, name] of ['b', 'a', 'c', 'A', 'd', 'b'].entries()) {
      const call = (side: string) => () => void calls.push(`${index} ${name} ${side}`)
      receiver.onAudience(name, { entered: call('entered'), exited: call('exited') })
    }
    await deliver(receiver, { ...identify, traits: { d: 1, c: true, a: true, b: false, e: true } })
    expect(calls).toEqual(['0 b exited', '1 a entered', '2 c entered', '3 A entered', '5 b exited'])
  })
})
