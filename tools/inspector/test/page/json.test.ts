/** Bodies as the page shows them: as a tree, and the difference of two. */

import fc from 'fast-check'
import { expect, it } from 'vitest'
import { childrenOf, excerptOf, findDifferences, type Json, parseJson } from '../../src/page/json.ts'

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

it('the JSON of a body is what JSON.parse makes of it', () => {
  const check = fc.property(fc.json(), fc.nat(2), (text, indent) => {
    const spaced = JSON.stringify(JSON.parse(text), null, indent)
    expect(toValue(parseJson(spaced))).toEqual(JSON.parse(spaced))
  })
  fc.assert(check)
})

it('the JSON of a body keeps the digits of numbers, the order and what is repeated', () => {
  const entry = (key: string, text: string) => ({ key, value: { kind: 'literal', text } })
  const entries = [entry('b', '1e400'), entry('a', '12345678901234567890'), entry('b', '-0.10')]
  expect({ ...parseJson('{"b":1e400,"a":12345678901234567890,"b":-0.10}') }).toEqual({ kind: 'object', entries })
})

it('the JSON of a body may be nested however deep', () => {
  let json = parseJson(`${'['.repeat(50_000)}1${']'.repeat(50_000)}`)
  let depth = 0
  for (; json.kind === 'array'; depth += 1) json = json.items[0] as Json
  expect(depth).toBe(50_000)
})

it('the JSON of a body is refused when it is none', () => {
  for (const text of ['', '{', '{"a":1}x', "{'a':1}", '[01]']) expect(() => parseJson(text)).toThrow(SyntaxError)
})

it('the JSON of a body has a short beginning', () => {
  expect(excerptOf(parseJson('{"a":[1,2],"b":"c"}'))).toBe('{"a": [1, 2], "b": "c"}')
  expect(excerptOf(parseJson('{"a":{"b":1},"c":2}'), 6)).toBe('{"a": {…}, …}')
  const check = fc.property(fc.json(), fc.nat(100), (text, most) => {
    expect(excerptOf(parseJson(text), most).length).toBeLessThan(10 * most + 50)
  })
  fc.assert(check)
  expect(excerptOf(parseJson(`${'['.repeat(50_000)}${']'.repeat(50_000)}`), 60).length).toBeLessThan(100)
})

function differences(left: string, right: string, most = 100) {
  const textOf = (json: Json | undefined) => json && excerptOf(json)
  const found = findDifferences(parseJson(left), parseJson(right), most)
  return found.map(({ path, left, right }) => [path, textOf(left), textOf(right)])
}

it('the difference of two bodies names each field that differs, in their order', () => {
  const left = '{"a":1,"b":{"c":[1,{"d":"x"}],"e f":true},"gone":{"x":1}}'
  const right = '{"b":{"e f":null,"c":[1,{"d":"y"},3]},"a":1,"new":[]}'
  expect(differences(left, right)).toEqual([
    ['b.c[1].d', '"x"', '"y"'],
    ['b.c[2]', undefined, '3'],
    ['b["e f"]', 'true', 'null'],
    ['gone', '{"x": 1}', undefined],
    ['new', undefined, '[]'],
  ])
})

it('the difference of two bodies tells kinds apart, and numbers that JavaScript cannot', () => {
  expect(differences('{"a":"1"}', '{"a":1}')).toEqual([['a', '"1"', '1']])
  expect(differences('[]', '{}')).toEqual([['', '[]', '{}']])
  expect(differences('[12345678901234567890]', '[12345678901234567891]')).toHaveLength(1)
  expect(differences('[1e400]', '[1e400]')).toEqual([])
})

it('the difference of two bodies is empty for a body and itself, and stops at its limit', () => {
  const check = fc.property(fc.json(), (text) => {
    expect(differences(text, text)).toEqual([])
  })
  fc.assert(check)
  expect(differences(JSON.stringify(Array(50).fill(1)), JSON.stringify(Array(50).fill(2)), 20)).toHaveLength(20)
})

it('the difference of two bodies compares lists of any length', () => {
  const list = (last: number) => JSON.stringify([...Array(20_000).fill(1), last])

  expect(differences(list(1), list(2))).toEqual([['[20000]', '1', '2']])
})

it('the difference of two bodies reads what is nested deep', () => {
  const deep = (value: number) => parseJson(`${'['.repeat(2_000)}${value}${']'.repeat(2_000)}`)
  expect(findDifferences(deep(1), deep(2), 1)[0]?.path).toBe('[0]'.repeat(2_000))
  expect(childrenOf(deep(1))).toHaveLength(1)
})
