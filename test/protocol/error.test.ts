import { expect, it } from 'vitest'
import { invalidField, kindOf } from '../../src/protocol/error.ts'

it.each([
  [null, 'null'],
  ['', 'an empty string'],
  ['hunter2', 'a string'],
  [5, 'a number'],
  [{ secret: 'hunter2' }, 'an object'],
  [['hunter2'], 'a list'],
  [Buffer.from('hunter2'), 'bytes'],
  [() => {}, 'a function'],
])('kindOf names the kind of %o, and shows nothing of it', (value, kind) => {
  expect(kindOf(value)).toBe(kind)
})

it('invalidField names the field, in its message and as its path', () => {
  expect(invalidField('message_invalid', 'event', 'must be a string', 'a number', 'a string')).toMatchObject({
    code: 'message_invalid',
    status: 422,
    path: 'event',
    message: '`event` must be a string. Got a number. Pass a string.',
  })
})
