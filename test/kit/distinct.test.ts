import { expect, it, onTestFinished, vi } from 'vitest'
import { distinctTime } from '../../src/kit/distinct-time.ts'
import { manualClock } from '../../src/testing.ts'

it('a key gets each time of a clock once, and the time itself as soon as that is later', async () => {
  const set = vi.spyOn(Map.prototype, 'set')
  onTestFinished(() => set.mockRestore())
  const clock = manualClock()
  const start = clock.now()
  const times = () => ['a', 'a', 'b', 'a'].map((key) => distinctTime(clock, key) - start)
  expect(times()).toEqual([0, 1, 0, 2])
  await clock.advance(2)
  expect(times()).toEqual([3, 4, 2, 5])
  await clock.advance(100)
  expect(distinctTime(clock, 'a') - start).toBe(102)
  expect(set.mock.contexts.at(-1)).toEqual(new Map([['a', start + 102]])) // It has forgotten the other key.
  expect(distinctTime(manualClock(), 'a') - start).toBe(0)
})
