/** Erasing what an inbox stores of a user. */

import { expect, it } from 'vitest'
import { fixtures } from '../../src/testing/fixtures.ts'
import { setUpInbox } from '../support/inbox.ts'
import { deliver } from '../support/receive.ts'
import { throwing } from '../support/throwing.ts'
import { until } from '../support/until.ts'

const SECOND = 1000
const HOUR = 3_600_000

it('forgets what waits and what is a dead letter of a user, and nothing of others', async () => {
  const { receiver, clock, queue } = setUpInbox({ retries: [HOUR] })
  const seen: unknown[] = []
  receiver.on('track', throwing('no'))
  receiver.on('page', ({ userId }) => seen.push(userId))
  receiver.start()
  for (const userId of ['ada', 'bob']) await deliver(receiver, { ...fixtures.track, userId })
  await clock.advance(HOUR) // A dead letter each.
  for (const userId of ['ada', 'bob']) await deliver(receiver, { ...fixtures.track, userId, event: 'Retried' })
  await clock.advance(0)
  void queue.pause()
  for (const userId of ['ada', 'bob']) await deliver(receiver, { ...fixtures.page, userId })
  await deliver(receiver, { ...fixtures.page, userId: null, anonymousId: 'anonymous-ada' })
  await deliver(receiver, { ...fixtures.alias, userId: undefined, 'User ID': 'x', 'Previous ID': 'ada' })
  expect(await receiver.health()).toMatchObject({ waiting: 6, deadLetters: 2 })
  expect(await receiver.forget(['ada', 'anonymous-ada'])).toEqual({ deleted: 5, active: 0 })
  expect(await receiver.health()).toMatchObject({ waiting: 2, deadLetters: 1 })
  expect(await receiver.deadLetters()).toMatchObject([{ message: { userId: 'bob' } }])
  queue.resume()
  await clock.advance(HOUR)
  expect(seen).toEqual(['bob'])
})

it('forgets in the handler of a delete, which the inbox calls again until no other message is being handled', async () => {
  const { receiver, clock } = setUpInbox({ retries: [SECOND, SECOND] })
  const held = Promise.withResolvers<void>()
  const results: unknown[] = []
  receiver.on('track', () => held.promise)
  receiver.on('delete', async ({ userId }) => {
    const forgotten = await receiver.forget(userId)
    results.push(forgotten)
    if (forgotten.active > 0) throw new Error('a message is being handled')
  })
  receiver.start()
  await deliver(receiver, fixtures.track)
  await clock.advance(0)
  await deliver(receiver, fixtures.delete)
  await clock.advance(0)
  await until(() => results.length === 1) // A walk has turns of the event loop for itself.
  held.reject(new Error('no')) // It waits again.
  await clock.advance(SECOND)
  await until(() => results.length === 2)
  expect(results).toEqual([
    { deleted: 0, active: 1 },
    { deleted: 1, active: 0 },
  ])
  expect(await receiver.health()).toMatchObject({ waiting: 0, active: 0, deadLetters: 0 })
})

it('forgets what is no envelope by the JSON that it is', async () => {
  const { receiver, memory } = setUpInbox()
  await memory.push([
    { id: '00000000-0000-4000-8000-000000000001', body: Buffer.from('{"type":"page","userId":"ada"}') },
    { id: '00000000-0000-4000-8000-000000000002', body: Buffer.from('other bytes') },
  ])
  expect(await receiver.forget('ada', { source: 'shop' })).toEqual({ deleted: 0, active: 0 })
  expect(await receiver.forget('ada')).toEqual({ deleted: 1, active: 0 })
})
