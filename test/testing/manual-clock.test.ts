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
  expect([clock.now(), clock.timers]).toEqual([1030, 1])
})
