/** What an inspector shows of more messages than it keeps. */

import { expect, it } from 'vitest'
import { createJournal } from '../../src/inspector/journal.ts'
import { createSample } from '../../src/inspector/sample.ts'
import { createSeries } from '../../src/inspector/series.ts'
import { watchReceiver } from '../../src/inspector/watch-receiver.ts'
import { createLog } from '../../src/options/log.ts'
import { memoryQueue } from '../../src/queues/memory/index.ts'
import type { ReceiverOptions } from '../../src/receiver/options.ts'
import { createReceiver } from '../../src/receiver/receiver.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { signedRequest } from '../../src/testing/signed-request.ts'
import { until } from '../support/until.ts'

const secret = 'inspected'
const bounds = { messages: 10_000, bytes: 64_000_000, refused: 10_000, refusedBytes: 64_000_000 }

it('200 a second are all in the sample, of 2 400 about one in 12, and later all of them again', async () => {
  const clock = manualClock()
  const [one, other] = [createSample(clock), createSample(clock)]
  const keys = Array.from({ length: 2_400 }, (_, index) => `message-${index}`)
  const sampled = (sample: typeof one) => keys.map(sample).filter((of) => of !== undefined)
  expect(keys.slice(0, 200).map(one)).toEqual(Array(200).fill(1))
  await clock.advance(1_000)
  sampled(one)
  await clock.advance(1_000)
  const kept = sampled(one)
  expect(new Set(kept)).toEqual(new Set([12]))
  expect(kept.length).toBeGreaterThan(150)
  expect(kept.length).toBeLessThan(250)
  sampled(other)
  await clock.advance(1_000)
  expect(keys.map(one).map(Boolean)).toEqual(keys.map(other).map(Boolean)) // The same for the same key.
  await clock.advance(2_000)
  expect(one('message-1')).toBe(1)
})

function setUp(options: Partial<ReceiverOptions> = {}) {
  const clock = manualClock()
  const journal = createJournal(
    bounds,
    clock,
    createLog(undefined, () => {}, clock),
    clock,
  )
  const series = createSeries(clock)
  const receiver = createReceiver({ secret, clock, onError: () => {}, ...options })
  watchReceiver('shop', receiver, journal, series, clock)
  const send = (index: number, signedWith = secret) => {
    const { body, headers } = signedRequest({ ...fixtures.track, messageId: `message-${index}` }, signedWith)
    return receiver.receive(Buffer.from(body), headers)
  }
  const rows = () => journal.changesSince(undefined).rows
  return { clock, journal, series, receiver, send, rows }
}

it('of 1 000 at once every failure and refusal is kept, a sample of the others, and the plots count all', async () => {
  const { receiver, send, rows, series } = setUp()
  receiver.on('track', ({ messageId }) => {
    if (messageId?.endsWith('7')) throw new Error('no')
  })
  for (let index = 0; index < 1_000; index += 1) await send(index, index % 10 === 3 ? 'another' : secret)
  const count = (state: string) => rows().filter((row) => row.state === state).length
  expect([count('failed'), count('refused')]).toEqual([100, 100])
  expect(count('done')).toBeGreaterThan(300)
  expect(count('done')).toBeLessThan(600)
  expect(rows().find(({ state }) => state === 'done')?.of).toBe(4)
  const { done, failed } = series.read('shop', 1)
  expect([done, failed].map((counts) => counts.reduce((sum, each) => sum + each, 0))).toEqual([800, 200])
})

it('a message that is kept is kept as a whole', async () => {
  const { receiver, send, rows, journal } = setUp()
  receiver.on('track', () => {})
  for (let index = 0; index < 1_000; index += 1) await send(index)
  expect(rows().length).toBeLessThan(700)
  const steps = rows().map(({ id }) =>
    journal
      .detail(id)
      ?.steps.map(({ what }) => what)
      .join(),
  )
  expect(new Set(steps)).toEqual(new Set(['arrived,checked,handled,answered']))
})

it('with an inbox, a message that fails is kept from then on, also one that was left out when it was stored', async () => {
  const { receiver, send, rows, clock } = setUp({ inbox: { queue: memoryQueue(), retries: [1_000] } })
  const failed = new Set<string | undefined>()
  receiver.on('track', ({ messageId }) => {
    if (failed.has(messageId) || !messageId?.endsWith('7')) return
    failed.add(messageId)
    throw new Error('no')
  })
  for (let index = 0; index < 500; index += 1) await send(index)
  receiver.start()
  await until(() => failed.size === 50)
  await clock.advance(1_000)
  await receiver.close()
  expect(rows().every(({ state }) => state === 'done')).toBe(true)
  expect(rows().filter(({ attempts }) => attempts === 2)).toHaveLength(50)
})
