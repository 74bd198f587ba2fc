import { describe, expect, it } from 'vitest'
import { memberships } from '../../src/protocol/audience.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import type { DestinationOptions } from '../../src/send/destination-options.ts'
import { manualClock, type Script } from '../../src/testing.ts'
import { setUp as setUpDestination } from './set-up.ts'

function setUp(options: Partial<DestinationOptions> = {}, script: Script = [200]) {
  const set = setUpDestination(script, options)
  const identifies = () =>
    set.captured.messages.map((message) => [message.type, message.userId, 'traits' in message && message.traits])
  return { ...set, identifies }
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
    const changes = identifies()
    const again = await destination.syncAudience('Beta', new Set(['ada', 'cyd']), { previous: kept })
    await clock.advance(0)

    expect(changes).toEqual([
      ['identify', 'cyd', { beta: true }],
      ['identify', 'bob', { beta: false }],
    ])
    expect([kept, again]).toEqual(Array(2).fill(new Set(['ada', 'cyd'])))
    expect(identifies()).toEqual(changes)
  })

  it('while the destination is off: nothing is sent, and the next sync makes up for it', async () => {
    const { clock, destination, identifies } = setUp({ enabled: false })
    const kept = await destination.syncAudience('Beta', ['ada', 'bob'], { previous: ['ada'] })
    destination.enable()
    const later = await destination.syncAudience('Beta', ['ada', 'bob'], { previous: kept })
    await clock.advance(0)
    expect([kept, later]).toEqual([new Set(['ada']), new Set(['ada', 'bob'])])
    expect(identifies()).toEqual([['identify', 'bob', { beta: true }]])
  })

  it('larger than the queue: waits for room, and sends each once', async () => {
    const clock = manualClock()
    const { destination, identifies } = setUp({ clock, queue: memoryQueue({ clock, maxJobs: 1 }) }, [{ delayMs: 5 }])
    const members = Array.from({ length: 300 }, (_, index) => `user-${index}`)

    const synced = destination.syncAudience('Everybody', members)
    await clock.advance(600_000)

    expect(await synced).toEqual(new Set(members))
    const users = identifies().map(([, userId]) => userId)
    expect(users.sort()).toEqual([...members].sort())
  })

  it('larger than the queue will ever have room for: throws, and does not wait for ever', async () => {
    const clock = manualClock()
    const { destination } = setUp({ clock, queue: memoryQueue({ clock, maxBytes: 20 }) })
    await expect(destination.syncAudience('Beta', ['ada'])).rejects.toMatchObject({ code: 'queue_full' })
  })
})

describe('syncTrait', () => {
  it('the first time: an identify for every user; later: for changed values, and null for removed ones', async () => {
    const { clock, destination, identifies } = setUp()

    const kept = await destination.syncTrait('Total Spent', Object.entries({ ada: 10, bob: 20, cyd: 30 }))
    await clock.advance(0)
    expect(identifies()).toEqual([
      ['identify', 'ada', { total_spent: 10 }],
      ['identify', 'bob', { total_spent: 20 }],
      ['identify', 'cyd', { total_spent: 30 }],
    ])

    const values = new Map(Object.entries({ ada: 10, bob: 25 }))
    const next = await destination.syncTrait('Total Spent', values, { previous: kept })
    await clock.advance(0)
    expect(identifies().slice(3)).toEqual([
      ['identify', 'bob', { total_spent: 25 }],
      ['identify', 'cyd', { total_spent: null }],
    ])
    expect(next).toEqual(values)
  })

  it('compares values, not objects, and sees one that was changed in place', async () => {
    const { clock, destination, identifies } = setUp()
    const favourites = ['a', 'b']

    const kept = await destination.syncTrait('Favourites', [['ada', favourites]])
    await destination.syncTrait('Favourites', [['ada', ['a', 'b']]], { previous: kept })
    favourites.push('c')
    await destination.syncTrait('Favourites', [['ada', favourites]], { previous: kept })
    await clock.advance(0)

    const values = identifies().map(([, , traits]) => traits)
    expect(values).toEqual([{ favourites: ['a', 'b'] }, { favourites: ['a', 'b', 'c'] }])
  })
})
