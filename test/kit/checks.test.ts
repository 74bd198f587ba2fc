import { expect, it } from 'vitest'
import {
  nearest,
  refuseUnknown,
  requireBoolean,
  requireClock,
  requireFunction,
  requireInteger,
  requireOneOf,
  requireOptions,
  requireText,
  requireUrl,
  show,
} from '../../src/kit/checks.ts'
import { MAX_TIMER_MS } from '../../src/kit/clock.ts'
import { expectRefusal } from '../support/refusal.ts'

it('a number may be the least and the most, by default the longest wait of a timer', () => {
  expect(requireInteger('n', 3, 3, 3)).toBe(3)
  expect(requireInteger('n', MAX_TIMER_MS, 0)).toBe(2 ** 31 - 1)
})

it.each<[check: () => unknown, ...parts: string[]]>([
  [() => requireOptions('f', null, ['a']), '`f: options`'],
  [() => refuseUnknown({ limt: 1 }, ['limit', 'path']), '`limt`', '`limit`?'],
  [() => refuseUnknown({ sharedSecret: 1 }, ['url', 'secret']), '`sharedSecret`', '`secret`?'],
  [() => refuseUnknown({ c: 1 }, ['size'], 'list[0].'), '`list[0].c`'],
  [() => requireFunction('f', {}), '`f`'],
  [() => requireText('t', 5, 'a'), '`t`'],
  [() => requireBoolean('b', 'no'), '`b`'],
  [() => requireInteger('n', 0, 1, 5), '`n`', '1 to 5'],
  [() => requireInteger('n', '3', 1, 5), '`n`'],
  [() => requireOneOf('o', 'aa', ['ab', 5]), '`o`', "'ab'?"],
  [() => requireClock(undefined as never), '`clock.now`'],
  ...[undefined, 'ftp://t0ken', 't0ken-in-a-broken-url', '', 'https://a:t0ken@c', 'https://c#t0ken'].map(
    (url): [() => unknown, string] => [() => requireUrl('u', url, ''), '`u`'],
  ),
])('a check refuses what is wrong, names the option, and shows no URL: %#', async (check, ...parts) => {
  for (const part of parts) await expectRefusal(check, part, /t0ken/)
})

it.each([
  ["it's \n", "'it\\'s \\n'"],
  ['x'.repeat(41), 'a string of 41 characters'],
  [Number.NaN, 'NaN'],
  [null, 'null'],
  [new Uint8Array(2), 'bytes'],
])('an error shows %o on one line, and short', (value, text) => {
  expect(show(value)).toBe(text)
})

it('a name is near another one when at most two letters differ', () => {
  const names = ['timeoutMs', 'limit', 'path']
  const near = ['TIMEOUTMS', 'timeout', 'pth', 'patths', 'colour', 'tim'].map((name) => nearest(name, names))
  expect(near).toEqual(['timeoutMs', 'timeoutMs', 'path', 'path', undefined, undefined])
  expect(nearest('pa', ['x'])).toBeUndefined()
})
