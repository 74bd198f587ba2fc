import { describe, expect, it, vi } from 'vitest'
import { systemClock } from '../../src/kit/clock.ts'

describe('systemClock', () => {
  it('tells the time of the machine, and one that nobody sets', () => {
    expect(Math.abs(systemClock.now() - Date.now())).toBeLessThan(1000)
    const before = systemClock.monotonic()
    vi.spyOn(Date, 'now').mockReturnValue(0)
    expect(systemClock.monotonic()).toBeGreaterThanOrEqual(before)
    vi.restoreAllMocks()
  })

  it('sets timers and clears them', () => {
    const timeouts = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const before = timeouts()
    const timer = systemClock.setTimeout(() => {}, 60_000)
    expect(timeouts()).toBe(before + 1)
    systemClock.clearTimeout(timer)
    expect(timeouts()).toBe(before)
  })
})
