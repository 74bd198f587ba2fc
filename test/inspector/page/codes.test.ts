/** Text of strangers, however much of it is not seen. */

import { expect, it } from 'vitest'
import { splitText } from '../../../src/inspector/page/codes.ts'

it('shows by its code what is not seen', () => {
  expect(splitText('a\u202eb\nc', false)).toEqual(['a', { code: '\\u202e' }, 'b', { code: '\\n' }, 'c'])
  expect(splitText('a\nb\u007f', true)).toEqual(['a\nb', { code: '\\u007f' }, ''])
})

it('takes a bounded number of marks, and still shows nothing as it is', () => {
  const pieces = splitText('x\u202e\n'.repeat(100_000), true)
  expect(pieces.filter((piece) => typeof piece !== 'string')).toHaveLength(50)
  const text = pieces.map((piece) => (typeof piece === 'string' ? piece : piece.code)).join('')
  expect(text).toBe('x\\u202e\n'.repeat(100_000))
})
