import { describe, expect, it, onTestFinished } from 'vitest'
import { memberships } from '../../src/protocol/audience.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { createDestination } from '../../src/send/create-destination.ts'
import type { DestinationOptions } from '../../src/send/destination-options.ts'
import { capture, manualClock } from '../../src/testing.ts'

function setUp(options: Partial<DestinationOptions> = {}) {
  const clock = manualClock()
  const captured = capture()
  const destination = createDestination({
    webhooks: [{ url: 'https://shop.example/' }],
    dispatcher: captured.dispatcher,
    clock,
    ...options,
  })
  onTestFinished(() => void destination.close({ graceMs: 0 }))
  const identifies = () =>
    captured.messages.map((message) => [message.type, message.userId, 'traits' in message && message.traits])
  return { clock, captured, destination, identifies }
}

describe('syncAudience', () => {
  it('the first time: an identify for every user in it, under its snake_case name', async () => {
    const { clock, destination, identifies, captured } = setUp()
    const kept = await destination.syncAudience('High Value Users', ['ada', 'bob', 'ada'])
    await clock.advance(0)

    expect(identifies()).toEqual([
      ['identify', 'ada', { high_value_users: true }],
      ['identify', 'bob', { high_value_users: true }],
    ])
    expect(kept).toEqual(new Set(['ada', 'bob']))
    expect(captured.messages.map(memberships)).toEqual(Array(2).fill([['high_value_users', true]]))
  })

  it('later: only for users whose membership changed', async () => {
    const { clock, destination, identifies } = setUp()
    const kept = await destination.syncAudience('Beta', ['ada', 'cyd'], { previous: ['ada', 'bob'] })
    await clock.advance(0)

    expect(identifies()).toEqual([
      ['identify', 'cyd', { beta: true }],
      ['identify', 'bob', { beta: false }],
    ])
    expect(kept).toEqual(new Set(['ada', 'cyd']))
    expect(await destination.syncAudience('Beta', new Set(['ada', 'cyd']), { previous: kept })).toEqual(kept)
    await clock.advance(0)
    expect(identifies()).toHaveLength(2)
  })

  it('while the destination is off: nothing is sent, and the next sync makes up for it', async () => {
    const { clock, destination, identifies } = setUp({ enabled: false })
    const kept = await destination.syncAudience('Beta', ['ada', 'bob'], { previous: ['ada'] })
    expect(kept).toEqual(new Set(['ada']))

    destination.enable()
    expect(await destination.syncAudience('Beta', ['ada', 'bob'], { previous: kept })).toEqual(new Set(['ada', 'bob']))
    await clock.advance(0)
    expect(identifies()).toEqual([['identify', 'bob', { beta: true }]])
  })

  it('larger than the queue: waits for room, and sends each once', async () => {
    const clock = manualClock()
    const { destination, identifies } = setUp({ clock, queue: memoryQueue({ clock, maxJobs: 30 }) })
    const members = Array.from({ length: 300 }, (_, index) => `user-${index}`)
    const synced = destination.syncAudience('Everybody', members)
    await clock.advance(600_000)

    expect(await synced).toEqual(new Set(members))
    expect(
      identifies()
        .map(([, userId]) => userId)
        .sort(),
    ).toEqual([...members].sort())
  })

  it('larger than the queue will ever have room for: throws, and does not wait for ever', async () => {
    const clock = manualClock()
    const { destination } = setUp({ clock, queue: memoryQueue({ clock, maxBytes: 20 }) })
    const synced = destination.syncAudience('Beta', ['ada'])
    await expect(synced).rejects.toMatchObject({ code: 'queue_full' })
  })

  it('refuses an unknown option: without previous, every member would be sent again', async () => {
    const { destination } = setUp()
    const options = { prevous: ['ada'] } as never

    await expect(destination.syncAudience('Beta', ['ada'], options)).rejects.toThrow('`prevous`')
    await expect(destination.syncTrait('Beta', [['ada', 1]], options)).rejects.toThrow('`prevous`')
  })

  it.each([
    ['a name without letters', '!!', ['ada'], /name .*letter/],
    ['no list', 'Beta', 'ada', '`members`'],
    ['an empty userId', 'Beta', [''], '`members`'],
  ])('%s is a TypeError', async (_case, name, members, message: string | RegExp) => {
    const { destination } = setUp()
    await expect(destination.syncAudience(name as never, members as never)).rejects.toThrow(TypeError)
    await expect(destination.syncAudience(name as never, members as never)).rejects.toThrow(message)
  })
})

describe('syncTrait', () => {
  it('the first time: an identify for every user; later: for changed values, and null for removed ones', async () => {
    const { clock, destination, identifies } = setUp()
    const kept = await destination.syncTrait(
      'Total Spent',
      new Map([
        ['ada', 10],
        ['bob', 20],
        ['cyd', 30],
      ]),
    )
    await clock.advance(0)
    expect(identifies()).toEqual([
      ['identify', 'ada', { total_spent: 10 }],
      ['identify', 'bob', { total_spent: 20 }],
      ['identify', 'cyd', { total_spent: 30 }],
    ])

    const next = await destination.syncTrait(
      'Total Spent',
      [
        ['ada', 10],
        ['bob', 25],
      ],
      { previous: kept },
    )
    await clock.advance(0)
    expect(identifies().slice(3)).toEqual([
      ['identify', 'bob', { total_spent: 25 }],
      ['identify', 'cyd', { total_spent: null }],
    ])
    expect(next).toEqual(
      new Map([
        ['ada', 10],
        ['bob', 25],
      ]),
    )
  })

  it('compares values, not objects, and sees one that was changed in place', async () => {
    const { clock, destination, identifies } = setUp()
    const favourites = ['a', 'b']
    const kept = await destination.syncTrait('Favourites', [['ada', favourites]])
    await destination.syncTrait('Favourites', [['ada', ['a', 'b']]], { previous: kept })
    await clock.advance(0)
    expect(identifies()).toHaveLength(1)

    favourites.push('c')
    await destination.syncTrait('Favourites', [['ada', favourites]], { previous: kept })
    await clock.advance(0)
    expect(identifies()[1]).toEqual(['identify', 'ada', { favourites: ['a', 'b', 'c'] }])
  })

  it.each([
    [['ada', 'bob'], 'an entry that is a string'],
    [new Set(['ada']), 'an entry that is a string'],
    ['ada', 'a string'],
  ])('%j for values is a TypeError', async (values, found) => {
    const { destination } = setUp()
    await expect(destination.syncTrait('Plan', values as never)).rejects.toThrow(
      `\`values\` must be a Map or a list of pairs. Got ${found}. Pass pairs, for example [['user-1', 12]].`,
    )
  })
})
