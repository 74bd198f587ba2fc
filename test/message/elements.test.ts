import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { elementsOf, firstElement, isArray, textMember } from '../../src/message/elements.ts'

const encode = (text: string): Uint8Array => new TextEncoder().encode(text)
const decode = (bytes: Uint8Array): string => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
const textsOf = (text: string): string[] => elementsOf(encode(text)).map(decode)

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
const list = fc.array(fc.tuple(space, element, space), { maxLength: 30 })
const mark = fc.constantFrom('', '\ufeff')

describe('elements of an array', () => {
  it('are the texts that were joined, whatever JSON they are', () => {
    fc.assert(
      fc.property(mark, space, list, space, (before, around, parts, behind) => {
        const text = `${before}${around}[${parts.map((part) => part.join('')).join(',')}${parts.length ? '' : around}]${behind}`
        const texts = textsOf(text)
        expect(texts).toEqual(parts.map(([, each]) => each))
        expect(texts.map((each) => JSON.parse(each))).toEqual(JSON.parse(text.replace(/^\ufeff/, '')))
        expect(decode(firstElement(encode(text)))).toBe(parts[0]?.[1] ?? '')
        expect(isArray(encode(text))).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  it.each([
    ['[]', []],
    [' \n[ \t\r\n] ', []],
    ['[{}]', ['{}']],
    ['[ {"a":"]"} , {"b":"\\"]"},{"c":"\\\\"} ]', ['{"a":"]"}', '{"b":"\\"]"}', '{"c":"\\\\"}']],
    ['\ufeff[1,"2",[3,[4]],null]', ['1', '"2"', '[3,[4]]', 'null']],
  ])('of %j', (text, elements) => {
    expect(textsOf(text)).toEqual(elements)
  })

  it('share the memory of the body', () => {
    const body = encode('[{"a":1},{"b":2}]')
    expect(elementsOf(body).map(({ buffer }) => buffer)).toEqual([body.buffer, body.buffer])
  })

  it.each(['{}', '', ' ', '"[]"', '\ufeff\ufeff[]', '\u00a0[]', 'x[]', '\ufeff', '\u{1}[]'])(
    '%j is no array',
    (text) => {
      expect(isArray(encode(text))).toBe(false)
      expect(firstElement(encode(text))).toHaveLength(0)
    },
  )

  it('end for any bytes, in a time that grows with them', () => {
    const bytes = fc.uint8Array({ maxLength: 200 })
    const structural = fc
      .array(fc.constantFrom(...encode('[]{},"\\ a')), { maxLength: 200 })
      .map((list) => Uint8Array.from(list))
    fc.assert(
      fc.property(fc.oneof(bytes, structural), (tail) => {
        const body = Uint8Array.from([0x5b, ...tail])
        const elements = elementsOf(body)
        expect(elements.reduce((sum, { length }) => sum + length, 0)).toBeLessThan(body.length)
        expect(firstElement(body).byteOffset).toBeGreaterThan(0)
      }),
    )
    const [quotes, slashes] = [`[${'"\\"'.repeat(200_000)}`, `["${'\\'.repeat(500_000)}`]
    expect(firstElement(encode(quotes))).toHaveLength(600_000)
    expect(firstElement(encode(slashes))).toHaveLength(500_001)
  })
})

describe('the text of a member', () => {
  it('is what JSON.parse finds, whatever stands around it', () => {
    const name = fc.constantFrom('key', 'key ', 'k\\u0065y', 'Key', 'other', 'a "key": "b', '')
    const value = fc.oneof(element, fc.constantFrom('"text"', '"\\u0061\\""', '{"key":"inner"}', '["key"]', '""'))
    const members = fc.array(
      fc.tuple(
        space,
        name.map((text) => JSON.stringify(text)),
        space,
        value,
        space,
      ),
    )
    fc.assert(
      fc.property(mark, members, (before, parts) => {
        const text = parts.map(([a, key, b, each, c]) => `${a}${key}${b}:${c}${each}${a}`).join(',')
        const { key } = JSON.parse(`{${text}}`)
        expect(textMember(encode(`${before}{${text}}`), 'key')).toBe(typeof key === 'string' ? key : undefined)
      }),
      { numRuns: 500 },
    )
  })

  it.each(['', '{', '{"key"', '{"key":', '{"key":"', '{"key":"\\x"}', '["key","a"]', '"key":"a"', '{"key" "a"}'])(
    '%j has none',
    (text) => {
      expect(textMember(encode(text), 'key')).toBeUndefined()
    },
  )
})
