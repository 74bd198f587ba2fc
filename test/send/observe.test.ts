import { expect, it, vi } from 'vitest'
import { memoryQueue } from '../../src/queues-memory.ts'
import type { ObservedReport } from '../../src/send/destination-events.ts'
import type { Destination } from '../../src/send/destination-types.ts'
import { manualClock } from '../../src/testing.ts'
import { setUp } from './set-up.ts'

/** What an observer sees: the names of events, and what they have. */
function observe(destination: Destination) {
  const events: (readonly [name: string, event: object])[] = []
  const reports: ObservedReport[] = []
  const stop = destination.observe({
    queued: (event) => void events.push(['queued', event]),
    forgotten: (event) => void events.push(['forgotten', event]),
    attempted(report) {
      events.push(['attempted', { status: report.status, id: report.id }])
      reports.push(report)
    },
  })
  return { events, reports, stop }
}

it('a message is queued, then attempted until it is delivered, by its id and with its bytes', async () => {
  const { destination, clock, captured, reports: given, start } = setUp([503, 200])
  const { events, reports } = observe(destination)

  const { id } = (await destination.track({ userId: 'u', event: 'E' })) as { id: string }
  await clock.advance(60_000)

  const message = expect.objectContaining({ userId: 'u', event: 'E' })
  const bytes = Buffer.from(captured.requests[0]?.bytes ?? [])
  expect(captured.requests[1]?.bytes).toEqual(captured.requests[0]?.bytes)
  expect(events).toMatchObject([
    ['queued', { id, message, bytes, at: start }],
    ['attempted', { id, status: 'retrying' }],
    ['attempted', { id, status: 'delivered' }],
  ])
  expect(reports.map((report) => Buffer.from(report.bytes))).toEqual([bytes, bytes])
  expect(reports[0]?.message).toEqual(message)
  expect(reports).toEqual(given)
})

it('what is unreadable is attempted with the bytes that the queue has', async () => {
  const clock = manualClock()
  const queue = memoryQueue({ clock })
  const { destination } = setUp([200], { clock, queue })
  const { events, reports } = observe(destination)

  const id = 'abcdef01-2345-4789-8abc-def012345678'
  await queue.push([{ id, body: Buffer.from('{}\n{}') }])
  await clock.advance(0)

  expect(events).toEqual([['attempted', { id, status: 'failed' }]])
  expect(reports).toMatchObject([{ reason: 'unreadable', bytes: Buffer.from('{}\n{}') }])
})

it('an observer of forget gets the ids as they were passed, once they are checked', async () => {
  const { destination } = setUp()
  const { events } = observe(destination)

  await destination.forget('user-1')
  await destination.forget(['a', 'b'])
  await expect(destination.forget([])).rejects.toThrow(TypeError)

  expect(events).toEqual([
    ['forgotten', { ids: 'user-1' }],
    ['forgotten', { ids: ['a', 'b'] }],
  ])
})

it('several observers see this destination alone, until each is removed, and stay after an update', async () => {
  const [{ destination }, other] = [setUp(), setUp()]
  const [first, second] = [observe(destination), observe(destination)]
  const twice = { queued: vi.fn() }
  const [stop] = [destination.observe(twice), destination.observe(twice)]

  await destination.track({ userId: 'u', event: 'E' })
  await other.destination.track({ userId: 'u', event: 'E' })
  first.stop()
  stop()
  destination.update({ sharedSecret: 'another' })
  await destination.track({ userId: 'u', event: 'E' })

  const queued = ({ events }: typeof first) => events.filter(([name]) => name === 'queued')
  expect([queued(first).length, queued(second).length, twice.queued.mock.calls.length]).toEqual([1, 2, 3])
})
