/** Nothing of an endpoint or a record keeps a timer once it is over: a test run would not end. */

import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createRecorder } from '../../src/testing/recorder.ts'
import { respond } from '../../src/testing/respond.ts'
import { createScript, type Response } from '../../src/testing/script.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] }))
afterEach(() => void vi.useRealTimers())

it('received() that was fulfilled, and one that was not', async () => {
  const recorder = createRecorder()
  const received = recorder.received(1)
  expect(vi.getTimerCount()).toBe(1)
  recorder.add({ method: 'POST', url: 'http://x/', path: '/', headers: {}, bytes: Buffer.alloc(0), at: new Date(0) })
  expect(await received).toHaveLength(1)
  expect(vi.getTimerCount()).toBe(0)
  const failed = expect(recorder.received(3)).rejects.toThrow('Waited 5000 ms for 3 requests. Got 1.')
  vi.advanceTimersByTime(4999)
  expect(vi.getTimerCount()).toBe(1)
  vi.advanceTimersByTime(1)
  expect(vi.getTimerCount()).toBe(0)
  await failed
})

it.each([{ delayMs: 60_000 }, { dripMs: 1000 }])('an answer of %j whose connection ended', async (step) => {
  const response = Object.assign(new EventEmitter(), { writeHead: vi.fn(), flushHeaders: vi.fn(), write: vi.fn() })
  void respond(createScript([step]).next() as Response, response as unknown as ServerResponse, () => {})
  await vi.advanceTimersByTimeAsync(5000)
  expect(response.write).toHaveBeenCalledTimes(step.dripMs === undefined ? 0 : 5)
  expect(vi.getTimerCount()).toBe(1)
  response.emit('close')
  expect(vi.getTimerCount()).toBe(0)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(response.writeHead).toHaveBeenCalledTimes(step.dripMs === undefined ? 0 : 1)
})
