import { expect, it, onTestFinished, vi } from 'vitest'
import { memoryQueue } from '../../src/queues-memory.ts'
import type { DestinationObserver, ObservedReport } from '../../src/send/destination-events.ts'
import type { Destination } from '../../src/send/destination-types.ts'
import { fixtures, manualClock } from '../../src/testing.ts'
import { setUp } from './set-up.ts'

function observe(destination: Destination) {
  const events: (readonly [name: string, event: Record<string, unknown>])[] = []
  const reports: ObservedReport[] = []
  const note = (name: string) => (event: object) => void events.push([name, event as never])
  const stop = destination.observe({
    queued: note('queued'),
    skipped: note('skipped'),
    attempted(report) {
      events.push(['attempted', { status: report.status, id: report.id }])
      reports.push(report)
    },
    circuit: note('circuit'),
    forgotten: note('forgotten'),
  })
  return { events, reports, stop }
}

it('a message is queued, then attempted until it is delivered, by its id and with its bytes', async () => {
  const { destination, clock, captured, reports: given } = setUp([503, 200])
  const { events, reports } = observe(destination)
  const at = clock.now()
  const result = await destination.track({ userId: 'u', event: 'E' })
  if (!result.queued) throw new Error('It was not queued.')
  await clock.advance(60_000)
  const { id } = result
  const bytes = captured.requests[0]?.bytes
  expect(events).toEqual([
    ['queued', { id, message: expect.objectContaining({ userId: 'u', event: 'E' }), bytes: expect.anything(), at }],
    ['attempted', { id, status: 'retrying' }],
    ['attempted', { id, status: 'delivered' }],
  ])
  expect(Buffer.from(events[0]?.[1].bytes as Uint8Array).equals(bytes as Uint8Array)).toBe(true)
  for (const report of reports) expect(Buffer.from(report.bytes).equals(bytes as Uint8Array)).toBe(true)
  expect(reports).toEqual(given)
  expect(reports[0]?.message).toMatchObject({ userId: 'u', event: 'E' })
})

it('a message that is not queued is skipped, in the order of a submission', async () => {
  const { destination } = setUp()
  const { events } = observe(destination)
  const other = { ...fixtures.track, integrations: { All: false } }
  await destination.submit([{ message: other }, { message: fixtures.page }])
  destination.disable()
  await destination.track({ userId: 'u', event: 'E' })
  expect(events.filter(([name]) => name !== 'attempted')).toMatchObject([
    ['skipped', { reason: 'not_selected', message: { type: 'track', event: fixtures.track.event } }],
    ['queued', { message: { type: 'page' } }],
    ['skipped', { reason: 'switched_off', message: { event: 'E' } }],
  ])
})

it('what is unreadable is attempted with the bytes that the queue has', async () => {
  const clock = manualClock()
  const queue = memoryQueue({ clock })
  const { destination } = setUp([200], { clock, queue, logger: { error() {}, warn() {}, info() {} } })
  const { events, reports } = observe(destination)
  await queue.push([{ id: 'abcdef01-2345-4789-8abc-def012345678', body: Buffer.from('two\nlines') }])
  await clock.advance(0)
  expect(events).toEqual([['attempted', { id: 'abcdef01-2345-4789-8abc-def012345678', status: 'failed' }]])
  expect(reports[0]?.reason).toBe('unreadable')
  expect(String(reports[0]?.bytes)).toBe('two\nlines')
})

it('a circuit opens and closes', async () => {
  let answer = 503
  const { destination, clock } = setUp([() => answer], { circuit: { failures: 1 } })
  const { events } = observe(destination)
  await destination.track({ userId: 'u', event: 'E' })
  await clock.advance(0)
  answer = 200
  await clock.advance(600_000)
  const circuits = events.filter(([name]) => name === 'circuit')
  expect(circuits).toMatchObject([
    ['circuit', { state: 'open', cause: { status: 503 } }],
    ['circuit', { state: 'closed', cause: { status: 200 } }],
  ])
})

it('forget: the ids as they were passed, once they are checked', async () => {
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

it('several observers, of this destination alone, until each is removed', async () => {
  const [{ destination }, other] = [setUp(), setUp()]
  const [first, second] = [observe(destination), observe(destination)]
  await destination.track({ userId: 'u', event: 'E' })
  await other.destination.track({ userId: 'u', event: 'E' })
  first.stop()
  destination.update({ sharedSecret: 'another' }) // Observers stay.
  await destination.track({ userId: 'u', event: 'E' })
  const queued = ({ events }: typeof first) => events.filter(([name]) => name === 'queued')
  expect([queued(first).length, queued(second).length]).toEqual([1, 2])
})

it('one that throws is a process warning and changes nothing', async () => {
  const emit = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  onTestFinished(() => emit.mockRestore())
  const { destination, clock, last } = setUp()
  const fail = () => {
    throw new Error('no')
  }
  destination.observe({ queued: fail, attempted: fail })
  await destination.track({ userId: 'u', event: 'E' })
  await clock.advance(0)
  expect(last()?.status).toBe('delivered')
  expect(emit.mock.calls).toEqual(Array(2).fill(['An observer failed', { code: 'HOOKLINE_OBSERVER', detail: 'no' }]))
})

it.each([
  [null, '`observe: options`'],
  [{ attempt() {} }, '`attempt`'],
  [{ queued: 1 }, '`observe: queued`'],
])('refuses %s', (observer, message) => {
  const { destination } = setUp()
  expect(() => destination.observe(observer as unknown as DestinationObserver)).toThrow(TypeError)
  expect(() => destination.observe(observer as unknown as DestinationObserver)).toThrow(message)
})
