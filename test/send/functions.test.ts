/** Functions of a destination: what they leave out, change, and fail for. */

import { describe, expect, it } from 'vitest'
import type { Message } from '../../src/protocol/message.ts'
import type { DestinationOptions } from '../../src/send/destination-options.ts'
import { fixtures } from '../../src/testing.ts'
import { setUpCollector, writeKey } from '../support/collect.ts'
import { keepLines } from '../support/logger.ts'
import { throwing } from '../support/throwing.ts'
import { HOUR, setUp as setUpDestination } from './set-up.ts'

const track = { ...fixtures.track, messageId: 'm-1', context: {} }
const page = { ...fixtures.page, messageId: 'm-2', context: {}, userId: 'user-2' }

function setUp(options: Partial<DestinationOptions> = {}, script: Parameters<typeof setUpDestination>[0] = [200]) {
  const set = setUpDestination(script, options)
  const sent = () => set.captured.requests.map(({ bytes }) => JSON.parse(String(bytes)))
  return { ...set, sent }
}

const fail = throwing('the plan is missing')

describe('filter', () => {
  it('leaves messages out, which are counted and reported', async () => {
    const { destination, clock, sent, start } = setUp({ filter: ({ type }) => type === 'track' })
    const skipped: unknown[] = []
    destination.observe({ skipped: (event) => skipped.push(event) })

    const { id } = (await destination.send(page)) as { id: string }
    await destination.send(track)
    await clock.advance(0)

    expect(sent()).toMatchObject([{ type: 'track' }])
    expect(skipped).toEqual([{ id, message: page, reason: 'filtered', at: start }])
    expect(await destination.health()).toMatchObject({ skipped: { filtered: 1 }, transformFailed: 0, waiting: 0 })
  })

  it.each([undefined, null, 0, 'yes'])('that returns %j makes a dead letter: nothing is lost', async (answer) => {
    const { destination, clock } = setUp({ filter: () => answer as never })
    await destination.send(track)
    await clock.advance(0)
    expect(await destination.deadLetters()).toMatchObject([{ reason: 'transform_failed', message: track }])
  })
})

