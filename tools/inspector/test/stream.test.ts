/** The stream: what a page gets of it, how it goes on where it was lost, and how little it can be made to hold. */

import { describe, expect, it, vi } from 'vitest'
import { createReceiver } from '../../../src/index.ts'
import { memoryQueue } from '../../../src/queues-memory.ts'
import { createDestination } from '../../../src/sender.ts'
import { type ManualClock, manualClock } from '../../../src/testing.ts'
import type { InspectorEndpoint } from '../src/endpoint/endpoint.ts'
import { partOfDestination, partOfReceiver } from '../src/endpoint/queues.ts'
import type { Access } from '../src/index.ts'
import type { Row } from '../src/wire.ts'
import { type Asked, ask, closeLater, endpointOf, fakeJournal, headerOf, logged } from './support.ts'

interface SentEvent {
  readonly name: string | undefined
  readonly id: string | undefined
  readonly data: { readonly isReset: boolean; readonly rows: readonly Row[] }
}

function eventsOf(chunk: string): SentEvent[] {
  return chunk
    .split('\n\n')
    .filter((text) => text.startsWith('event: '))
    .map((text) => {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(text)?.[1]
      return { name: field('event'), id: field('id'), data: JSON.parse(field('data') as string) }
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

function setUp(count = 0) {
  const machine = manualClock()
  const journal = fakeJournal()
  journal.put(...Array.from({ length: count }, (_, id) => ({ id: id + 1 })))
  return { machine, journal, inspector: endpointOf({ machine, journal }) }
}

it('is not to be compressed on its way, which would hold events back', async () => {
  const inspector = endpointOf()
  const headers = headerOf(inspector)
  for (const method of ['GET', 'HEAD']) {
    const answer = await ask(inspector, '/api/stream', { method, headers })
    expect(answer.headers).toMatchObject({ 'cache-control': 'no-store, no-transform', 'x-accel-buffering': 'no' })
  }
})

describe('rows', () => {
  it('come all at first, at most 200 in an event; the last event has the id', async () => {
    const { inspector } = setUp(450)
    const stream = await open(inspector)
    const first = await next(stream)
    const events = [first, await next(stream), await next(stream)].flatMap(eventsOf)
    expect(events.map(({ data, id }) => [data.isReset, data.rows.length, id !== undefined])).toEqual([
      [true, 200, false],
      [false, 200, false],
      [false, 50, true],
    ])
  })

  it('go on where a page lost the stream, and begin anew after a restart', async () => {
    const { inspector, journal } = setUp(2)
    const [{ id } = {}] = eventsOf(await next(await open(inspector)))
    journal.put({ id: 3 }, { id: 1, state: 'done' })
    const resume = async (last: string) =>
      eventsOf(await next(await open(inspector, { headers: { 'last-event-id': last } })))

    expect((await resume(id as string))[0]?.data).toEqual({
      isReset: false,
      rows: [{ id: 1, state: 'done' }, { id: 3 }],
    })
    for (const unknown of [`other.${id?.split('.')[1]}`, `${id}000`, '', 'x', `${id} `.repeat(1_000)]) {
      expect((await resume(unknown))[0]?.data).toMatchObject({ isReset: true, rows: [{}, {}, {}] })
    }
    const other = endpointOf({ journal, machine: manualClock() })
    expect(
      eventsOf(await next(await open(other, { headers: { 'last-event-id': id as string } })))[0]?.data.isReset,
    ).toBe(true)
  })

  it('are joined: 5 chunks a second at most, however many change', async () => {
    const { inspector, journal, machine } = setUp()
    const stream = await open(inspector)
    await next(stream)
    const chunks: string[] = []
    const reading = (async () => {
      for (;;) chunks.push(await next(stream))
    })().catch(() => {})
    for (let id = 1; id <= 100; id++) {
      journal.put({ id })
      await machine.advance(10)
    }
    expect(chunks.length).toBeGreaterThanOrEqual(4)
    expect(chunks.length).toBeLessThanOrEqual(6)
    await machine.advance(200)
    expect(chunks.flatMap(eventsOf).flatMap(({ data }) => data.rows.map(({ id }) => id))).toHaveLength(100)
    await inspector.close()
    await reading
  })

  it('nothing but a heartbeat every 15 seconds while nothing changes', async () => {
    const { inspector, machine } = setUp()
    const stream = await open(inspector)
    await next(stream)
    let beat: string | undefined
    const reading = next(stream).then((chunk) => {
      beat = chunk
    })
    await machine.advance(14_900)
    expect(beat).toBeUndefined()
    await machine.advance(200)
    expect(beat).toBe(':\n\n')
    await reading
  })
})

describe('streams are bounded', () => {
  const refused = { status: 503, headers: { 'retry-after': '5', 'content-type': 'application/json' } }

  it('32 at a time; each end frees a place', async () => {
    const { inspector, journal } = setUp()
    const headers = headerOf(inspector)
    const abort = new AbortController()
    const ask33rd = () => ask(inspector, '/api/stream', { headers })
    const streams: AsyncIterator<string>[] = []
    for (let count = 0; count < 31; count++) streams.push(await open(inspector))
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

    // A client that has left before its answer takes no place.
    await next(streams[1] as AsyncIterator<string>)
    await streams[1]?.return?.()
    expect(await (await open(inspector, { signal: AbortSignal.abort() })).next()).toMatchObject({ done: true })
    await open(inspector)

    await inspector.close()
    expect(await streams[3]?.next()).toMatchObject({ done: true })
    expect(journal.listeners).toBe(0)
    expect(await ask33rd()).toMatchObject({ status: 503 })
  })

  it('one whose journal fails loses its place', async () => {
    const { inspector, journal } = setUp()
    const changesSince = vi.spyOn(journal, 'changesSince').mockImplementation(() => {
      throw new Error('the disk is on fire')
    })
    for (let count = 0; count < 33; count++) await expect((await open(inspector)).next()).rejects.toThrow('on fire')
    changesSince.mockRestore()
    await next(await open(inspector))
  })
})

describe('beside rows', () => {
  async function eventsAfter(machine: ManualClock, stream: AsyncIterator<string>): Promise<Record<string, unknown>> {
    const chunk = next(stream)
    await machine.advance(200)
    return Object.fromEntries(eventsOf(await chunk).map(({ name, data }) => [name, data]))
  }

  it('come the queues with their URLs, when they have changed', async () => {
    const [clock, machine] = [manualClock(), manualClock()]
    const receiver = createReceiver({ secret: 'secret', inbox: { queue: memoryQueue({ clock }) }, clock })
    const webhooks = [{ url: 'https://shop.example/?key=hidden' }]
    const destination = createDestination({ webhooks, sharedSecret: 'secret', clock })
    closeLater(() => Promise.all([receiver.close(), destination.close({ graceMs: 0 })]))
    const parts = [partOfReceiver('app', receiver), partOfDestination('shop', destination)]
    const inspector = endpointOf({ parts, clock, machine })
    const stream = await open(inspector)
    await next(stream)

    const asOf = clock.now()
    const counts = { status: 'ok', waiting: 0, active: 0, deadLetters: 0, oldestDueAgeMs: 0, asOf }
    const urls = [{ url: 'https://shop.example/?…', circuit: 'closed', delivered: 0, failed: 0 }]
    expect(await eventsAfter(machine, stream)).toMatchObject({
      queues: [
        { part: 'app', ...counts },
        { part: 'shop', ...counts, urls },
      ],
    })
  })

  it('a queue that cannot be counted is in the log, and the stream goes on', async () => {
    const { log, lines } = logged()
    const fail = () => Promise.reject(new Error('the disk is on fire'))
    const queue = { exists: async () => true, health: fail } as never
    const [machine, journal] = [manualClock(), fakeJournal()]
    const inspector = endpointOf({ parts: [{ name: 'a', kind: 'queue', queue }], log, machine, journal })
    const stream = await open(inspector)
    await next(stream)
    journal.put({ id: 1 })
    expect(await eventsAfter(machine, stream)).toEqual({ rows: expect.objectContaining({ rows: [{ id: 1 }] }) })
    expect(lines).toHaveLength(1)
  })
})

describe('authorize is asked again each minute', () => {
  it('and its refusal, failure or silence ends the stream', async () => {
    for (const later of [() => false, () => Promise.reject(new Error('away')), () => new Promise(() => {})]) {
      const machine = manualClock()
      let answer: () => unknown = () => 'read'
      let count = 0
      const authorize = (): Access => {
        count += 1
        return answer() as Access
      }
      const inspector = endpointOf({ machine, authorize })
      const stream = await open(inspector)
      await next(stream)
      const chunks: string[] = []
      const ended = (async () => {
        for (;;) chunks.push(await next(stream))
      })().catch(() => {})
      await machine.advance(121_000)
      expect(count).toBe(3)
      expect(chunks.length).toBeGreaterThanOrEqual(7)
      answer = later
      await machine.advance(60_000)
      await machine.advance(10_000)
      await ended
      expect(count).toBe(4)
    }
  })
})
