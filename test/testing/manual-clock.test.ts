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

it('never goes back, also for a timer of the past', async () => {
  const clock = manualClock(1000)
  const fired: number[] = []
  clock.setTimeout(() => void fired.push(clock.now()), -500)
  await clock.advance(0)
  expect(fired).toEqual([1000])
})

it('never goes back when two move it at once', async () => {
  const clock = manualClock(0)
  const times: number[] = []
  for (const at of [5, 30, 60]) clock.setTimeout(() => void times.push(clock.now()), at)
  await Promise.all([clock.advance(100), clock.advance(10)])
  expect([times, clock.now()]).toEqual([[5, 30, 60], 100])
})

it('goes four hours on with ten thousand timers in no time worth mentioning', async () => {
  const clock = manualClock(0)
  const hours = 4 * 3_600_000
  let fired = 0
  let last = 0
  for (let index = 0; index < 10_000; index += 1) {
    const at = (index * 7_919) % hours
    clock.setTimeout(() => {
      expect(clock.now()).toBeGreaterThanOrEqual(last)
      last = clock.now()
      fired += 1
    }, at)
    if (index % 2 === 0) clock.clearTimeout(clock.setTimeout(() => expect.unreachable(), at))
  }
  const before = process.cpuUsage()
  await clock.advance(hours)
  expect([fired, clock.now()]).toEqual([10_000, hours])
  expect(process.cpuUsage(before).user).toBeLessThan(2_000_000) // Microseconds, which other programs do not count against.
})
