/** Which timers of a client keep the process alive. */

import { expect, it } from 'vitest'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { numbered, settle, setUp as setUpClient } from './dispatcher.ts'

/** A client whose first request fails, and its timers that keep the process alive. */
function setUp() {
  const manual = manualClock()
  const alive = new Set<object>()
  const clock = {
    ...manual,
    setTimeout(callback: () => void, ms: number) {
      const end = () => {
        alive.delete(timer)
        callback()
      }
      const timer = {
        handle: manual.setTimeout(end, ms),
        ref: () => alive.add(timer),
        unref: () => alive.delete(timer),
      }
      alive.add(timer)
      return timer
    },
    clearTimeout(timer: { readonly handle: object }) {
      alive.delete(timer)
      manual.clearTimeout(timer.handle)
    },
  }
  return { ...setUpClient([500], { clock: clock as never }), advance: manual.advance, alive }
}

it('none, while a batch waits for its flush and for a retry', async () => {
  const { client, advance, alive, requests } = setUp()
  client.track(numbered(0))
  await advance(5_000)
  expect([requests.length, alive.size]).toEqual([1, 0])
  await advance(1_000)
  expect([requests.length, alive.size]).toEqual([2, 0])
})

it('one for each flush that waits, retries included, and none when all are over', async () => {
  const { client, advance, alive } = setUp()
  client.track(numbered(0))

  const flushes = [client.flush(), client.flush()]
  await settle()
  expect(alive.size).toBe(2)

  await advance(1_000)
  await Promise.all(flushes)
  expect(alive.size).toBe(0)
})
