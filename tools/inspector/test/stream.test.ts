/** The stream: what a page gets of it, how it goes on where it was lost, and how little it can be made to hold. */

import { createReceiver } from 'hookline'
import { memoryQueue } from 'hookline/queues/memory'
import { createDestination } from 'hookline/sender'
import { type ManualClock, manualClock } from 'hookline/testing'
import { expect, it, vi } from 'vitest'
import { inspectQueue } from '../../../src/observe/inspect-queue.ts'
import type { InspectorEndpoint } from '../src/endpoint/endpoint.ts'
import { partOfDestination, partOfReceiver } from '../src/endpoint/queues.ts'
import type { Access } from '../src/index.ts'
import type { LoggedMessage } from '../src/logged-message.ts'
import type { StreamEvents } from '../src/wire.ts'
import { type Asked, ask, closeLater, endpointOf, headerOf, keptBy } from './support.ts'

function eventsOf(chunk: string) {
  return [...chunk.matchAll(/^event: (.*)\n(?:id: (.*)\n)?data: (.*)$/gm)].map(([, name, id, data = '']) => {
    return { name, id, data: JSON.parse(data) as StreamEvents['rows'] }
  })
}

async function open(inspector: InspectorEndpoint, request: Asked = {}): Promise<AsyncIterator<string>> {
  const headers = { ...headerOf(inspector), ...request.headers }
  const answer = await ask(inspector, '/api/stream', { ...request, headers })
  expect([answer.status, answer.headers['content-type']]).toEqual([200, 'text/event-stream'])
  return (answer.body as AsyncIterable<string>)[Symbol.asyncIterator]()
}

async function next(stream: AsyncIterator<string>): Promise<string> {
  const { done, value } = await stream.next()
  if (done) throw new Error('The stream has ended.')
  return value
}

async function openPast(inspector: InspectorEndpoint): Promise<AsyncIterator<string>> {
  const stream = await open(inspector)
  await next(stream)
  return stream
}

function collect(stream: AsyncIterator<string>) {
  const chunks: string[] = []
  const read = async (): Promise<void> => {
    for (;;) chunks.push(await next(stream))
  }
  return { chunks, ended: read().catch(() => {}) }
}

function setUp(count = 0) {
  const machine = manualClock()
  const { journal } = keptBy(machine, { messages: 500 })
  const { onChange } = journal
  const listening = vi.spyOn(journal, 'onChange').mockImplementation((listener) => vi.fn(onChange(listener)))
  const add = () => {
    const logged = journal.addMessage('shop', { kind: 'received', at: 0 })
    journal.update(logged)
    return logged
  }
  const rows = Array.from({ length: count }, add)
  return { machine, journal, listening, add, rows, inspector: endpointOf({ machine, journal }) }
}

it('rows come all at first, at most 200 in an event; the last event has the id', async () => {
  const { inspector } = setUp(450)
  const stream = await open(inspector)
  const first = await next(stream)
  const events = [first, await next(stream), await next(stream)].flatMap(eventsOf)
  const shown = events.map(({ data, id }) => `${data.isReset} ${data.rows.length} ${id !== undefined}`)
  expect(shown).toEqual(['true 200 false', 'false 200 false', 'false 50 true'])
})

it('rows go on where a page lost the stream, and begin anew after a restart', async () => {
  const { inspector, journal, add, rows } = setUp(2)
  const [{ id = '' } = {}] = eventsOf(await next(await open(inspector)))
  add()
  journal.update(rows[0] as LoggedMessage, { state: 'done' })
  const resume = async (last: string, at = inspector) => {
    const [rows] = eventsOf(await next(await open(at, { headers: { 'last-event-id': last } })))
    return rows?.data
  }

  expect(await resume(id)).toMatchObject({ isReset: false, rows: [{ id: 3 }, { id: 1, state: 'done' }] })
  for (const unknown of [`other.${id.split('.')[1]}`, `${id}000`, '', 'x', `${id} `.repeat(1_000)]) {
    expect(await resume(unknown)).toMatchObject({ isReset: true, rows: [{}, {}, {}] })
  }
  expect(await resume(id, endpointOf({ journal, machine: manualClock() }))).toMatchObject({ isReset: true })
})

it('rows are joined: 5 chunks a second at most, however many change', async () => {
  const { inspector, add, machine } = setUp()
  const stream = await openPast(inspector)
  const { chunks } = collect(stream)
  for (let count = 0; count < 100; count += 1) {
    add()
    await machine.advance(10)
  }
  expect(chunks.length).toBeGreaterThanOrEqual(4)
  expect(chunks.length).toBeLessThanOrEqual(6)
  await machine.advance(200)
  expect(chunks.flatMap(eventsOf).flatMap(({ data }) => data.rows.map(({ id }) => id))).toHaveLength(100)
})

