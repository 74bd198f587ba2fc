/** Generated code accepts what the JSON Schema accepts, and nothing else. */

import { Validator } from '@cfworker/json-schema'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createAjv } from '../../src/types/ajv.ts'
import { accepts, runCode, write } from './code.ts'

type Schema = Readonly<Record<string, unknown>>

const NAMES = ['a', 'b', 'total', "it's", 'line\nbreak', '"', '*/', '`', 'é', '', 'class', '1', '\\', '\u202e']
const TEXTS = ['', 'a', 'ab', 'abcdef', '💥💥', '2026-11-20', "'", '\\"', '\u2028', 'A-12']
const NUMBERS = [0, 1, -1, 2, 3, 5, 10, 0.5, 1.25, -7, 1e15, 19.99]
const PATTERNS = ['^a', 'b$', '^[A-Z]-\\d+$', '/', '[/"\']', '💥', '\n', '']

const text = fc.constantFrom(...TEXTS)
const number = fc.constantFrom(...NUMBERS)
const size = fc.integer({ min: 0, max: 3 })
const primitive = fc.oneof(text, number, fc.boolean(), fc.constant(null))

function some<T extends Record<string, fc.Arbitrary<unknown>>>(fields: T): fc.Arbitrary<Partial<Schema>> {
  return fc.record(fields, { requiredKeys: [] })
}

const { schema } = fc.letrec<{ schema: Schema; object: Schema; node: Schema | boolean }>((tie) => {
  const ofString = some({ minLength: size, maxLength: size, pattern: fc.constantFrom(...PATTERNS) })
  const ofNumber = some({
    minimum: number,
    maximum: number,
    exclusiveMinimum: number,
    exclusiveMaximum: number,
    multipleOf: fc.constantFrom(1, 2, 5, 0.25),
  })
  const ofArray = some({ items: tie('node'), minItems: size, maxItems: size })
  const ofObject = some({
    properties: fc.dictionary(fc.constantFrom(...NAMES), tie('node'), { maxKeys: 4 }),
    required: fc.uniqueArray(fc.constantFrom(...NAMES), { maxLength: 2 }),
    additionalProperties: fc.oneof(fc.boolean(), tie('node')),
  })
  const typed = (type: string | string[], ...parts: fc.Arbitrary<Partial<Schema>>[]) =>
    fc.tuple(...parts).map((keywords) => Object.assign({ type }, ...keywords) as Schema)
  const unique = typed('array', ofArray).map((schema) => ({ ...schema, items: { type: 'string' }, uniqueItems: true }))
  const literals = fc.uniqueArray(primitive, { minLength: 1, maxLength: 4 })
  const parts = fc.array(tie('node'), { minLength: 1, maxLength: 3 })
  return {
    node: fc.oneof({ maxDepth: 4 }, { weight: 1, arbitrary: fc.boolean() }, { weight: 9, arbitrary: tie('schema') }),
    object: typed('object', ofObject),
    schema: fc.oneof(
      { maxDepth: 4 },
      typed('string', ofString),
      typed('number', ofNumber),
      typed('integer', ofNumber),
      fc.constantFrom('null', 'boolean').map((type) => ({ type })),
      typed(['string', 'null'], ofString),
      typed(['integer', 'string', 'object'], ofNumber, ofString, ofObject),
      some({ type: fc.constantFrom('string', 'number', ['string', 'null']), maxLength: size, enum: literals }),
      primitive.map((value) => ({ const: value })),
      ...[tie('object'), tie('object'), typed('array', ofArray), unique],
      ...[fc.record({ anyOf: parts }), fc.record({ oneOf: parts }), fc.record({ not: tie('node') })],
      typed('object', fc.record({ patternProperties: fc.dictionary(fc.constantFrom('^a', 'b'), tie('node')) })),
      fc.record({ allOf: parts }),
      fc.record({
        allOf: fc.tuple(tie('object'), ofObject, fc.record({ anyOf: fc.array(ofObject, { minLength: 1 }) })),
      }),
      typed('object', ofObject, fc.record({ anyOf: fc.array(ofObject, { minLength: 1, maxLength: 2 }) })),
    ),
  }
}) as { schema: fc.Arbitrary<Schema> }

