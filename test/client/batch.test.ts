/** A batch that is stopped reports nothing any more. */

import type { Dispatcher } from 'undici'
import { expect, it, vi } from 'vitest'
import { postBatch } from '../../src/client/batch.ts'
import { createFifo } from '../../src/collections/fifo.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { createDeadlines } from '../../src/time/deadlines.ts'
import { settle } from './dispatcher.ts'

function setUp() {
  const clock = manualClock()
  const handlers: Dispatcher.DispatchHandler[] = []
  const route = {
    dispatcher: { dispatch: (_options: unknown, handler: Dispatcher.DispatchHandler) => handlers.push(handler) > 0 },
    origin: 'http://localhost',
    path: '/',
    headers: [],
    timing: { deadlines: createDeadlines(1000, clock), clock },
    maxRetries: 1,
    random: () => 0,
    clock,
  }
  const done = vi.fn()
  const waiting = createFifo<{ json: string; bytes: number }>()
  waiting.push({ json: '{}', bytes: 2 })
  const batch = postBatch(route, waiting, 1, 'batch', done)
  const controller = { abort: vi.fn() } as unknown as Dispatcher.DispatchController
  const answer = (status: number) => {
    handlers.at(-1)?.onRequestStart?.(controller, {})
    handlers.at(-1)?.onResponseStart?.(controller, status, {})
    handlers.at(-1)?.onResponseEnd?.(controller, {})
  }
  return { clock, batch, done, answer, handlers }
}

it('also when its answer has just come', async () => {
  const { batch, done, answer } = setUp()
  answer(200)
  batch.stop()
  await settle()
  expect(done).not.toHaveBeenCalled()
})

it('also when it waits for a retry', async () => {
  const { clock, batch, done, answer, handlers } = setUp()
  answer(500)
  await settle()
  batch.stop()
  await clock.advance(10_000)
  expect(handlers).toHaveLength(1)
  expect(done).not.toHaveBeenCalled()
})

it('and one that is not stopped reports once', async () => {
  const { batch, done, answer } = setUp()
  answer(200)
  await settle()
  answer(400)
  batch.stop()
  await settle()
  expect(done).toHaveBeenCalledExactlyOnceWith([])
})
