/** What holds a message: the circuits of the URLs that may still accept it. */

import { expect, it } from 'vitest'
import { findRemaining } from '../../../src/inspector/page/retry-times.ts'
import type { CircuitLine, Step } from '../../../src/inspector/wire.ts'

const circuits = (...states: CircuitLine['state'][]) =>
  states.map((state, index): CircuitLine => ({ url: `https://${index}.example/`, state }))

function attempt(index: number, outcome: { readonly status?: number; readonly error?: string }): Step {
  const common = { url: `https://${index}.example/`, at: 0, durationMs: 1, ok: false, body: '' }
  return { at: 0, what: 'attempt', attempt: { ...common, ...outcome } }
}

function heldBy(states: CircuitLine['state'][], ...steps: readonly Step[]) {
  const { open, others } = findRemaining(circuits(...states), steps)
  return [open.map(({ url }) => url.slice(8, 9)), others]
}

it.each([
  ['a destination without circuits', [], [[], 0]],
  ['one that is open', ['open'], [['0'], 0]],
  ['one of two', ['closed', 'open'], [['1'], 1]],
  ['two of three', ['open', 'half_open', 'open'], [['0', '2'], 1]],
] as const)('before the first attempt: %s', (_name, states, expected) => {
  expect(heldBy([...states])).toEqual(expected)
})

it('leaves out the URLs that gave a final response, until it is redriven', () => {
  const failed = [attempt(0, { status: 503 }), attempt(1, { status: 410 }), attempt(2, { error: 'self_signed' })]
  expect(heldBy(['open', 'closed', 'open'], ...failed)).toEqual([['0'], 0])
  expect(heldBy(['open', 'closed', 'open'], ...failed, { at: 1, what: 'redriven' })).toEqual([['0', '2'], 1])
  expect(heldBy(['open', 'open'], attempt(0, { status: 410 }), attempt(0, { error: 'timeout' }))).toEqual([
    ['0', '1'],
    0,
  ])
})
