/** Which attempts of a timeline are folded. */

import { expect, it } from 'vitest'
import { foldRepeats } from '../../src/page/repeats.ts'
import type { Step } from '../../src/wire.ts'

const failed = (attempt: number, message = 'down'): Step => ({
  at: attempt * 1_000,
  what: 'failed',
  attempt,
  durationMs: attempt,
  runs: [],
  error: { code: 'handler_failed', message, stack: `Error: at ${attempt}` },
  next: attempt * 1_000 + 500,
})

const round = (at: number, status: number): Step[] => [
  { at, what: 'attempt', attempt: { url: 'http://a', at, durationMs: at, ok: false, status, body: 'no' } },
  { at: at + 1, what: 'round', status: 'retrying', retryAt: at + 100 },
]
const sizes = (steps: readonly Step[]) =>
  foldRepeats(steps).map(({ steps, repeats }) => (repeats === undefined ? steps.length : [repeats, steps.length]))

it('folds rounds with the same result between the first and the last of them', () => {
  const steps = [1, 2, 3, 4].map((attempt) => failed(attempt))
  expect(foldRepeats(steps)).toEqual([
    { steps: [steps[0]] },
    { steps: [steps[1], steps[2]], repeats: 2 },
    { steps: [steps[3]] },
  ])
})

it('shows what differs in more than its times: another error, another answer', () => {
  expect(sizes([failed(1), failed(2), failed(3, 'another'), failed(4)])).toEqual([2, 1, 1])
  expect(sizes([1, 2, 3].flatMap((at) => round(at, 503)))).toEqual([2, [1, 2], 2])
  expect(sizes([round(1, 503), round(2, 500), round(3, 503)].flat())).toEqual([2, 2, 2])
})

it('folds no two, and keeps what comes before and after the attempts', () => {
  const first: Step = { at: 0, what: 'queued' }
  const last: Step = { at: 9, what: 'redriven' }
  expect(sizes([first, ...round(1, 503), ...round(2, 503), last])).toEqual([1, 4, 1])
  expect(sizes([first, failed(1), failed(2), failed(3), last])).toEqual([1, 1, [1, 1], 1, 1])
  expect(sizes([last, last, last])).toEqual([3])
  expect(sizes([])).toEqual([])
})
