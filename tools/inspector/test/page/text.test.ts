/** The text of strangers as the page shows it: marks that are not seen, bodies as a tree, the difference of two, initials, copies. */

import fc from 'fast-check'
import { expect, it } from 'vitest'
import { endOfPiece, splitText } from '../../src/page/codes.ts'
import { copyAsCurl, copyAsTest, quoteForScript } from '../../src/page/copy.ts'
import { childrenOf, excerptOf, findDifferences, type Json, parseJson } from '../../src/page/json.ts'
import type { Detail } from '../../src/wire.ts'
import { bodyOf, detailOf, NASTY } from '../copied.ts'

it('text shows by its code what is not seen, and the marks of a long run', () => {
  expect(splitText('a\u202eb\nc', false)).toEqual(['a', { code: '\\u202e' }, 'b', { code: '\\n' }, 'c'])
  expect(endOfPiece('a😀😀', 0, 20)).toBe(3) // No half of a character.
  expect(splitText('a\nb\u007f', true)).toEqual(['a\nb', { code: '\\u007f' }, ''])
})

it('text has a bounded number of marks, and still nothing is shown as it is', () => {
  const pieces = splitText('x\u202e\n'.repeat(20_000), true)
  expect(pieces.filter((piece) => typeof piece !== 'string')).toHaveLength(50)
  const text = pieces.map((piece) => (typeof piece === 'string' ? piece : piece.code)).join('')
  expect(text === 'x\\u202e\n'.repeat(20_000)).toBe(true)
  const marked = [`e${'\u0301'.repeat(8)}`, { code: '\\u0301' }, '', { code: '\\u0301' }, '']
  expect(splitText(`e${'\u0301'.repeat(10)}`, false)).toEqual(marked)
  expect(splitText('สวัสดี ষ্ট שָׁלוֹם', false)).toEqual(['สวัสดี ষ্ট שָׁלוֹם'])
})

function toValue(json: Json): unknown {
  if (json.kind === 'string') return json.value
  if (json.kind === 'literal') return JSON.parse(json.text)
  if (json.kind === 'array') return json.items.map(toValue)
  const object = {}
  for (const { key, value } of json.entries) {
    Object.defineProperty(object, key, { value: toValue(value), enumerable: true, configurable: true, writable: true })
  }
  return object
}

const nested = (depth: number, value: number) => parseJson(`${'['.repeat(depth)}${value}${']'.repeat(depth)}`)

it('the JSON of a body is what JSON.parse makes of it, with the digits of numbers, the order and what is repeated', () => {
  const check = fc.property(fc.json(), fc.nat(2), (text, indent) => {
    const spaced = JSON.stringify(JSON.parse(text), null, indent)
    expect(toValue(parseJson(spaced))).toEqual(JSON.parse(spaced))
  })
  fc.assert(check)
  const entry = (key: string, text: string) => ({ key, value: { kind: 'literal', text } })
  const entries = [entry('b', '1e400'), entry('a', '12345678901234567890'), entry('b', '-0.10')]
  expect({ ...parseJson('{"b":1e400,"a":12345678901234567890,"b":-0.10}') }).toEqual({ kind: 'object', entries })
})

it('the JSON of a body may be nested however deep, and is refused when it is none', () => {
  let [json, depth] = [nested(50_000, 1), 0]
  for (; json.kind === 'array'; depth += 1) json = json.items[0] as Json
  expect(depth).toBe(50_000)
  for (const text of ['', '{', '{"a":1}x', "{'a':1}", '[01]']) expect(() => parseJson(text)).toThrow(SyntaxError)
})

