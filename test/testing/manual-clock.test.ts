import { expect, it } from 'vitest'
import { manualClock } from '../../src/testing/manual-clock.ts'

it('fires timers at their time and in their order, those that a timer sets included', async () => {
  const clock = manualClock(1000)
  const fired: string[] = []
  const note = (name: string) => () => fired.push(`${name} at ${clock.now()}, after ${clock.monotonic()}`)
  clock.setTimeout(note('late'), 20)
  clock.setTimeout(() => {
    note('early')()
    clock.setTimeout(note('from early'), 5)
  }, 10)
  clock.clearTimeout(clock.setTimeout(note('cleared'), 15))
  clock.setTimeout(note('never'), 31)
  await clock.advance(30)
  expect(fired).toEqual(['early at 1010, after 10', 'from early at 1015, after 15', 'late at 1020, after 20'])
  expect([clock.now(), clock.timers, clock.nextTimerAt]).toEqual([1030, 1, 1031])
  await clock.advance(1)
  expect(clock.nextTimerAt).toBeUndefined()
})

it('fires timers of the same time in the order they were set, whatever was cleared', async () => {
  const clock = manualClock(0)
  const fired: number[] = []
  const timers = [5, 5, 1, 5, 3].map((ms, index) => clock.setTimeout(() => void fired.push(index), ms))
  clock.clearTimeout(timers[1])
  clock.clearTimeout(timers[1])
  expect(clock.timers).toBe(4)
  await clock.advance(5)
  clock.clearTimeout(timers[0])
  expect([fired, clock.timers]).toEqual([[2, 4, 0, 3], 0])
})

it('never goes back when two move it at once', async () => {
  const clock = manualClock(0)
  const times: number[] = []
  for (const at of [5, 30, 60]) clock.setTimeout(() => void times.push(clock.now()), at)
  await Promise.all([clock.advance(100), clock.advance(10)])
  expect([times, clock.now()]).toEqual([[5, 30, 60], 100])
})