describe('transform', () => {
  it('changes what is signed and posted; the caller keeps its own, and so do the queue and its group', async () => {
    const transform = (message: Message): Message => {
      Object.assign(message, { userId: 'hidden', previousId: undefined, traits: undefined })
      return message
    }
    const groups: unknown[] = []
    const groupBy = ({ userId }: Message) => void groups.push(userId)
    const filter = (message: Message) => Object.assign(message, { event: 'changed by a filter' }) !== undefined
    const { destination, clock, sent, reports } = setUp({ filter, transform, groupBy }, [400])
    const queued: Message[] = []
    destination.observe({ queued: ({ bytes }) => queued.push(JSON.parse(String(Buffer.from(bytes)))) })
    const given = structuredClone(track)

    await destination.send(given)
    await clock.advance(0)

    expect(given).toEqual(track)
    expect(queued).toEqual([track])
    expect(groups).toEqual([track.userId])
    expect(sent()).toMatchObject([{ userId: 'hidden', event: track.event, messageId: track.messageId }])
    expect(reports).toMatchObject([{ reason: 'refused', message: { userId: 'hidden' } }])
    expect(await destination.deadLetters()).toMatchObject([{ reason: 'refused', message: track }])
  })

  it('may make another message, also in a promise, comes after the filter, and is called once for all attempts', async () => {
    const calls: string[] = []
    const { destination, clock, sent } = setUp(
      {
        filter: ({ type }) => calls.push(`filter ${type}`) > 0,
        async transform({ userId }) {
          return { type: 'identify', userId: String(userId), traits: { calls: calls.push('transform') } }
        },
      },
      [500, 500, 200],
    )

    await destination.send(track)
    await clock.advance(HOUR)

    expect(sent()).toMatchObject(Array(3).fill({ type: 'identify', traits: { calls: 2 }, version: 1 }))
    expect(calls).toEqual(['filter track', 'transform'])
  })

  it.each<[string, (message: Message) => unknown]>([
    ['throws', fail],
    ['rejects', async () => fail()],
    ['returns nothing', () => undefined],
    ['returns what is no message', () => ({ type: 'track', userId: 'u' })],
    ['returns what cannot be written', (message) => ({ ...message, context: { size: 1n } })],
  ])('that %s: a dead letter with the original, which is never posted', async (_how, transform) => {
    const { logger, fields } = keepLines()
    const { destination, clock, captured, reports } = setUp({ transform: transform as never, logger })
    const seen: string[] = []
    const see = ({ bytes }: { readonly bytes: Uint8Array }) => void seen.push(Buffer.from(bytes).toString())
    destination.observe({ queued: see, attempted: see })

    const { id } = (await destination.send(track)) as { id: string }
    await clock.advance(0)

    expect(seen).toEqual(Array(2).fill(JSON.stringify(track)))
    expect(captured.requests).toEqual([])
    expect(reports).toMatchObject([{ status: 'failed', reason: 'transform_failed', error: expect.any(Error) }])
    const [letter] = await destination.deadLetters({ reason: 'transform_failed' })
    expect(letter).toMatchObject({ id, attempts: [], stack: expect.stringMatching(/\n +at /) })
    expect(letter?.message).toEqual(track)
    expect(letter?.stack).toContain(letter?.error)
    expect(fields()).toMatchObject([{ reason: 'transform_failed', stack: expect.stringMatching(/\n +at /) }])
    expect(await destination.health()).toMatchObject({ transformFailed: 1, deadLetters: 1 })
  })

  it('that is mended: a redrive sends what it makes, under the same id; what it leaves out then is complete', async () => {
    let isBroken = true
    const filter = ({ type }: Message) => (isBroken ? fail() : type === 'track')
    const transform = (message: Message) => ({ ...message, userId: 'mended' }) as Message
    const { destination, clock, sent, last } = setUp({ filter, transform }, [500, 200])
    const { id } = (await destination.send(track)) as { id: string }
    await destination.send(page)
    await clock.advance(0)

    isBroken = false
    expect(await destination.redrive('all')).toBe(2)
    await clock.advance(60_000)

    expect(sent()).toMatchObject([{ userId: 'mended' }, { userId: 'mended' }])
    expect(last()).toMatchObject({ status: 'delivered', message: { userId: 'mended' }, id })
    expect(await destination.health()).toMatchObject({ skipped: { filtered: 1 }, deadLetters: 0, waiting: 0 })
  })

  it('that takes more than 5 seconds fails, and holds nothing up', async () => {
    const { destination, clock } = setUp({ transform: () => new Promise<never>(() => {}) })
    expect(await destination.send(track)).toMatchObject({ queued: true })
    await clock.advance(4_999)
    expect(await destination.deadLetters()).toEqual([])
    await clock.advance(1)
    const error = expect.stringContaining('5000 ms')
    expect(await destination.deadLetters()).toMatchObject([{ reason: 'transform_failed', error }])
  })

  it('during which the destination closes: its message is left over as it was, and not posted', async () => {
    const made = Promise.withResolvers<Message>()
    const { destination, clock, captured } = setUp({ transform: () => made.promise })
    await destination.send(track)
    await clock.advance(0)

    expect(await destination.close({ graceMs: 0 })).toEqual([track])
    made.resolve(page)
    await clock.advance(60_000)

    expect(captured.requests).toEqual([])
  })

  it('during which settings change: they count', async () => {
    const { destination, clock, captured } = setUp({
      async transform(message) {
        destination.disable()
        return message
      },
    })

    await destination.send(track)
    await clock.advance(60_000)

    expect(captured.requests).toEqual([])
  })
})

describe('the context of a function', () => {
  it('has the source of the collector that accepted the call, also after a redrive; nothing of it is posted', async () => {
    const seen: unknown[] = []
    const { destination, clock, sent, captured } = setUp({
      filter: (_message, context) => seen.push(context) > 0,
      transform(message, context) {
        seen.push(context)
        return seen.length === 2 ? fail() : message
      },
    })
    const { post } = setUpCollector({ sources: [{ name: 'shop "1"', writeKey, destinations: [destination] }] })

    await post('/v1/track', { type: 'track', userId: 'u', event: 'E', messageId: 'm' })
    await clock.advance(0)
    expect(await destination.deadLetters({ userId: 'u' })).toMatchObject([{ message: { event: 'E' } }])
    await destination.redrive('all')
    await clock.advance(0)

    expect(seen).toEqual(Array(4).fill({ source: 'shop "1"' }))
    expect(sent()).toMatchObject([{ event: 'E', userId: 'u' }])
    expect(String(captured.requests[0]?.bytes)).not.toContain('shop')
  })

  it('has no source for a message that was given to the destination, unless its submission names one', async () => {
    const seen: unknown[] = []
    const { destination, clock } = setUp({ filter: (_message, { source }) => seen.push(source) > 0 })
    await destination.send(track)
    await destination.submit([{ message: track, source: 'import' }])
    await clock.advance(0)
    expect(seen).toEqual([undefined, 'import'])
  })
})

it.each([
  ['that a function would change', { transform: fail }, undefined],
  ['that has a source', {}, 'import'],
])(
  'held while the destination is off, a message %s is forgotten with its user, and left over as it was given',
  async (_what, options, source) => {
    const { destination } = setUp({ ...options, enabled: false, whenDisabled: 'hold' })
    const submissions = [track, page].map((message) => ({ message: message as Message, ...(source && { source }) }))
    await destination.submit(submissions)

    expect(await destination.forget(String(track.userId))).toMatchObject({ deleted: 1 })

    expect(await destination.close({ graceMs: 0 })).toEqual([page])
  },
)
