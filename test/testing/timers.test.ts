/** Nothing of an endpoint or a record keeps a timer once it is over: a test run would not end. */

import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createRecorder } from '../../src/testing/recorder.ts'
import { respond } from '../../src/testing/respond.ts'
import { createScript, type Response, type Step } from '../../src/testing/script.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] }))
afterEach(() => void vi.useRealTimers())

it('received() that was fulfilled, and one that was not', async () => {
  const recorder = createRecorder()
  const received = recorder.received(1)
  expect(vi.getTimerCount()).toBe(1)
  recorder.add({ method: 'POST', url: 'http://x/', path: '/', headers: {}, bytes: Buffer.alloc(0), at: new Date(0) })
  expect(await received).toHaveLength(1)
  recorder.add({ method: 'POST', url: 'http://x/', path: '/', headers: {}, bytes: Buffer.alloc(0), at: new Date(0) })
  expect(await recorder.received(1)).toHaveLength(1)
  expect(vi.getTimerCount()).toBe(0)
  const failed = expect(recorder.received(3)).rejects.toThrow('Waited 5000 ms for 3 requests. Got 2.')
  vi.advanceTimersByTime(4999)
  expect(vi.getTimerCount()).toBe(1)
  vi.advanceTimersByTime(1)
  expect(vi.getTimerCount()).toBe(0)
  await failed
})

it.each([{ delayMs: 60_000 }, { dripMs: 1000 }])('an answer of %j whose connection ended', async (step) => {
  const response = createResponse()
  void respond(createScript([step]).next() as Response, response as unknown as ServerResponse, () => {})
  await vi.advanceTimersByTimeAsync(5000)
  expect(response.write).toHaveBeenCalledTimes(step.dripMs === undefined ? 0 : 5)
  expect(vi.getTimerCount()).toBe(1)
  response.emit('close')
  expect(vi.getTimerCount()).toBe(0)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(response.writeHead).toHaveBeenCalledTimes(step.dripMs === undefined ? 0 : 1)
})

it.each<Step>([200, 'drip', { delayMs: 60_000 }, 'garbage', { reset: 'answer' }])(
  'a step of %j that is known when the connection has ended',
  async (step) => {
    const planned = createScript([step]).next() as Response
    const [response, other] = [createResponse({ destroyed: true }), createResponse({ socket: { destroyed: true } })]
    await respond(planned, response as unknown as ServerResponse, () => expect.unreachable())
    await respond(planned, other as unknown as ServerResponse, () => expect.unreachable())
    expect(vi.getTimerCount()).toBe(0)
    for (const { writeHead, socket } of [response, other]) {
      expect(writeHead).not.toHaveBeenCalled()
      expect(socket.end).not.toHaveBeenCalled()
    }
  },
)

function createResponse(state: { destroyed?: boolean; socket?: { destroyed: boolean } } = {}) {
  const { destroyed = false, socket = { destroyed: false } } = state
  const methods = { writeHead: vi.fn(), flushHeaders: vi.fn(), write: vi.fn() }
  return Object.assign(new EventEmitter(), { destroyed, socket: { ...socket, end: vi.fn() } }, methods)
}
