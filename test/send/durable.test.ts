/** A destination on a queue that outlives its process: what a restart must not change. */

import { expect, test } from 'vitest'
import { RETRY_WINDOW_MS } from '../../src/protocol/limits.ts'
import type { DestinationOptions } from '../../src/send/destination-options.ts'
import { createQueue } from '../../src/store/create-queue.ts'
import { createMemoryStore } from '../../src/store/memory/memory-store.ts'
import { manualClock, type Script } from '../../src/testing.ts'
import { setUp } from './set-up.ts'

const call = { userId: 'u', event: 'E' }

/** Starts processes one after the other, whose destinations share their jobs. */
function setUpProcesses() {
  const clock = manualClock()
  const store = createMemoryStore({ name: 'outbox', clock })
  const open = () => createQueue({ ...store, isDurable: true, close: () => [] }, { name: 'outbox', clock })
  const start = (script: Script, options: Partial<DestinationOptions> = {}) =>
    setUp(script, { clock, queue: open(), ...options })
  return { clock, open, start }
}

test('a destination that restarts between attempts keeps schedule, attempts and four hours', async () => {
  const steady = setUp([503])
  await steady.destination.track(call)
  await steady.clock.advance(RETRY_WINDOW_MS)

  const { clock, start } = setUpProcesses()
  let restarted = start([503])
  await restarted.destination.track(call)
  await clock.advance(0)
  for (const { retryAt } of steady.reports.slice(0, -1)) {
    expect(restarted.last()).toMatchObject({ status: 'retrying', retryAt })
    expect(await restarted.destination.close({ graceMs: 0 })).toEqual([])
    await clock.advance(Math.floor((Number(retryAt) - clock.now()) / 2))
    restarted = start([503])
    await clock.advance(Number(retryAt) - clock.now())
  }

  const times = (report = steady.last()) => report?.attempts.map(({ at }) => at)
  expect(steady.last()).toMatchObject({ status: 'failed', reason: 'window_over' })
  expect(restarted.last()).toMatchObject({ status: 'failed', reason: 'window_over' })
  expect(times(restarted.last())).toEqual(times())
  expect(await restarted.destination.deadLetters()).toMatchObject([{ reason: 'window_over', message: call }])
})

test('a message whose four hours ended while the process was down fails without another attempt', async () => {
  const { clock, start } = setUpProcesses()
  const before = start([503])
  await before.destination.track(call)
  await clock.advance(0)
  await before.destination.close({ graceMs: 0 })
  await clock.advance(RETRY_WINDOW_MS + 1)

  const after = start([503])
  await clock.advance(0)

  expect(after.last()).toMatchObject({ status: 'failed', reason: 'window_over', latest: [] })
  expect(after.captured.requests).toEqual([])
})

test('the four hours of a message that was never posted begin with its first attempt', async () => {
  const { clock, open, start } = setUpProcesses()
  const id = '00000000-0000-4000-8000-000000000001'
  const message = { version: 1, type: 'track', ...call, timestamp: '2026-01-15T09:30:00.000Z' }
  await open().push([{ id, body: Buffer.from(JSON.stringify(message)) }])
  await clock.advance(RETRY_WINDOW_MS + 1)

  const { captured, last } = start([200])
  await clock.advance(0)

  expect(last()).toMatchObject({ status: 'delivered', id })
  expect(captured.messages).toMatchObject([message])
})

test.each<Script>([[500], ['hang']])(
  'what functions made is kept: later processes do not call them: %j',
  async (answer) => {
    const { clock, start } = setUpProcesses()
    const before = start([answer], { transform: (message) => ({ ...message, messageId: 'made' }) as typeof message })
    await before.destination.track(call)
    await clock.advance(0)
    await before.destination.close({ graceMs: 0 })

    const after = start([200], { transform: () => expect.fail() })
    await clock.advance(RETRY_WINDOW_MS)

    const [first, second] = [before, after].map(({ captured }) => String(captured.requests[0]?.bytes))
    expect(first).toContain('"made"')
    expect(second).toBe(first)
  },
)
