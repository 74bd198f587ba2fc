/** Which timers keep the process alive. */

import { expect, it, vi } from 'vitest'
import { createTimers } from '../../src/client/timers.ts'

/** A clock whose timers are told, as Node's, whether the process waits for them. */
function setUp() {
  const made: { fire: () => void; ref: () => void; unref: () => void; alive: boolean }[] = []
  const timers = createTimers({
    now: () => 0,
    monotonic: () => 0,
    setTimeout(fire) {
      const timer = {
        fire,
        alive: true,
        ref: () => {
          timer.alive = true
        },
        unref: () => {
          timer.alive = false
        },
      }
      made.push(timer)
      return timer
    },
    clearTimeout: vi.fn(),
  })
  return { timers, made, alive: () => made.map(({ alive }) => alive) }
}

it('none, as long as nobody waits', () => {
  const { timers, alive } = setUp()
  timers.set(() => {}, 1)
  expect(alive()).toEqual([false])
})

it('all, while somebody waits: those before, and those that come', () => {
  const { timers, alive } = setUp()
  timers.set(() => {}, 1)
  timers.hold()
  timers.set(() => {}, 1)
  expect(alive()).toEqual([true, true])
})

it('none again once the last one has what it waited for', () => {
  const { timers, alive } = setUp()
  timers.hold()
  timers.hold()
  timers.set(() => {}, 1)
  timers.release()
  expect(alive()).toEqual([true])
  timers.release()
  expect(alive()).toEqual([false])
})

it('not those that have fired or were cleared', () => {
  const { timers, made, alive } = setUp()
  const callback = vi.fn()
  timers.set(callback, 1)
  timers.clear(timers.set(() => {}, 1))
  made[0]?.fire()
  expect(callback).toHaveBeenCalledOnce()
  timers.hold()
  expect(alive()).toEqual([false, false])
})
