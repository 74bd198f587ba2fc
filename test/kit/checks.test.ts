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

  it.each<[check: () => unknown, ...parts: string[]]>([
    [() => requireOptions('f', null, ['a']), '`f: options`', 'Got null.', 'a'],
    [() => requireOptions('f', Buffer.alloc(32), ['a']), '`f: options` must be an object', 'Got bytes.', 'a'],
    [() => requireOptions('f', new Float64Array(1), ['a']), '`f: options` must be an object', 'Got bytes.', 'a'],
    [() => requireOptions('f', ['a'], ['a']), '`f: options` must be an object', 'Got a list.', 'a'],
    [() => refuseUnknown(new Uint8Array(1), ['a'], 'list[0].'), '`list[0]` must be an object', 'Got bytes.', 'a'],
    [() => refuseUnknown([1], ['a']), '`options` must be an object', 'Got a list.', 'a'],
    [() => refuseUnknown({ limt: 1 }, ['limit', 'path']), '`limt`', '`limit`?', 'limit, path'],
    [() => refuseUnknown({ sharedSecret: 1 }, ['url', 'secret']), '`sharedSecret`', '`secret`?'],
    [() => refuseUnknown({ c: 1 }, ['size'], 'list[0].'), '`list[0].c`', 'size'],
    [() => requireFunction('f', {}), '`f`', 'Got an object.'],
    [() => requireText('t', 5, 'a'), '`t`', 'Got a number.', "'a'"],
    [() => requireBoolean('b', 'no'), '`b`', "Got 'no'."],
    [() => requireInteger('n', 0, 1, 5), '`n`', '1 to 5', 'Got 0.'],
    [() => requireInteger('n', '3', 1, 5), '`n`', "Got '3'."],
    [() => requireOneOf('o', 'aa', ['ab', 5]), '`o`', "Got 'aa'.", "'ab'?", "'ab', 5"],
    [() => requireClock(undefined as never), '`clock.now`', 'Got undefined.'],
    [() => requireUrl('u', 'https://a:b@c', 'Use x.'), '`u`', 'Use x.'],
    [() => requireUrl('u', 'https://c#d', ''), '`u`', '#'],
  ])('refuse what is not, with the option and what it is: %#', (check, ...parts) => {
    expect(check).toThrow(TypeError)
    for (const part of parts) expect(check).toThrow(part)
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
      expect(message).toContain('`u`')
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
