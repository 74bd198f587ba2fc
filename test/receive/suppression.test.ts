/** Users who stay forgotten: `forget` with `suppressForMs`. */

import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { createReceiver, type Handler } from '../../src/index.ts'
import { inspectQueue, type Queue } from '../../src/queues.ts'
import { fixtures, signedRequest } from '../../src/testing.ts'
import { setUp as setUpFile } from '../store/sqlite/set-up.ts'
import { listHistory, setUpInbox } from '../support/inbox.ts'
import { deliver, secret, setUp } from '../support/receive.ts'
import { until } from '../support/until.ts'

const DAY = 24 * 3_600_000
const forWeeks = { suppressForMs: 30 * DAY }
const track = (userId: string, event = 'Order Completed') => ({ ...fixtures.track, userId, event })
const usersOf = (handler: ReturnType<typeof vi.fn<Handler>>) => handler.mock.calls.map(([message]) => message.userId)

/** A receiver that keeps a history and has no message. */
function start(overrides: Partial<Queue> = {}) {
  const set = setUpInbox({ history: { maxAgeMs: 365 * DAY }, retries: [] }, {}, overrides)
  const handler = vi.fn<Handler>()
  set.receiver.on('*', handler).start()
  const kept = async () => (await listHistory(set.receiver)).map(({ message }) => message?.userId)
  return { ...set, handler, kept }
}

describe('messages of a user who stays forgotten', () => {
  it('are answered 200, dropped and counted while the time lasts, and handled after it, or once it is set to 0', async () => {
    const { receiver, clock, handler, kept } = start()
    await deliver(receiver, track('ada'))
    await clock.advance(0)

    expect(await receiver.forget('ada', forWeeks)).toEqual({ deleted: 1, active: 0 })
    for (const message of [track('ada', 'B'), track('bob'), { ...fixtures.page, userId: null, anonymousId: 'ada' }]) {
      expect(await deliver(receiver, message)).toMatchObject({ status: 200, ok: true })
    }
    await clock.advance(0)

    expect(usersOf(handler)).toEqual(['ada', 'bob'])
    expect(await receiver.health()).toMatchObject({ suppressed: 2, waiting: 0, active: 0, deadLetters: 0, ignored: 0 })
    expect(await kept()).toEqual(['bob'])
    await clock.advance(30 * DAY - 1)
    await deliver(receiver, track('ada', 'C'))
    await clock.advance(1)
    await deliver(receiver, track('ada', 'D'))
    await clock.advance(0)
    for (const how of [forWeeks, { suppressForMs: 0 }]) await receiver.forget('ada', how)
    await deliver(receiver, track('ada', 'E'))
    await clock.advance(0)
    expect(handler.mock.calls.slice(2).map(([message]) => message)).toMatchObject([{ event: 'D' }, { event: 'E' }])
  })

  it('are dropped when they are redriven, and when they are replayed', async () => {
    const deletesNothing = async () => ({ deleted: 0, active: 0 }) // As if another process changed them at that moment.
    const { receiver, clock, handler } = start({ forget: deletesNothing })
    await deliver(receiver, track('ada'))
    await clock.advance(0)
    handler.mockRejectedValueOnce(new Error('no'))
    await deliver(receiver, track('ada', 'Fails'))
    await clock.advance(0)

    await receiver.forget('ada', forWeeks)
    expect(await receiver.redrive('all')).toBe(1)
    await clock.advance(0)
    expect(await receiver.replay()).toMatchObject({ count: 1 })
    await clock.advance(0)

    expect(handler).toHaveBeenCalledTimes(2)
    expect(await receiver.health()).toMatchObject({ suppressed: 2, waiting: 0, deadLetters: 0 })
  })

  it('are dropped also when they are invalid, but not when they ask to forget', async () => {
    const { receiver, clock, handler } = start()
    await receiver.forget(['ada', 'eve'], { suppressForMs: Number.MAX_SAFE_INTEGER })

    await deliver(receiver, { type: 'tracks', userId: 'ada' })
    await deliver(receiver, { ...fixtures.delete, userId: 'ada' })
    await deliver(receiver, { ...fixtures.alias, userId: undefined, 'User ID': 'x', 'Previous ID': 'eve' })
    await deliver(receiver, 'no JSON')
    await clock.advance(0)

    expect(handler.mock.calls.map(([message]) => message.type)).toEqual(['delete'])
    expect(await receiver.health()).toMatchObject({ suppressed: 2, deadLetters: 1 })
  })

  it('are those of one source', async () => {
    const secrets = { source: ({ path }: { readonly path: string }) => path.slice(1), secrets: () => secret }
    const { receiver } = setUpInbox({}, { secret: secrets })
    const handler = vi.fn<Handler>()
    const forgotten: object[] = []
    receiver.observe({ forgotten: (event) => forgotten.push(event) })
    receiver.on('*', handler).start()
    const send = async (path: string, userId: string) => {
      const { bytes, headers } = signedRequest(track(userId), secret)
      await receiver.receive(bytes, headers, { path })
    }

    await receiver.forget('ada', { source: 'shop', ...forWeeks })
    await receiver.forget('eve', forWeeks)
    await expect(receiver.forget('')).rejects.toThrow(TypeError)
    await expect(receiver.forget('user-1', { suppressForMs: -1 })).rejects.toThrow(TypeError)
    for (const path of ['/shop', '/app']) for (const userId of ['ada', 'eve']) await send(path, userId)
    await until(async () => (await receiver.health()).waiting === 0)

    expect(handler.mock.calls.map(([{ userId }, { source }]) => [source, userId])).toEqual([['app', 'ada']])
    expect((await receiver.health()).suppressed).toBe(3)
    const dropped = [{ ids: ['ada'], source: 'shop' }, ...['shop', 'app'].map((source) => ({ ids: ['eve'], source }))]
    expect(forgotten).toEqual([{ ids: 'ada', source: 'shop' }, { ids: 'eve', source: undefined }, ...dropped])
  })
})

