/** The history on the page: what was handled is found as it is read, and replayed. */

import { expect, it, vi } from 'vitest'
import { HooklineError } from '../../../src/protocol/error.ts'
import { fixtures } from '../../../src/testing.ts'
import { setUpInbox } from '../../../test/support/inbox.ts'
import { deliver } from '../../../test/support/receive.ts'
import { until } from '../../../test/support/until.ts'
import type { InspectorEndpoint } from '../src/endpoint/endpoint.ts'
import type { PageAnswer } from '../src/endpoint/listener.ts'
import { type PartHistory, partOfQueue, partOfReceiver } from '../src/endpoint/queues.ts'
import type { HandledLine, ReplayStatus, Setup } from '../src/wire.ts'
import { endpointOf, get, keptBy, post } from './support.ts'

const history = { maxAgeMs: 3_600_000 }

async function setUp(count = 3) {
  const set = setUpInbox({ history })
  const { receiver, clock } = set
  const crm = vi.fn()
  receiver.on('track', crm, { name: 'crm' }).start()
  for (let index = 0; index < count; index += 1) {
    const message = { ...fixtures.track, event: `Order ${index % 3}`, userId: `user-${index}`, messageId: `${index}` }
    await deliver(receiver, message)
    await clock.advance(1_000)
  }
  const endpoint = endpointOf({ parts: [partOfReceiver('app', receiver)], clock, journal: keptBy(clock).journal })
  return { ...set, crm, endpoint }
}

async function readBody({ body }: PageAnswer): Promise<unknown[]> {
  let text = ''
  for await (const chunk of body as AsyncIterable<string>) text += chunk
  return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))
}

async function list(endpoint: InspectorEndpoint, query: object = {}): Promise<unknown[]> {
  return readBody(await get(endpoint, '/api/history', `${new URLSearchParams({ part: 'app', ...query })}`))
}

async function replaysOf(endpoint: InspectorEndpoint): Promise<readonly ReplayStatus[]> {
  const { body } = await get(endpoint, '/api/stream')
  for await (const chunk of body as AsyncIterable<string>) {
    const [, data] = /event: replays\ndata: (.+)/.exec(chunk) ?? []
    if (data !== undefined) return JSON.parse(data)
  }
  return []
}

/** Waits until the latest replay is so, and does this meanwhile. */
function untilState(endpoint: InspectorEndpoint, state: ReplayStatus['state'], meanwhile?: () => Promise<void>) {
  return until(async () => {
    await meanwhile?.()
    return (await replaysOf(endpoint))[0]?.state === state
  })
}

it('what was handled is listed with what handled it, and the page knows who keeps a history', async () => {
  const { endpoint, clock, queue } = await setUp()
  const { journal } = keptBy(clock)
  const log = partOfQueue('app', queue, clock)
  const [first, ...others] = (await list(endpointOf({ parts: [log], journal }))) as HandledLine[]
  expect([first, ...others]).toEqual(await list(endpoint))
  const { id: row } = journal.addMessage('app', { kind: 'received', at: 0, deliveryId: first?.id })
  const [shown, ...rest] = (await list(endpointOf({ parts: [log], journal }))) as HandledLine[]
  const found = { id: first?.id, cursor: first?.cursor, excerpt: expect.stringContaining('"userId":"user-0"'), row }
  const handled = { handledAt: clock.now() - 3_000, handlers: ['crm'], ignored: false }
  expect(shown).toEqual({ ...found, ...handled, type: 'track', name: 'Order 0', user: 'user-0' })
  expect(rest).toHaveLength(2)
  const { parts } = JSON.parse((await get(endpoint, '/api/setup')).body as string) as Setup
  expect(parts).toEqual([{ name: 'app', kind: 'receiver', hasQueue: true, hasHistory: true }])
})

it('what was handled is found by each filter, and in pages', async () => {
  const { endpoint, clock } = await setUp(130)
  const namesBy = async (query: object) => ((await list(endpoint, query)) as HandledLine[]).map(({ user }) => user)
  expect(await namesBy({ userId: 'user-7' })).toEqual(['user-7'])
  expect(await namesBy({ where: 'messageId="7"' })).toEqual(['user-7'])
  expect(await namesBy({ where: 'messageId=7' })).toEqual([])
  expect(await namesBy({ where: 'userId=user-7' })).toEqual(['user-7'])
  const first = { event: 'Order 1', type: 'track', until: clock.now() - 125_000 }
  expect(await namesBy(first)).toEqual(['user-1', 'user-4'])
  expect(await namesBy({ since: clock.now() - 2_000, handler: 'crm' })).toEqual(['user-128', 'user-129'])
  expect(await namesBy({ handler: 'mail' })).toEqual([])
  const page = (await list(endpoint)) as HandledLine[]
  expect(page).toHaveLength(100)
  expect(await namesBy({ after: page.at(-1)?.cursor })).toHaveLength(30)
})

