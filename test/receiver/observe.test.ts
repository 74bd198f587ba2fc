import { expect, it } from 'vitest'
import type { ReceiverObserver } from '../../src/handling/observer.ts'
import type { Receiver } from '../../src/receiver/api.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { deliver, setUp } from '../support/receive.ts'

/** What an observer of all events sees, in order: the method and the event. */
function observe(receiver: Receiver) {
  const events: (readonly [string, Record<string, unknown>])[] = []
  const note = (name: string) => (event: unknown) => void events.push([name, event as never])
  const observer: ReceiverObserver = {
    answered: note('answered'),
    stored: note('stored'),
    handled: note('handled'),
    failed: note('failed'),
    forgotten: note('forgotten'),
  }
  return { events, stop: receiver.observe(observer) }
}

it('inline: handled with each run, then answered', async () => {
  const { receiver } = setUp()
  receiver.on('track', function save() {})
  receiver.on('track', 'Order Completed', async () => {})
  const { events } = observe(receiver)
  await deliver(receiver, fixtures.track)
  expect(events).toMatchObject([
    [
      'handled',
      {
        message: fixtures.track,
        runs: [
          { on: 'track', name: 'save', durationMs: 0, error: undefined },
          { on: 'track Order Completed', name: '', durationMs: 0, error: undefined },
        ],
        attempt: 1,
        jobId: undefined,
      },
    ],
    ['answered', { message: fixtures.track, status: 200, error: undefined, durationMs: 0, elements: [] }],
  ])
})
