import { expect, it } from 'vitest'
import { describeError, kindOf } from '../../src/protocol/error.ts'
import { throwing } from '../support/throwing.ts'

it.each([
  [null, 'null'],
  ['', 'an empty string'],
  [[], 'an empty list'],
  [Promise.resolve('hunter2'), 'a promise'],
  ['hunter2', 'a string'],
  [5, 'a number'],
  [{ secret: 'hunter2' }, 'an object'],
  [['hunter2'], 'a list'],
  [Buffer.from('hunter2'), 'bytes'],
  [() => {}, 'a function'],
])('kindOf names the kind of %o, and shows nothing of it', (value, kind) => {
  expect(kindOf(value)).toBe(kind)
})

it('describeError describes even an error whose message cannot be read', () => {
  const hostile = Object.defineProperty(new Error(), 'message', { get: throwing('no') })
  expect(describeError(hostile)).toBeTypeOf('string')
})
