/** A batch that is stopped tells nothing any more. */

import type { Dispatcher } from 'undici'
import { expect, it, vi } from 'vitest'
import { deliver } from '../../src/client/delivery.ts'
import { createTimers } from '../../src/client/timers.ts'
import { createDeadlines } from '../../src/protocol/deadlines.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { settle } from './dispatcher.ts'

function setUp() {
  const clock = manualClock()
  const handlers: Dispatcher.DispatchHandler[] = []
  const route = {
    dispatcher: { dispatch: (_options: unknown, handler: Dispatcher.DispatchHandler) => handlers.push(handler) > 0 },
    origin: 'http://localhost',
    path: '/',
    headers: [],
    deadlines: createDeadlines(1000, clock),
    clock,
  }
  const done = vi.fn()
  const carrier = { route, timers: createTimers(clock), maxRetries: 1, random: () => 0 }
  const delivery = deliver(carrier, 'batch', Buffer.from('{}'), done)
  const controller = { abort: vi.fn() } as unknown as Dispatcher.DispatchController
  const answer = (status: number) => {
    handlers.at(-1)?.onRequestStart?.(controller, {})
    handlers.at(-1)?.onResponseStart?.(controller, status, {})
    handlers.at(-1)?.onResponseEnd?.(controller, {})
  }
  return { clock, delivery, done, answer, handlers }
}

it('also when its answer has just come', async () => {
  const { delivery, done, answer } = setUp()
  answer(200)
  delivery.stop()
  await settle()
  expect(done).not.toHaveBeenCalled()
})

it('also when it waits for a retry', async () => {
  const { clock, delivery, done, answer, handlers } = setUp()
  answer(500)
  await settle()
  delivery.stop()
  await clock.advance(10_000)
  expect(handlers).toHaveLength(1)
  expect(done).not.toHaveBeenCalled()
})

it('and one that is not stopped tells once', async () => {
  const { delivery, done, answer } = setUp()
  answer(200)
  await settle()
  answer(400)
  delivery.stop()
  await settle()
  expect(done).toHaveBeenCalledExactlyOnceWith({ body: '', attempts: 1 })
})
