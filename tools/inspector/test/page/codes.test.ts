/** Text of strangers, however much of it is not seen. */

import { expect, it } from 'vitest'
import { endOfPiece, splitText } from '../../src/page/codes.ts'

it('shows by its code what is not seen', () => {
  expect(splitText('a\u202eb\nc', false)).toEqual(['a', { code: '\\u202e' }, 'b', { code: '\\n' }, 'c'])
  expect(splitText('a\nb\u007f', true)).toEqual(['a\nb', { code: '\\u007f' }, ''])
})

it('takes a bounded number of marks, and still shows nothing as it is', () => {
  const pieces = splitText('x\u202e\n'.repeat(20_000), true)
  expect(pieces.filter((piece) => typeof piece !== 'string')).toHaveLength(50)
  const text = pieces.map((piece) => (typeof piece === 'string' ? piece : piece.code)).join('')
  expect(text === 'x\\u202e\n'.repeat(20_000)).toBe(true)
})

it('shows by their codes the marks of a long run', () => {
  const [shown, ...rest] = splitText(`e${'\u0301'.repeat(10)}`, false)
  expect(shown).toBe(`e${'\u0301'.repeat(8)}`)
  expect(rest).toEqual([{ code: '\\u0301' }, '', { code: '\\u0301' }, ''])
  expect(splitText('สวัสดี ষ্ট שָׁלוֹם', false)).toEqual(['สวัสดี ষ্ট שָׁלוֹם'])
})

it('cuts a text into pieces that are the smaller the longer they take to lay out', () => {
  const pieceOf = (character: string) => endOfPiece(character.repeat(100_000), 1_000, 16_000) - 1_000
  expect(pieceOf('x')).toBe(16_000)
  expect(pieceOf('\n')).toBe(1_000)
  expect(pieceOf('\u0301')).toBe(1_000)
  expect(pieceOf('😀')).toBe(1_000)
  expect(endOfPiece(`x${'😀'.repeat(3)}`, 0, 17)).toBe(3)
  expect(endOfPiece('one\ntwo\nthree', 0, 40)).toBe(8)
  expect(endOfPiece('short', 0, 16_000)).toBe(5)
})
