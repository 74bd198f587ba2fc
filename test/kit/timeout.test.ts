import { getEventListeners } from 'node:events'
import { expect, it } from 'vitest'
import { createPending, TIMED_OUT, waitUnlessAborted } from '../../src/kit/timeout.ts'
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

it('pending waits end together when they are told to, and those that ended before do not', async () => {
  const pending = createPending()
  const forever = new Promise(() => {})
  const early = [pending.wait(Promise.resolve(5), 60_000), pending.wait(forever, 1)]
  expect(await Promise.all(early)).toEqual([5, TIMED_OUT])
  const waits = [pending.wait(forever, 60_000), pending.wait(forever, 60_000)]
  pending.rejectAll(new Error('closed'))
  expect(await Promise.allSettled(waits)).toEqual(Array(2).fill({ status: 'rejected', reason: new Error('closed') }))
})
