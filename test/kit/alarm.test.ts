import { expect, it, vi } from 'vitest'
import { createAlarm } from '../../src/kit/alarm.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'

it('an alarm goes off at the last time that was set, once, in no negative time and in none that is too long for a timer', async () => {
  const clock = manualClock(1_000)
  const times: number[] = []
  const setTimeout = vi.spyOn(clock, 'setTimeout')
  const alarm = createAlarm(clock, () => times.push(clock.now()))

  for (const at of [500, 1_000 + 2 ** 31, undefined, 1_300, 1_200, 1_200]) alarm.set(at)
  expect([clock.timers, setTimeout.mock.calls.map(([, ms]) => ms)]).toEqual([1, [0, 2 ** 31 - 1, 300, 200]])
  await clock.advance(200)
  alarm.set(1_200)
  await clock.advance(1_000)
  expect(times).toEqual([1_200, 1_200])
})
