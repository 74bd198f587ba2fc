/** Which timers of a client keep the process alive. */

import type { Dispatcher } from 'undici'
import { expect, it } from 'vitest'
import { createClient } from '../../src/client.ts'
import type { Clock } from '../../src/kit/clock.ts'
import { ENDPOINT, numbered, settle } from './dispatcher.ts'

function setUp({ failures }: { readonly failures: number }) {
  const running = new Set<{ readonly fire: () => void; isAlive: boolean; unref(): void; ref(): void }>()
  const clock: Clock = {
    now: () => 0,
    monotonic: () => 0,
    setTimeout(callback) {
      const timer = {
        isAlive: true,
        fire: () => running.delete(timer) && callback(),
        ref: () => {
          timer.isAlive = true
        },
        unref: () => {
          timer.isAlive = false
        },
      }
      running.add(timer)
      return timer
    },
    clearTimeout: (timer) => running.delete(timer as never),
  }
  const controller = { abort: () => {} } as unknown as Dispatcher.DispatchController
  let requests = 0
  const dispatcher = {
    dispatch(_options: unknown, handler: Dispatcher.DispatchHandler) {
      handler.onRequestStart?.(controller, {})
      handler.onResponseStart?.(controller, ++requests > failures ? 200 : 500, {})
      handler.onResponseEnd?.(controller, {})
      return true
    },
  }
  const client = createClient('write-key', { endpoint: ENDPOINT, dispatcher, clock })
  return {
    client,
    alive: () => [...running].filter(({ isAlive }) => isAlive).length,
    /** Fires the timers that do not keep the process alive. */
    async fire() {
      const idle = [...running].filter(({ isAlive }) => !isAlive)
      for (const timer of idle) timer.fire()
      await settle()
      return idle.length
    },
    requests: () => requests,
  }
}

it('none, while a batch waits for a retry', async () => {
  const { client, alive, fire, requests } = setUp({ failures: 1 })
  client.track(numbered(0))
  await fire()
  expect(alive()).toBe(0)
  await fire()
  expect(requests()).toBe(2)
})

it('one for each flush that waits, retries included, and none when all are over', async () => {
  const { client, alive, fire } = setUp({ failures: 1 })
  client.track(numbered(0))
  const flushes = [client.flush(), client.flush()]
  await settle()
  expect(alive()).toBe(2)
  await fire()
  await Promise.all(flushes)
  expect(alive()).toBe(0)
})