it('the JSON of a body has a short beginning', () => {
  expect(excerptOf(parseJson('{"a":[1,2],"b":"c"}'))).toBe('{"a": [1, 2], "b": "c"}')
  expect(excerptOf(parseJson('{"a":{"b":1},"c":2}'), 6)).toBe('{"a": {…}, …}')
  expect(excerptOf(parseJson('["abcdef",1234567]'), 9)).toBe('["abcde…", …]')
  expect(excerptOf(nested(50_000, 1), 60).length).toBeLessThan(100)
  const check = fc.property(fc.json(), fc.nat(100), (text, most) => {
    expect(excerptOf(parseJson(text), most).length).toBeLessThan(10 * most + 50)
  })
  fc.assert(check)
})

function differences(left: string, right: string, most = 100) {
  const textOf = (json: Json | undefined) => json && excerptOf(json)
  const found = findDifferences(parseJson(left), parseJson(right), most)
  return found.map(({ path, left, right }) => `${path}: ${textOf(left)}, ${textOf(right)}`)
}

it('the difference of two bodies names each field that differs, in their order', () => {
  const left = '{"a":1,"b":{"c":[1,{"d":"x"}],"e f":true},"gone":{"x":1}}'
  const right = '{"b":{"e f":null,"c":[1,{"d":"y"},3]},"a":1,"new":[]}'
  const inner = ['b.c[1].d: "x", "y"', 'b.c[2]: undefined, 3', 'b["e f"]: true, null']
  expect(differences(left, right)).toEqual([...inner, 'gone: {"x": 1}, undefined', 'new: undefined, []'])
})

it('the difference of two bodies is empty for a body and itself, stops at its limit, and compares any length and depth', () => {
  fc.assert(fc.property(fc.json(), (text) => differences(text, text).length === 0))
  expect(differences(JSON.stringify(Array(50).fill(1)), JSON.stringify(Array(50).fill(2)), 20)).toHaveLength(20)
  const list = (last: number) => JSON.stringify([...Array(20_000).fill(1), last])
  expect(differences(list(1), list(2))).toEqual(['[20000]: 1, 2'])
  expect(findDifferences(nested(2_000, 1), nested(2_000, 2), 1)[0]?.path).toBe('[0]'.repeat(2_000))
  expect(childrenOf(nested(2_000, 1))).toHaveLength(1)
})

it('a copied command types nothing that a terminal acts on, posts to no odd host, and leaves the hidden query of a URL out', () => {
  for (const text of NASTY) {
    const command = copyAsCurl(detailOf(bodyOf(Buffer.from(text)), [['x-a', text]])) as string
    expect(command.match(/\p{Cc}/gu)?.filter((found) => found !== '\n') ?? []).toEqual([])
  }
  const body = bodyOf(Buffer.from('{}'))
  const request = { method: 'POST', path: '/a', headers: [['host', 'x.example/?'] as const] }
  const attempt = { url: 'https://shop.example/a?…', at: 0, durationMs: 1, ok: true, body: '' }
  const sent: Detail = { ...detailOf(body), steps: [{ at: 0, what: 'attempt', attempt }] }
  expect(copyAsCurl({ body, request, steps: [] })).toContain("'http://localhost:3000/a'")
  expect(copyAsCurl({ ...sent, request: undefined } as never)).toContain("'https://shop.example/a'")
})

it('no copy is offered of a body that was not kept, nor a test of bytes that are no text', () => {
  expect(copyAsCurl(detailOf({ size: 9 }))).toBeUndefined()
  expect(copyAsTest(detailOf({ size: 9 }))).toBeUndefined()
  expect(copyAsTest(detailOf({ size: 1, base64: '/w==' }))).toBeUndefined()
})

it('the quotes of a copied test hold any text for JavaScript, seen as it is', () => {
  const unit = fc.oneof(fc.constantFrom(...NASTY, '\ud800', "\\'", '"', '`', '${'), fc.string({ maxLength: 20 }))
  const check = fc.property(fc.string({ unit, maxLength: 50 }), (text) => {
    const quoted = quoteForScript(text)
    expect(new Function(`return ${quoted}`)()).toBe(text)
    expect(quoted).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u)
  })
  fc.assert(check)
})
