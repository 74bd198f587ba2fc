import { getEventListeners } from 'node:events'
import { expect, it } from 'vitest'
import { waitUnlessAborted } from '../../src/kit/timeout.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'

it('a wait leaves neither its timer nor its listener behind, whichever of the two ends it', async () => {
  const clock = manualClock()
  const gone = new AbortController()
  const left = () => [clock.timers, getEventListeners(gone.signal, 'abort').length]
  const [first, second] = [100, 200].map((ms) => waitUnlessAborted(ms, clock, gone.signal))

  await clock.advance(100)
  await first
  expect(left()).toEqual([1, 1])

  gone.abort()
  await second
  expect(left()).toEqual([0, 0])
})
