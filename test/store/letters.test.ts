/** Dead letters by a filter: of an inbox, and of a destination. */

import { describe, expect, it, vi } from 'vitest'
import type { InboxLetterFilter } from '../../src/receive/stored-message.ts'
import { createDestination } from '../../src/send/create-destination.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { startEndpoint } from '../../src/testing/scripted-endpoint.ts'
import { setUpInbox } from '../support/inbox.ts'
import { deliver } from '../support/receive.ts'
import { until } from '../support/until.ts'

const HOUR = 3_600_000

/** Messages of three hours that failed: of two events and a page, by the handlers `crm` and `mail`, and one that is no message. */
async function failMessages() {
  const set = setUpInbox({ retries: [] })
  const { receiver, clock } = set
  const crm = vi.fn(async ({ type }: { readonly type: string }) => {
    if (type !== 'page') throw new Error('no')
  })
  const mail = vi.fn().mockRejectedValue(new Error('no'))
  receiver.on('*', crm, { name: 'crm' }).on('page', mail, { name: 'mail' }).start()
  const startedAt = clock.now()
  for (const body of [
    { ...fixtures.track, event: 'Order Completed', userId: 'ada', messageId: '0' },
    { ...fixtures.track, event: 'Order Refunded', userId: 'bob', messageId: '1' },
    { ...fixtures.page, userId: 'ada', messageId: '2' },
    'no \\ message',
  ]) {
    await deliver(receiver, body)
    await clock.advance(HOUR)
  }
  const hoursLater = (hours: number): Date => new Date(startedAt + hours * HOUR)
  const left = async (filter?: InboxLetterFilter) =>
    (await receiver.deadLetters(filter)).map(({ message }) => message?.messageId)
  return { ...set, crm, mail, hoursLater, left }
}

type Set = Awaited<ReturnType<typeof failMessages>>

describe('the dead letters of an inbox', () => {
  it.each<[string, (at: Set) => InboxLetterFilter, (string | undefined)[]]>([
    ['a type', () => ({ type: 'track' }), ['0', '1']],
    ['an event', () => ({ event: 'Order Refunded' }), ['1']],
    ['a user', () => ({ userId: 'ada' }), ['0', '2']],
    ['a type and a user', () => ({ type: 'track', userId: 'ada' }), ['0']],
    ['fields', () => ({ where: { userId: 'ada', messageId: '2' } }), ['2']],
    ['times', ({ hoursLater }) => ({ since: hoursLater(1), until: hoursLater(3) }), ['1', '2']],
    ['a reason', () => ({ reason: 'body_not_json' }), [undefined]],
    ['a handler that failed', () => ({ handler: 'crm' }), ['0', '1']],
    ['a handler and a user', () => ({ handler: 'mail', userId: 'ada' }), ['2']],
    ['what none has', () => ({ handler: 'warehouse' }), []],
  ])('by %s: listed, counted, and redriven', async (_, filterOf, expected) => {
    const set = await failMessages()
    const { receiver, left, clock, crm, mail } = set
    const filter = filterOf(set)
    expect(await left(filter)).toEqual(expected)
    const { count, reasons } = await receiver.redrive(filter, { dryRun: true })
    expect(count).toBe(expected.length)
    expect(Object.values(reasons).reduce((sum, each) => sum + each, 0)).toBe(count)
    expect(await left()).toHaveLength(4)
    crm.mockResolvedValue(undefined)
    mail.mockResolvedValue(undefined)
    expect(await receiver.redrive(filter)).toBe(expected.length)
    await clock.advance(0)
    const stay = ['0', '1', '2', undefined].filter((id) => !expected.includes(id))
    expect(new Set(await left())).toEqual(new Set([...stay, undefined])) // What is no message fails again.
  })

  it('are counted by their reasons, also all and by ids', async () => {
    const { receiver } = await failMessages()
    const count = (which: 'all' | string[]) => receiver.redrive(which as 'all', { dryRun: true })
    const [first, ...others] = await receiver.deadLetters({ maxBytes: 1 })
    expect(others).toEqual([])
    expect(await count('all')).toEqual({ count: 4, reasons: { handler_failed: 3, body_not_json: 1 } })
    expect(await count([first?.id ?? ''])).toEqual({ count: 1, reasons: { handler_failed: 1 } })
    expect(await count([])).toEqual({ count: 0, reasons: {} })
  })

  it('are dropped by the same filters', async () => {
    const { receiver, left, hoursLater } = await failMessages()
    expect(await receiver.drop({ event: 'Order Completed', until: hoursLater(0) })).toBe(0)
    expect(await receiver.drop({ event: 'Order Completed', olderThan: hoursLater(0) })).toBe(0)
    expect(await receiver.drop({ event: 'Order Completed', olderThan: hoursLater(1) })).toBe(1)
    expect(await receiver.drop({ handler: 'mail' })).toBe(1)
    expect(await left()).toEqual(['1', undefined])
  })

  it.each<[string, (receiver: Set['receiver']) => Promise<unknown>, string]>([
    ['an unknown filter', (receiver) => receiver.redrive({ evnt: 'x' } as never), '`event`'],
    ['a filter without any', (receiver) => receiver.redrive({}), "'all'"],
    ['a filter of what is undefined', (receiver) => receiver.drop({ type: undefined } as never), "'all'"],
    ['nothing', (receiver) => receiver.redrive(undefined as never, { dryRun: true }), "'all'"],
    ['a wrong limit', (receiver) => receiver.deadLetters({ type: 'track', limit: 0 }), 'limit`'],
    ['a wrong handler', (receiver) => receiver.redrive({ handler: '' }), '`redrive: handler`'],
    ['a wrong option', (receiver) => receiver.redrive('all', { dryrun: true } as never), '`dryRun`'],
  ])('%s is refused, and nothing changes', async (_, call, message) => {
    const { receiver, left, crm, clock } = await failMessages()
    await expect(call(receiver)).rejects.toThrow(message)
    await clock.advance(0)
    expect([await left(), crm.mock.calls.length]).toEqual([['0', '1', '2', undefined], 3])
  })
})

it('those of a destination are selected by the URL that did not take them', async () => {
  await using refuses = await startEndpoint({ script: Array.from({ length: 9 }, () => 404) })
  const url = `${refuses.url}?token=secret`
  const destination = createDestination({ webhooks: [{ url }], sharedSecret: 'a secret', onAttempt() {} })
  for (const userId of ['ada', 'bob']) await destination.track({ userId, event: 'Order Completed' })
  await until(async () => (await destination.deadLetters()).length === 2)
  expect(await destination.deadLetters({ url })).toHaveLength(2)
  expect(await destination.deadLetters({ url, userId: 'ada' })).toHaveLength(1)
  expect(await destination.deadLetters({ url: refuses.url })).toEqual([])
  expect(await destination.redrive({ url }, { dryRun: true })).toEqual({ count: 2, reasons: { refused: 2 } })
  expect(await destination.deadLetters({ where: { userId: 'ada', event: 'Order Completed' } })).toHaveLength(1)
  expect(await destination.redrive({ userId: 'bob', reason: 'refused' })).toBe(1)
  await until(async () => (await destination.deadLetters()).length === 2)
  expect(await destination.drop({ url })).toBe(2)
  await expect(destination.redrive({ reason: 'refuse' as never })).rejects.toThrow('refuse')
  await expect(destination.redrive({ handler: 'crm' } as never)).rejects.toThrow('`handler`')
  await expect(destination.deadLetters({ url: '' })).rejects.toThrow('`deadLetters: url`')
  await destination.close()
})
