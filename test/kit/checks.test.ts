import { describe, expect, it } from 'vitest'
import {
  invalidOption,
  kindOf,
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
import { MAX_TIMER_MS, systemClock } from '../../src/kit/clock.ts'

describe('checks of options', () => {
  it('let pass what is right', () => {
    requireOptions('f', { a: 1 }, ['a', 'b'])
    refuseUnknown({ a: 1 }, ['a', 'b'])
    requireFunction('f', () => {})
    requireText('t', 'x')
    requireBoolean('b', false)
    requireClock(systemClock)
    expect(requireInteger('n', 3, 3, 3)).toBe(3)
    expect(requireInteger('n', MAX_TIMER_MS, 0)).toBe(2 ** 31 - 1)
    expect(requireOneOf('o', 'b', ['a', 'b'])).toBe('b')
    expect(requireUrl('u', 'https://example.com/a?b', '').href).toBe('https://example.com/a?b')
  })

  const range = '`n` must be a whole number from 1 to 5.'
  it.each([
    [() => requireOptions('f', null, ['a']), '`f: options` must be an object. Got null. Valid options: a.'],
    [() => requireOptions('f', [], ['a']), '`f: options` must be an object. Got an empty list. Valid options: a.'],
    [
      () => refuseUnknown({ limt: 1 }, ['limit', 'path']),
      '`limt` is not an option. Did you mean `limit`? Valid options: limit, path.',
    ],
    [
      () => refuseUnknown({ secret: 1 }, ['url', 'sharedSecret']),
      '`secret` is not an option. Did you mean `sharedSecret`? Valid options: url, sharedSecret.',
    ],
    [
      () => refuseUnknown({ sharedSecret: 1 }, ['url', 'secret']),
      '`sharedSecret` is not an option. Did you mean `secret`? Valid options: url, secret.',
    ],
    [() => refuseUnknown({ c: 1 }, ['size'], 'list[0].'), '`list[0].c` is not an option. Valid options: size.'],
    [() => requireFunction('f', {}), '`f` must be a function. Got an object. Pass a function.'],
    [
      () => requireText('t', ''),
      "`t` must be a non-empty string. Got an empty string. Pass a string, for example 'orders'.",
    ],
    [() => requireText('t', 5, 'a'), "`t` must be a non-empty string. Got a number. Pass a string, for example 'a'."],
    [() => requireBoolean('b', 'no'), "`b` must be a boolean. Got 'no'. Pass true or false."],
    [() => requireInteger('n', 0, 1, 5), `${range} Got 0. Pass a number in that range.`],
    [() => requireInteger('n', 1.5, 1, 5), `${range} Got 1.5. Pass a number in that range.`],
    [() => requireInteger('n', '3', 1, 5), `${range} Got '3'. Pass a number in that range.`],
    [
      () => requireOneOf('o', 'aa', ['ab', 5]),
      "`o` must be one of 'ab', 5. Got 'aa'. Did you mean 'ab'? Valid values: 'ab', 5.",
    ],
    [() => requireOneOf('o', {}, ['ab']), "`o` must be one of 'ab'. Got an object. Pass one of 'ab'."],
    [() => requireClock(undefined as never), '`clock.now` must be a function. Got undefined. Pass a function.'],
    [
      () => requireUrl('u', 'https://a:b@c', 'Use x.'),
      '`u` must hold no user name and password. Got a URL with them. Use x.',
    ],
    [
      () => requireUrl('u', 'https://c#d', ''),
      '`u` must hold no fragment. Got a URL with #. Remove the fragment: it is never sent.',
    ],
  ])('refuse what is not: %#', (check, message) => {
    expect(check).toThrow(new TypeError(message))
  })

  it.each([[undefined], ['ftp://host'], ['token-in-a-broken-url'], ['']])(
    'refuse %j as a URL without showing it',
    (value) => {
      let message = ''
      try {
        requireUrl('u', value, '')
      } catch (error) {
        message = (error as Error).message
      }
      expect(message).toMatch(/^`u` must be a full URL\. Got .+\. Pass one that begins with http:\/\//)
      expect(message).not.toContain('token')
    },
  )
})

describe('what an error shows', () => {
  it.each([
    ['a', "'a'"],
    ["it's \n", "'it\\'s \\n'"],
    ['"', `'"'`],
    ['x'.repeat(41), 'a string of 41 characters'],
    [Number.NaN, 'NaN'],
    [false, 'false'],
    [null, 'null'],
    [undefined, 'undefined'],
    [[1], 'a list'],
    [new Uint8Array(2), 'bytes'],
    [Symbol('s'), 'a symbol'],
  ])('of %o', (value, text) => {
    expect(show(value)).toBe(text)
  })

  it('is only the kind of a value that may be secret', () => {
    expect(kindOf('secret')).toBe('a string')
    expect(invalidOption('secret', 'must be text', kindOf(5), 'Pass text.').message).toBe(
      '`secret` must be text. Got a number. Pass text.',
    )
  })
})

it('a name is near another one when at most two letters differ', () => {
  const names = ['timeoutMs', 'limit', 'path']
  expect(names.map((name) => nearest(name.toUpperCase(), names))).toEqual(names)
  expect(nearest('timeout', names)).toBe('timeoutMs')
  expect(nearest('pth', names)).toBe('path')
  expect(nearest('patths', names)).toBe('path')
  expect(nearest('pa', ['x'])).toBeUndefined()
  expect(nearest('colour', names)).toBeUndefined()
  expect(nearest('tim', names)).toBeUndefined()
})
