import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createDeadlines } from '../../src/kit/deadlines.ts'
import type { DeliverEvent } from '../../src/send/destination-events.ts'
import { type Connection, OriginLimiter } from '../../src/send/origin-limiter.ts'
import type { Attempt } from '../../src/send/sender-types.ts'
import { readWebhooks, type Target } from '../../src/send/webhooks.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { hear } from '../support/channel.ts'

const [target] = readWebhooks([{ url: 'http://shop.example/' }]) as [Target]
const failed = { at: new Date(0), durationMs: 1, ok: false, body: '' }
const attempts = ['http://other.example/', 'http://shop.example/'].map((url) => ({ url, ...failed }))
const request = { headers: [], body: new Uint8Array(), job: { id: 'a job', attempts } }

/** A limiter of two, over connections whose requests end when the test calls `respond`. */
function setUp() {
  const clock = manualClock()
  const abort = vi.fn()
  const destroy = vi.fn(async () => {})
  const responds: ((error?: Error) => void)[] = []
  const connections: number[] = []
  let opened = 0
  const open = (connection: number): Connection => ({
    destroy,
    dispatch(_options, handler) {
      connections.push(connection)
      const controller = { abort } as never
      handler.onRequestStart?.(controller, {})
      responds.push((error) => {
        if (error === undefined) handler.onResponseStart?.(controller, 200, {})
        if (error === undefined) handler.onResponseEnd?.(controller, {})
        else handler.onResponseError?.(controller, error)
      })
      return true
    },
  })
  const limiter = new OriginLimiter(() => open(opened++), 2, { clock, deadlines: createDeadlines(5_000, clock) })
  const post = (): Promise<Attempt> => new Promise((resolve) => limiter.post(target, request, resolve))
  return { limiter, post, responds, abort, destroy, connections }
}

test('a waiting attempt begins when another ends; one made meanwhile does not overtake it, nor exceed the limit', async () => {
  const { limiter, responds } = setUp()
  const order: string[] = []
  const post = (name: string) => limiter.post(target, request, () => order.push(name))
  for (const name of ['a', 'b', 'c']) post(name)
  responds[0]?.()
  expect(responds).toHaveLength(2) // Not inside the dispatcher.
  post('d')
  await Promise.resolve()
  expect(responds).toHaveLength(3)
  responds[1]?.()
  await Promise.resolve()
  for (const respond of responds.slice(2)) respond()
  await limiter.drain()

  expect(order).toEqual(['a', 'b', 'c', 'd'])
})

test('abort() ends attempts under way and leaves finished ones alone', async () => {
  const { limiter, post, responds, abort } = setUp()
  const finished = post()
  responds[0]?.()
  expect(await finished).toMatchObject({ ok: true })
  limiter.abort()
  expect(abort).not.toHaveBeenCalled()

  const underWay = post()
  limiter.abort()
  expect(await underWay).toMatchObject({ ok: false, error: 'closed' })
  expect(abort).toHaveBeenCalledOnce()
})

test('drain() resolves for every caller when the last attempt has ended', async () => {
  const { limiter, post, responds } = setUp()
  await limiter.drain()
  const attempts = [1, 2].map(() => post())
  let drained = 0
  const drains = [1, 2].map(() => limiter.drain().then(() => ++drained))
  responds[0]?.()
  await attempts[0]
  await new Promise((resolve) => setImmediate(resolve))
  expect(drained).toBe(0)
  responds[1]?.()
  await Promise.all(drains)
  expect(drained).toBe(2)
})

test('attempts share connections, of which there are no more than were needed at once', async () => {
  const { post, responds, connections } = setUp()
  for (const count of [1, 2, 3]) {
    const attempts = Array.from({ length: count }, post)
    for (let each = 0; each < count; each++) {
      await Promise.resolve()
      responds.shift()?.()
    }
    await Promise.all(attempts)
  }
  expect(connections).toEqual([0, 0, 1, 1, 0, 1])
})

test('a connection whose attempt failed is closed and carries no other', async () => {
  const { limiter, post, responds, connections, destroy } = setUp()
  const failed = post()
  responds[0]?.(new Error('gone'))
  expect(destroy).not.toHaveBeenCalled() // Not inside the dispatcher.
  expect(await failed).toMatchObject({ ok: false })
  expect(destroy).toHaveBeenCalledOnce()

  const next = post()
  responds[1]?.()
  expect(await next).toMatchObject({ ok: true })
  expect(connections).toEqual([0, 1])
  await limiter.destroy()
  expect(destroy).toHaveBeenCalledTimes(2)
})

test('each attempt is traced from its own beginning to its end, in the context of its caller', async () => {
  const caller = new AsyncLocalStorage<number>()
  const callers: unknown[] = []
  const onStart = () => void callers.push(caller.getStore())
  subscribe('tracing:hookline:deliver:start', onStart)
  onTestFinished(() => void unsubscribe('tracing:hookline:deliver:start', onStart))
  const [ends, errors] = ['asyncEnd', 'error'].map((name) => hear<DeliverEvent>(`tracing:hookline:deliver:${name}`))
  const { post, responds } = setUp()

  const attempts = [1, 2, 3].map((number) => caller.run(number, post))
  responds[0]?.()
  await attempts[0]
  expect(responds).toHaveLength(3)
  responds[1]?.(new Error('reset'))
  responds[2]?.()
  await Promise.all(attempts)

  const ended = { url: 'http://shop.example/', id: 'a job', attempt: 2 }
  expect(callers).toEqual([1, 2, 3])
  expect(ends).toMatchObject(
    [{ status: 200 }, { error: 'reset' }, { status: 200 }].map((result) => ({ ...ended, result })),
  )
  expect(errors).toEqual([])
})