it.each([{ since: 'yesterday' }, { evnt: 'x' }, { type: 'tracks' }, { where: 'x' }, { after: 'x' }])(
  'a history that is asked for by %j is answered with an error that names it',
  async (query) => {
    const { endpoint } = await setUp(1)
    expect(await list(endpoint, query)).toEqual([{ error: expect.stringContaining(Object.keys(query)[0] as string) }])
  },
)

it('what was handled ends with an error of the engine, and reports what is none', async () => {
  let failure: Error = new HooklineError('queue_unavailable', 'The engine did not answer.')
  const list = () => ({ [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(failure) }) })
  const broken = { exists: async () => true, list, replay: vi.fn() } as PartHistory
  const log = { write: vi.fn() }
  const endpoint = endpointOf({ parts: [{ name: 'app', kind: 'queue', history: broken }], log: log as never })
  const read = async () => readBody(await get(endpoint, '/api/history', 'part=app'))

  expect(await read()).toEqual([{ error: 'The engine did not answer.' }])
  expect(log.write).not.toHaveBeenCalled()

  failure = new Error('a bug')
  expect(await read()).toEqual([{ error: expect.not.stringContaining('a bug') }])
  expect(log.write.mock.calls).toMatchObject([[{ level: 'error', code: 'inspector_failed', thrown: failure }]])
})

it('what was handled is read by a few at a time', async () => {
  const never = { next: () => new Promise<never>(() => {}) }
  const slow = { exists: async () => true, list: () => ({ [Symbol.asyncIterator]: () => never }), replay: vi.fn() }
  const endpoint = endpointOf({ parts: [{ name: 'app', kind: 'queue', history: slow as never }] })
  for (let index = 0; index < 4; index += 1) void readBody(await get(endpoint, '/api/history', 'part=app'))
  expect(await readBody(await get(endpoint, '/api/history', 'part=app'))).toEqual([{ error: expect.any(String) }])
  expect(await post(endpoint, '/api/replay', { part: 'app', dryRun: true })).toMatchObject({ status: 429 })
})

it('a replay is counted first, then shown until it is complete', async () => {
  const { endpoint, crm, clock } = await setUp()
  const wanted = { part: 'app', id: 'fix-42', event: 'Order 1', handlers: ['crm'] }
  const plan = await post(endpoint, '/api/replay', { ...wanted, dryRun: true })
  expect(plan).toEqual({ status: 200, body: { count: 1, types: { track: 1 }, events: { 'Order 1': 1 } } })
  await clock.advance(1)
  expect(crm).toHaveBeenCalledTimes(3)
  const { body } = await post(endpoint, '/api/replay', { ...wanted, dryRun: false, total: 1 })
  const request = { ...wanted, until: clock.now() + 1, dryRun: false, total: 1 }
  expect(body).toEqual({ request, state: 'running', count: 0 })
  await untilState(endpoint, 'complete', () => clock.advance(20))
  expect(await replaysOf(endpoint)).toEqual([{ request, state: 'complete', count: 1 }])
  expect(crm.mock.calls[3]).toMatchObject([{ event: 'Order 1' }, { replay: { id: 'fix-42' } }])
})

it('a replay is stopped, and continued with its id', async () => {
  const { endpoint, crm, clock } = await setUp()
  const wanted = { part: 'app', id: 'fix-42', maxPerSecond: 1, dryRun: false }
  expect(await post(endpoint, '/api/replay', { ...wanted, id: undefined })).toMatchObject({ status: 400 })
  await post(endpoint, '/api/replay', wanted)
  expect(await post(endpoint, '/api/replay', wanted)).toMatchObject({ status: 409 })
  await until(() => crm.mock.calls.length === 4)
  expect(await post(endpoint, '/api/stop-replay', { part: 'app', id: 'fix-42' })).toMatchObject({ status: 200 })
  await untilState(endpoint, 'stopped')
  expect(await replaysOf(endpoint)).toMatchObject([{ state: 'stopped', count: 1 }])
  expect(await post(endpoint, '/api/stop-replay', { part: 'app', id: 'fix-42' })).toMatchObject({ status: 404 })
  await post(endpoint, '/api/replay', wanted)
  await untilState(endpoint, 'complete', () => clock.advance(500))
  expect(crm).toHaveBeenCalledTimes(6)
  expect(await replaysOf(endpoint)).toMatchObject([{ count: 3 }])
})

it.each([{ handlers: ['crn'] }, { since: 'x' }, { maxPerSecond: 0 }, { more: 1 }])(
  'a replay that is wrong is a 400 that names it: %j',
  async (wrong) => {
    const { endpoint } = await setUp(1)
    for (const dryRun of [true, false]) {
      const answer = await post(endpoint, '/api/replay', { part: 'app', id: 'fix-42', ...wrong, dryRun })
      const [name] = Object.keys(wrong) as [string]
      const error = expect.stringMatching(name === 'handlers' ? 'crn' : name)
      expect(answer).toEqual({ status: 400, body: { error } })
    }
  },
)
