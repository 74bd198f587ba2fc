import fc from 'fast-check'
import { expect, it } from 'vitest'
import { textMember } from '../../src/protocol/text-member.ts'
import { runs } from '../support/properties.ts'

const encode = (text: string): Uint8Array => new TextEncoder().encode(text)

const space = fc.string({ unit: fc.constantFrom(' ', '\t', '\r', '\n'), maxLength: 3 })
/** Texts of JSON values, in forms that JSON.stringify does not write, too. */
const element = fc.oneof(
  fc.json({ maxDepth: 6 }),
  fc.json().map((text) => JSON.stringify(JSON.parse(text), null, 2)),
  fc.string({ unit: 'binary' }).map((text) => JSON.stringify(text)),
  fc
    .string({ unit: fc.constantFrom('\\', '"', '[', ']', '{', '}', ',', 'é', '🙂') })
    .map((text) => JSON.stringify(text)),
  fc.constantFrom('1e3', '39.0', '-0', '"\\u005d\\"\\\\"', '{"a":1,"a":2}', '[[],[{}]]', 'null', '"\\/"', '""'),
)
const mark = fc.constantFrom('', '\ufeff')

it('the text of a member is what JSON.parse finds, whatever stands around it', () => {
  const name = fc.constantFrom('key', 'key ', 'k\\u0065y', 'Key', 'other', 'a "key": "b', '')
  const value = fc.oneof(element, fc.constantFrom('"text"', '"\\u0061\\""', '{"key":"inner"}', '["key"]', '""'))
  const key = name.map((text) => JSON.stringify(text))
  const members = fc.array(fc.tuple(space, key, space, value, space))
  fc.assert(
    fc.property(mark, members, (before, parts) => {
      const text = parts.map(([a, key, b, each, c]) => `${a}${key}${b}:${c}${each}${a}`).join(',')
      const { key } = JSON.parse(`{${text}}`)
      expect(textMember(encode(`${before}{${text}}`), 'key')).toBe(typeof key === 'string' ? key : undefined)
    }),
    { numRuns: runs(100) },
  )
})

const NONE = ['', '{', '{"key"', '{"key":', '{"key":"', '{"key":"\\x"}', '["key","a"]', '"key":"a"', '{"key" "a"}']
it.each(NONE)('%j has no text of a member', (text) => {
  expect(textMember(encode(text), 'key')).toBeUndefined()
})