it('nothing but a heartbeat comes every 15 seconds while nothing changes; a change comes at once then', async () => {
  const { inspector, add, machine } = setUp()
  const stream = await openPast(inspector)
  const { chunks } = collect(stream)

  await machine.advance(14_900)
  expect(chunks).toEqual([])
  await machine.advance(200)
  expect(chunks).toEqual([':\n\n'])
  await machine.advance(1_000)
  add()
  await machine.advance(0)
  expect(chunks.flatMap(eventsOf)).toMatchObject([{ data: { rows: [{ id: 1 }] } }])
})

const refused = { status: 503, headers: { 'retry-after': '5', 'content-type': 'application/json' } }

it('streams are 32 at a time; each end frees a place', async () => {
  const { inspector, listening } = setUp()
  const headers = headerOf(inspector)
  const abort = new AbortController()
  const ask33rd = () => ask(inspector, '/api/stream', { headers })
  const streams: AsyncIterator<string>[] = []
  for (let count = 0; count < 31; count++) streams.push(await open(inspector))
  await open(inspector, { signal: AbortSignal.abort() })
  const aborted = await open(inspector, { signal: abort.signal })
  expect(await ask33rd()).toMatchObject(refused)
  expect(await ask(inspector, '/api/stream', { method: 'HEAD', headers })).toMatchObject({ status: 200 })

  await next(streams[0] as AsyncIterator<string>)
  await streams[0]?.return?.()
  streams[0] = await open(inspector)

  const waiting = [await next(aborted), aborted.next()][1]
  abort.abort()
  expect(await waiting).toMatchObject({ done: true })
  await open(inspector)

  await inspector.close()
  expect(await streams[3]?.next()).toMatchObject({ done: true })
  expect(listening).toHaveBeenCalledTimes(2)
  for (const { value: stop } of listening.mock.results) expect(stop).toHaveBeenCalledOnce()
  expect(await ask33rd()).toMatchObject({ status: 503 })
})

async function eventsAfter(machine: ManualClock, stream: AsyncIterator<string>): Promise<Record<string, unknown>> {
  const chunk = next(stream)
  await machine.advance(200)
  return Object.fromEntries(eventsOf(await chunk).map(({ name, data }) => [name, data]))
}

it('beside rows come the queues with their URLs, and whether all processes are paused, when they have changed', async () => {
  const [clock, machine] = [manualClock(), manualClock()]
  const queue = memoryQueue({ clock })
  await inspectQueue(queue).pause()
  const receiver = createReceiver({ secret: 'secret', inbox: queue, clock })
  const webhooks = [{ url: 'https://shop.example/?key=hidden' }]
  const destination = createDestination({ webhooks, sharedSecret: 'secret', clock })
  closeLater(() => Promise.all([receiver.close(), destination.close({ graceMs: 0 })]))
  const parts = [partOfReceiver('app', receiver), partOfDestination('shop', destination)]
  const inspector = endpointOf({ parts, clock, machine })
  const stream = await openPast(inspector)

  const asOf = clock.now()
  const counts = { status: 'ok', waiting: 0, active: 0, retrying: 0, deadLetters: 0, oldestDueAgeMs: 0, asOf }
  const urls = [{ url: 'https://shop.example/?…', circuit: 'closed', delivered: 0, failed: 0 }]
  const [app, shop] = [{ isPaused: true }, { urls }].map((more) => ({ ...counts, ...more }))
  const queues = [Object.assign({ part: 'app' }, app), Object.assign({ part: 'shop' }, shop)]
  expect(await eventsAfter(machine, stream)).toEqual({ queues })
})

it('authorize is asked again each minute, and its refusal, failure or silence ends the stream', async () => {
  for (const later of [() => false, () => Promise.reject(new Error('away')), () => new Promise(() => {})]) {
    const machine = manualClock()
    const authorize = vi.fn<() => unknown>(() => 'read')
    const stream = await openPast(endpointOf({ machine, authorize: authorize as () => Access }))
    const { chunks, ended } = collect(stream)

    await machine.advance(121_000)
    expect(authorize).toHaveBeenCalledTimes(3)
    expect(chunks.length).toBeGreaterThanOrEqual(7)
    authorize.mockImplementation(later)
    await machine.advance(60_000)
    await machine.advance(10_000)

    await ended
    expect(authorize).toHaveBeenCalledTimes(4)
  }
})
