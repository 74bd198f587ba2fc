import { expect, test, vi } from 'vitest'
import type { DispatcherLike } from '../../src/http/post.ts'
import { createOriginLimiter } from '../../src/sender/origin-limiter.ts'
import { readWebhooks, type Target } from '../../src/sender/webhooks.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { createDeadlines } from '../../src/time/deadlines.ts'

const [target] = readWebhooks([{ url: 'http://shop.example/' }]) as [Target]
const request = { headers: [], body: new Uint8Array() }

/** A limiter of two, over a dispatcher whose requests end when the test calls `respond`. */
function setUp() {
  const clock = manualClock()
  const abort = vi.fn()
  const responds: (() => void)[] = []
  let isInDispatcher = false
  let nested = 0
  const dispatcher: DispatcherLike = {
    dispatch(_options, handler) {
      if (isInDispatcher) nested += 1
      const controller = { abort } as never
      handler.onRequestStart?.(controller, {})
      responds.push(() => {
        isInDispatcher = true
        handler.onResponseStart?.(controller, 200, {})
        handler.onResponseEnd?.(controller, {})
        isInDispatcher = false
      })
      return true
    },
  }
  const limiter = createOriginLimiter(dispatcher, 2, { clock, deadlines: createDeadlines(5_000, clock) })
  return { limiter, responds, abort, nested: () => nested }
}

test('a waiting attempt begins when another ends, but not inside the dispatcher', async () => {
  const { limiter, responds, nested } = setUp()
  const attempts = [1, 2, 3].map(() => limiter.post(target, request))
  expect(responds).toHaveLength(2)
  responds[0]?.()
  expect(responds).toHaveLength(2)
  await attempts[0]
  expect(responds).toHaveLength(3)
  responds[1]?.()
  responds[2]?.()

  expect(await Promise.all(attempts)).toMatchObject([{ status: 200 }, { status: 200 }, { status: 200 }])
  expect(nested()).toBe(0)
})

test('an attempt made while another waits does not overtake it, nor exceed the limit', async () => {
  const { limiter, responds } = setUp()
  const order: string[] = []
  const post = (name: string) => void limiter.post(target, request).then(() => order.push(name))
  for (const name of ['a', 'b', 'c']) post(name)
  responds[0]?.()
  post('d') // Before `c` has begun.
  await Promise.resolve()
  expect(responds).toHaveLength(3)
  responds[1]?.()
  await Promise.resolve()
  for (const respond of responds.slice(2)) respond()
  await limiter.drain()

  expect(order).toEqual(['a', 'b', 'c', 'd'])
})

test('abort() ends attempts under way and leaves finished ones alone', async () => {
  const { limiter, responds, abort } = setUp()
  const finished = limiter.post(target, request)
  responds[0]?.()
  expect(await finished).toMatchObject({ ok: true })
  limiter.abort()
  expect(abort).not.toHaveBeenCalled()

  const underWay = limiter.post(target, request)
  limiter.abort()
  expect(await underWay).toMatchObject({
    ok: false,
    error: 'closed',
    reason: expect.stringContaining('Got a sender that was closed. '),
  })
  expect(abort).toHaveBeenCalledOnce()
})

test('drain() resolves for every caller when the last attempt has ended', async () => {
  const { limiter, responds } = setUp()
  await limiter.drain()
  const attempts = [1, 2].map(() => limiter.post(target, request))
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
