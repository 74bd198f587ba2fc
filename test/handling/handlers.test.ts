import { describe, expect, it, vi } from 'vitest'
import { fixtures } from '../../src/testing/fixtures.ts'
import { deliver, setUp } from '../support/receive.ts'
import { until } from '../support/until.ts'

const { track, identify, group, page } = fixtures

describe('on', () => {
  it('calls by type, list of types, event name and for all, each once', async () => {
    const { receiver } = setUp()
    const calls: string[] = []
    receiver
      .on('track', () => calls.push('type'))
      .on(['track', 'group', 'track'], () => calls.push('list'))
      .on('track', 'Order Completed', () => calls.push('event'))
      .on('track', 'Order Refunded', () => calls.push('another event'))
      .on('identify', () => calls.push('another type'))
      .on('*', () => calls.push('all'))
    await deliver(receiver, track)
    expect(calls.sort()).toEqual(['all', 'event', 'list', 'type'])
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

  it('answers 200 for a message without a handler', async () => {
    expect(await deliver(setUp().receiver, page)).toMatchObject({ status: 200 })
  })

  it.each([
    ['no handler', ['track']],
    ['a handler that is no function', ['track', 'Order Completed']],
    ['an unknown type', ['tracks', () => {}]],
    ['an unknown type in a list', [['track', 'tracks'], () => {}]],
    ['a type that every object has', ['constructor', () => {}]],
    ['an event of another type', ['page', 'Home', () => {}]],
    ['an empty list', [[], () => {}]],
    ['an empty event', ['track', '', () => {}]],
  ])('refuses %s with a TypeError', (_what, selection) => {
    const { receiver } = setUp()
    expect(() => receiver.on(...(selection as unknown as Parameters<typeof receiver.on>))).toThrow(TypeError)
    expect(() => receiver.off(...(selection as unknown as Parameters<typeof receiver.off>))).toThrow(TypeError)
  })
})

describe('off', () => {
  it('removes what on registered, and nothing else', async () => {
    const { receiver } = setUp()
    const [one, two] = [vi.fn(), vi.fn()]
    receiver.on(['track', 'page'], one).on('track', 'Order Completed', one).on('*', one).on('track', two)
    receiver.off('track', one).off('track', 'Order Completed', one).off('*', one).off('group', two)
    await deliver(receiver, track)
    await deliver(receiver, page)
    expect([one.mock.calls.length, two.mock.calls.length]).toEqual([1, 1])
  })
})

describe('dispatch', () => {
  it('starts all handlers before the first is done', async () => {
    const { receiver } = setUp()
    const started: string[] = []
    let finish: () => void = () => {}
    const first = new Promise<void>((resolve) => {
      finish = resolve
    })
    receiver.on('track', () => {
      started.push('first')
      return first
    })
    receiver.on('track', () => {
      started.push('second')
    })
    const received = deliver(receiver, track)
    await until(() => started.length === 2)
    finish()
    expect(await received).toMatchObject({ status: 200 })
  })

  it('runs all of them when some fail, then gives every failure at once', async () => {
    const { receiver, errors } = setUp()
    const last = vi.fn()
    receiver
      .on('track', () => {
        throw new Error('thrown')
      })
      .on('track', () => Promise.reject(new Error('rejected')))
      .on('track', () => Promise.reject())
      .on('*', last)
    expect(await deliver(receiver, track)).toMatchObject({ status: 500 })
    expect(last).toHaveBeenCalledOnce()
    expect(errors).toHaveLength(1)
    expect(errors[0]?.message).toBe('Every handler must succeed. Got 3 of 4 that failed. See `cause`.')
    const cause = errors[0]?.cause as AggregateError
    expect(cause).toBeInstanceOf(AggregateError)
    expect(cause.errors).toEqual([new Error('thrown'), new Error('rejected'), undefined])
  })

  it('waits for any thenable', async () => {
    const { receiver } = setUp()
    // biome-ignore lint/suspicious/noThenProperty: a thenable is what is tested
    receiver.on('track', () => ({ then: (_done: unknown, fail: (error: Error) => void) => fail(new Error('no')) }))
    expect(await deliver(receiver, track)).toMatchObject({ status: 500 })
  })

  it('is not changed by a handler that changes the message', async () => {
    const { receiver } = setUp()
    const entered = vi.fn()
    receiver.on('identify', ({ traits }) => void Reflect.deleteProperty(traits ?? {}, 'high_value_users'))
    receiver.onAudience('High Value Users', { entered })
    await deliver(receiver, identify)
    expect(entered).toHaveBeenCalledOnce()
  })

  it('is not changed by handlers that come and go while it runs', async () => {
    const { receiver } = setUp()
    const late = vi.fn()
    const once = vi.fn(() => void receiver.off('track', once).on('track', late).on('*', late))
    receiver.on('track', once)
    await deliver(receiver, track)
    expect([once.mock.calls.length, late.mock.calls.length]).toEqual([1, 0])
    await deliver(receiver, track)
    expect([once.mock.calls.length, late.mock.calls.length]).toEqual([1, 2])
  })
})

describe('onAudience', () => {
  const enter = { ...identify, traits: { high_value_users: true } }
  const leave = { ...identify, traits: { high_value_users: false } }
  const change = (event: string) => ({ ...track, event, properties: { audience_key: 'high_value_users' } })

  it('calls entered and exited, from identify and from track', async () => {
    const { receiver } = setUp()
    const [entered, exited, others] = [vi.fn(), vi.fn(), vi.fn()]
    receiver
      .onAudience('High Value Users', { entered, exited })
      .onAudience('Trial Users', { entered: others, exited: others })
    for (const message of [enter, change('Audience Entered')]) await deliver(receiver, message)
    expect(entered.mock.calls.map(([message]) => message.type)).toEqual(['identify', 'track'])
    for (const message of [leave, change('Audience Exited')]) await deliver(receiver, message)
    expect(exited.mock.calls.map(([message]) => message.type)).toEqual(['identify', 'track'])
    await deliver(receiver, group)
    expect([entered.mock.calls.length, exited.mock.calls.length, others.mock.calls.length]).toEqual([2, 2, 0])
  })

  it('is fine with one of the two', async () => {
    const { receiver } = setUp()
    const exited = vi.fn()
    receiver.onAudience('High Value Users', { exited })
    expect(await deliver(receiver, enter)).toMatchObject({ status: 200 })
    await deliver(receiver, leave)
    expect(exited).toHaveBeenCalledOnce()
  })

  it.each([
    ['no name', [undefined, { entered: () => {} }]],
    ['a name without letters', ['!', { entered: () => {} }]],
    ['no handlers', ['Trial Users', {}]],
    ['nothing for handlers', ['Trial Users', undefined]],
    ['a handler that is no function', ['Trial Users', { entered: 'yes' }]],
  ])('refuses %s with a TypeError', (_what, given) => {
    const { receiver } = setUp()
    expect(() => receiver.onAudience(...(given as unknown as Parameters<typeof receiver.onAudience>))).toThrow(
      TypeError,
    )
  })
})
