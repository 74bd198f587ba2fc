import { describe, expect, it } from 'vitest'
import { systemClock } from '../../src/protocol/clock.ts'
import {
  LONGEST_TIMER_MS,
  refuseUnknown,
  requireBoolean,
  requireClock,
  requireFunction,
  requireText,
  requireWhole,
} from '../../src/protocol/options.ts'

describe('checks of options', () => {
  it('let pass what is right', () => {
    refuseUnknown({ a: 1 }, ['a', 'b'])
    requireFunction('f', () => {})
    requireText('t', 'x')
    requireBoolean('b', false)
    requireClock(systemClock)
    expect(requireWhole('n', 3, 3, 3)).toBe(3)
    expect(requireWhole('n', LONGEST_TIMER_MS, 0)).toBe(2 ** 31 - 1)
  })

  it.each([
    [() => refuseUnknown({ c: 1 }, ['a', 'b']), 'c: no such option. There are a, b.'],
    [() => refuseUnknown({ c: 1 }, ['a'], 'list[0].'), 'list[0].c: no such option. There are a.'],
    [() => requireFunction('f', {}), 'f: must be a function.'],
    [() => requireText('t', ''), 't: must be a string that is not empty.'],
    [() => requireText('t', 5), 't: must be a string that is not empty.'],
    [() => requireBoolean('b', 'no'), 'b: must be true or false.'],
    [() => requireWhole('n', 0, 1, 5), 'n: must be a whole number from 1 to 5.'],
    [() => requireWhole('n', 6, 1, 5), 'n: must be a whole number from 1 to 5.'],
    [() => requireWhole('n', 1.5, 1, 5), 'n: must be a whole number from 1 to 5.'],
    [() => requireWhole('n', '3', 1, 5), 'n: must be a whole number from 1 to 5.'],
    [() => requireWhole('n', 2 ** 31, 0), 'n: must be a whole number from 0 to 2147483647.'],
    [() => requireClock({ ...systemClock, monotonic: undefined } as never), 'clock.monotonic: must be a function.'],
    [() => requireClock(undefined as never), 'clock.now: must be a function.'],
  ])('refuse what is not: %#', (check, message) => {
    expect(check).toThrow(new TypeError(message))
  })
})
