import fc from 'fast-check'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { systemClock } from '../../src/kit/clock.ts'
import { createDeadlines, type Deadline } from '../../src/kit/deadlines.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { runs } from '../support/properties.ts'

it('the clock of the system tells the time of the machine, and one that nobody sets', () => {
  expect(Math.abs(systemClock.now() - Date.now())).toBeLessThan(1000)
  const before = systemClock.monotonic()
  const now = vi.spyOn(Date, 'now').mockReturnValue(0)
  expect(systemClock.monotonic()).toBeGreaterThanOrEqual(before)
  now.mockRestore()
})

function setUp() {
  const clock = manualClock()
  const deadlines = createDeadlines(100, clock)
  const passed: string[] = []
  const set = (name: string): Deadline => deadlines.set(() => passed.push(name))
  return { clock, deadlines, passed, set }
}

describe('deadlines', () => {
  it('pass at once when their time is over already, without a timer below zero: Node warns of one', async () => {
    const { clock, deadlines, passed } = setUp()
    const setTimeout = vi.spyOn(clock, 'setTimeout')
    await clock.advance(500)
    deadlines.set(() => passed.push('late'), 0)
    await clock.advance(0)
    expect(passed).toEqual(['late'])
    expect(setTimeout).toHaveBeenCalledWith(expect.any(Function), 0)
  })

  it('pass at their time, on one timer, whatever is set and cleared between', async () => {
    const step = fc.record({ wait: fc.nat(60), clear: fc.boolean() })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
        const clock = manualClock(0)
        const deadlines = createDeadlines(100, clock)
        const passed: number[] = []
        const expected: number[] = []
        let last: Deadline | undefined
        for (const { wait, clear } of steps) {
          await clock.advance(wait)
          if (clear && last !== undefined && last.at > clock.monotonic()) {
            deadlines.clear(last)
            expected.pop()
            last = undefined
          }
          const at = clock.now() + 100
          last = deadlines.set(() => passed.push(clock.now() - at))
          expected.push(0)
          expect(clock.timers).toBe(1)
        }
        await clock.advance(1000)
        expect(passed).toEqual(expected)
        expect(clock.timers).toBe(0)
      }),
      { numRuns: runs(50) },
    )
  })

  it('may be set while one passes', async () => {
    const { clock, deadlines, passed, set } = setUp()
    deadlines.set(() => void set('from the first'))
    await clock.advance(50)
    set('second')
    await clock.advance(50)
    expect(clock.timers).toBe(1)
    await clock.advance(50)
    expect(passed).toEqual(['second'])
    await clock.advance(49)
    expect(passed).toEqual(['second'])
    await clock.advance(1)
    expect(passed).toEqual(['second', 'from the first'])
  })

  it('have a timer each on workerd, which ends timers with the request that set them', async () => {
    vi.stubGlobal('navigator', { userAgent: 'Cloudflare-Workers' })
    onTestFinished(() => void vi.unstubAllGlobals())
    const { clock, deadlines, passed, set } = setUp()
    set('first')
    const second = set('second')
    expect(clock.timers).toBe(2)
    deadlines.clear(second)
    expect(clock.timers).toBe(1)
    await clock.advance(99)
    expect(passed).toEqual([])
    await clock.advance(1)
    expect(passed).toEqual(['first'])
  })

  it('keep the process alive while something waits, and not when nothing does', () => {
    const timeouts = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const before = timeouts()
    const deadlines = createDeadlines(60_000, systemClock)
    const [first, second] = [deadlines.set(() => {}), deadlines.set(() => {})]
    deadlines.clear(first)
    expect(timeouts()).toBe(before + 1)
    deadlines.clear(second)
    expect(timeouts()).toBe(before)
    const third = deadlines.set(() => {})
    expect(timeouts()).toBe(before + 1)
    deadlines.clear(third)
    expect(timeouts()).toBe(before)
  })
})
