import { expect, test, vi } from 'vitest'
import { createDeadlines } from '../../src/kit/deadlines.ts'
import { type DispatcherLike, type PostOutcome, type PostRequest, post } from '../../src/kit/post.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'

const request = { origin: 'http://shop.example', path: '/hooks', headers: ['a', 'b'], body: new Uint8Array([1]) }
const controller = { abort() {} } as never

function setUp(dispatch: DispatcherLike['dispatch'], more: Partial<PostRequest> = {}) {
  const clock = manualClock()
  const outcomes: PostOutcome[] = []
  const dispatched = vi.fn(dispatch)
  const deadlines = createDeadlines(5_000, clock)
  const clear = vi.spyOn(deadlines, 'clear')
  const done = (outcome: PostOutcome) => outcomes.push(outcome)
  const pending = post({ dispatch: dispatched }, { ...request, ...more }, { clock, deadlines }, done)
  return { clock, outcomes, pending, clear, dispatched }
}

test('the outcome comes after post() returned, also when the dispatcher ends at once, and clears the deadline', async () => {
  const { outcomes, clear, dispatched } = setUp((_options, handler) => {
    handler.onResponseStart?.(controller, 204, { 'retry-after': '7' })
    handler.onResponseData?.(controller, Buffer.from('o'))
    handler.onResponseData?.(controller, Buffer.from('k'))
    handler.onResponseEnd?.(controller, {})
    return true
  })
  expect(outcomes).toEqual([])
  const options = { ...request, method: 'POST', headersTimeout: 0, bodyTimeout: 0 }
  expect(dispatched).toHaveBeenCalledExactlyOnceWith(options, expect.anything())
  expect(clear).toHaveBeenCalledOnce()
  await Promise.resolve()
  expect(outcomes).toEqual([
    { status: 204, headers: { 'retry-after': '7' }, retryAfterMs: 7_000, body: Buffer.from('ok'), error: undefined },
  ])
})

test('a body that is longer than its limit is cut, counts by its status, and ends the request', async () => {
  const abort = vi.fn()
  const respond: DispatcherLike['dispatch'] = (_options, handler) => {
    handler.onResponseStart?.(controller, 200, {})
    for (const chunk of ['ab', 'cd', 'ef']) handler.onResponseData?.({ abort } as never, Buffer.from(chunk))
    return true
  }
  const [cut, whole] = [3, 6].map((responseLimit) => setUp(respond, { responseLimit }))
  await Promise.resolve()
  expect(cut?.outcomes).toMatchObject([{ status: 200, body: Buffer.from('abc'), error: undefined }])
  expect([abort.mock.calls.length > 0, whole?.outcomes]).toEqual([true, []])
})

test('there is one outcome, whatever the dispatcher does afterwards', async () => {
  const error = new Error('gone')
  const { clock, outcomes, pending } = setUp((_options, handler) => {
    handler.onResponseError?.(controller, error)
    handler.onResponseStart?.(controller, 200, {})
    handler.onResponseEnd?.(controller, {})
    return true
  })
  pending.stop(new Error('too late'))
  await clock.advance(5_000)
  expect(outcomes).toEqual([{ status: undefined, headers: {}, retryAfterMs: undefined, body: Buffer.alloc(0), error }])
})

test('a request whose connection comes after the deadline is not sent', async () => {
  const connected = Promise.withResolvers<void>()
  const abort = vi.fn()
  const { clock, outcomes } = setUp((_options, handler) => {
    void connected.promise.then(() => handler.onRequestStart?.({ abort } as never, {}))
    return true
  })
  await clock.advance(5_000)
  connected.resolve()
  await connected.promise
  expect(outcomes).toMatchObject([{ status: undefined, error: { code: 'ETIMEDOUT' } }])
  expect(abort).toHaveBeenCalledOnce()
})