/** A value that a schema may accept: what it says, with a fault here and there. */
function valueFor(schema: unknown, next: (below: number) => number): unknown {
  const pick = <T>(list: readonly T[]): T => list[next(list.length)] as T
  if (typeof schema !== 'object' || schema === null || next(12) === 0)
    return pick([...TEXTS, ...NUMBERS, null, true, [], {}, ['a']])
  type Keywords = Readonly<Record<string, never>> & { readonly properties?: Schema; readonly required?: string[] }
  const { type, enum: values, const: value, anyOf, oneOf, allOf, items, minItems = 0 } = schema as Keywords
  const { properties = {}, required = [] } = schema as Keywords
  if ('const' in schema) return value
  if (values !== undefined) return pick(values)
  const parts = anyOf ?? oneOf ?? allOf
  if (type === undefined && parts !== undefined) return valueFor(pick(parts), next)
  const kind = pick([type].flat()) as string | undefined
  if (kind === 'string') return pick(TEXTS)
  if (kind === 'null') return null
  if (kind === 'boolean') return next(2) === 0
  if (kind === 'integer' || kind === 'number') return pick(NUMBERS)
  if (kind === 'array') return Array.from({ length: minItems + next(2) }, () => valueFor(items, next))
  const names = [...Object.keys(properties), ...required, ...(next(4) === 0 ? [pick(NAMES)] : [])]
  const used = names.filter((name) => required.includes(name) || next(2) === 0)
  return Object.fromEntries(used.map((name) => [name, valueFor(properties[name] ?? true, next)]))
}

const cases = fc.record({ schema, choices: fc.array(fc.nat(9999), { minLength: 40, maxLength: 40 }) })

/** Compares what judges values with what another library says of them: four values for each of so many schemas. */
function compare(
  numRuns: number,
  create: (schema: Schema) => (value: unknown, isValid: boolean) => boolean | undefined,
): { accepted: number; refused: number } {
  const seen = { accepted: 0, refused: 0 }
  const property = fc.property(cases, ({ schema, choices }) => {
    const judge = create(schema)
    const validator = new Validator(schema, '2020-12', true)
    let at = 0
    const next = (below: number): number => (choices[at++ % choices.length] as number) % below
    for (let count = 0; count < 4; count += 1) {
      const value = valueFor(schema, next)
      const { valid } = validator.validate(value)
      seen[valid ? 'accepted' : 'refused'] += 1
      const accepts = judge(value, valid)
      if (accepts !== undefined && accepts !== valid) throw new Error(`${valid}: ${JSON.stringify(value)}`)
    }
  })
  fc.assert(property, { numRuns })
  return seen
}

it.each(['zod', 'valibot'] as const)('code of %s accepts what the schema accepts, and no more', (format) => {
  const { accepted, refused } = compare(120, (schema) => {
    const { code, findings } = write({ type: 'object', properties: { value: schema } }, format)
    const generated = runCode(code).events['Order Completed']
    return (value, isValid) => {
      if (!isValid && findings.length > 0) return undefined // What is given up accepts any value.
      // `v.object` of valibot accepts lists, too.
      if (!isValid && format === 'valibot' && JSON.stringify(value)?.includes('[')) return undefined
      return accepts(generated, { value })
    }
  })

  expect(Math.min(accepted, refused)).toBeGreaterThan(50)
})

it('a check accepts what the schema accepts', () => {
  compare(40, (schema) => createAjv().compile(schema) as (value: unknown) => boolean)
})

it('a decimal number is a multiple of another one', () => {
  const { events } = runCode(write({ type: 'object', properties: { a: { type: 'number', multipleOf: 0.01 } } }).code)
  const validate = createAjv().compile({ multipleOf: 0.01 })
  for (const [a, is] of [[0.07, true] as const, [1_234_567.89, true] as const, [0.075, false] as const]) {
    expect([validate(a), accepts(events['Order Completed'], { a })]).toEqual([is, is])
  }
})

it('a schema that is nullable accepts null, too', () => {
  const { events } = runCode(write({ type: 'object', properties: { a: { type: 'string', nullable: true } } }).code)
  expect(['x', null, 1].map((a) => accepts(events['Order Completed'], { a }))).toEqual([true, true, false])
  expect(write({ type: ['string', 'null'] }).findings).toHaveLength(1) // No message is accepted.
})

const TEXT = { type: 'string', minLength: 2 }

it.each<[string, Schema]>([
  ['by a pointer', { definitions: { a: TEXT }, properties: { x: { $ref: '#/definitions/a' } } }],
  ['escaped', { $defs: { 'a/b~c %': TEXT }, properties: { x: { $ref: '#/$defs/a~1b~0c%20%25' } } }],
  ['by an anchor', { $defs: { a: { ...TEXT, $anchor: 'name' } }, properties: { x: { $ref: '#name' } } }],
  ['by an id of draft 4', { definitions: { a: { ...TEXT, id: '#name' } }, properties: { x: { $ref: '#name' } } }],
  ['to one more', { $defs: { a: TEXT, b: { $ref: '#/$defs/a' } }, properties: { x: { $ref: '#/$defs/b' } } }],
  ['with neighbours', { $defs: { a: { type: 'string' } }, properties: { x: { $ref: '#/$defs/a', minLength: 2 } } }],
])('a reference is followed: %s', (_what, schema) => {
  const { code, findings } = write({ type: 'object', ...schema })
  const generated = runCode(code).events['Order Completed']
  expect(['ab', 'a', 1].map((x) => accepts(generated, { x }))).toEqual([true, false, false])
  expect(findings).toEqual([])
})
