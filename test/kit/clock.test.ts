import { expect, it, vi } from 'vitest'
import { systemClock } from '../../src/kit/clock.ts'

it('systemClock tells the time of the machine, and one that nobody sets', () => {
  expect(Math.abs(systemClock.now() - Date.now())).toBeLessThan(1000)
  const before = systemClock.monotonic()
  vi.spyOn(Date, 'now').mockReturnValue(0)
  expect(systemClock.monotonic()).toBeGreaterThanOrEqual(before)
  vi.restoreAllMocks()
})
