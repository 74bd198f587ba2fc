/** Nothing of an endpoint or a record keeps a timer once it is over: a test run would not end. */

import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { play } from '../../src/testing/play.ts'
import { createRecorder } from '../../src/testing/recorder.ts'
import { createPrompter, type Move } from '../../src/testing/script.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] }))
afterEach(() => void vi.useRealTimers())

it('received() that was fulfilled, and one that was not', async () => {
  const recorder = createRecorder()
  const received = recorder.received(1)
  expect(vi.getTimerCount()).toBe(1)
  recorder.add({ method: 'POST', url: 'http://x/', path: '/', headers: {}, bytes: Buffer.alloc(0), at: 0 })
  expect(vi.getTimerCount()).toBe(0)
  expect(await received).toHaveLength(1)
  const failed = expect(recorder.received(2)).rejects.toThrow('received: waited 5000 ms for 2 requests, and 1 came.')
  vi.advanceTimersByTime(4999)
  expect(vi.getTimerCount()).toBe(1)
  vi.advanceTimersByTime(1)
  expect(vi.getTimerCount()).toBe(0)
  await failed
})

it.each([{ delayMs: 60_000 }, { dripMs: 1000 }])('an answer of %j whose connection ended', (step) => {
  const response = Object.assign(new EventEmitter(), { writeHead: vi.fn(), flushHeaders: vi.fn(), write: vi.fn() })
  play(createPrompter([step]).next() as Move, response as unknown as ServerResponse, () => {})
  vi.advanceTimersByTime(5000)
  expect(response.write).toHaveBeenCalledTimes(step.dripMs === undefined ? 0 : 5)
  expect(vi.getTimerCount()).toBe(1)
  response.emit('close')
  expect(vi.getTimerCount()).toBe(0)
})