describe('processes that share a queue', () => {
  function open(queue: Queue) {
    const receiver = createReceiver({ secret, inbox: queue })
    const handler = vi.fn<Handler>()
    receiver.on('*', handler)
    return { receiver, handler, queue }
  }

  it('all drop the messages, and do so after a restart; the engine has no id in plain text', async () => {
    const { path, clock, open: openQueue, see } = setUpFile()
    const [web, worker] = [open(openQueue()), open(openQueue())]
    worker.receiver.start()
    await deliver(web.receiver, track('bob', 'first'))
    await see(() => worker.handler.mock.calls.length === 1)

    await web.receiver.forget('ada-of-the-analytical-engine', forWeeks)
    const files = readdirSync(dirname(path)).map((name) => `${readFileSync(join(dirname(path), name))}`)
    await clock.advance(2_000)
    await until(async () => (await worker.queue.counts()) && worker.queue.marks?.size === 1)
    await deliver(web.receiver, track('ada-of-the-analytical-engine'))
    await deliver(web.receiver, track('bob', 'second'))
    await see(() => worker.handler.mock.calls.length === 2)
    await worker.receiver.close({ graceMs: 0 })
    await deliver(web.receiver, track('ada-of-the-analytical-engine', 'again'))
    await deliver(web.receiver, track('bob', 'third'))
    const next = open(openQueue())
    next.receiver.start()
    await see(() => next.handler.mock.calls.length === 1)

    expect(files.join().includes('analytical-engine')).toBe(false)
    expect(usersOf(worker.handler)).toEqual(['bob', 'bob'])
    await until(async () => (await next.receiver.health()).suppressed === 1)
    expect(usersOf(next.handler)).toEqual(['bob'])
  })
})

it.each<[string, (queue: Queue) => Promise<unknown>]>([
  ['suppressForMs', (queue) => setUp({ inbox: queue }).receiver.forget('ada', forWeeks)],
  ['pause', (queue) => inspectQueue(queue).pause()],
  ['resume', (queue) => inspectQueue(queue).resume()],
])('`%s` is refused on a queue without marks', async (option, call) => {
  const { marks: _, ...queue } = setUpInbox().memory

  await expect(call(queue)).rejects.toThrow(new RegExp(`^\`${option}\` needs a queue with marks`))
})
