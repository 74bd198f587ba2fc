/** Schemas and messages that were once read wrongly, or broke the command. */

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createFolder, hookline, jsonLines } from '../command.ts'
import { accepts, run, write } from './code.ts'

const of = (schema: unknown) => ({ title: 'A', type: 'object', properties: { a: schema } })
const rule = (key: string, jsonSchema: unknown, type = 'TRACK') => ({ key, type, version: 1, jsonSchema })
const message = (properties: object) =>
  JSON.stringify({ type: 'track', event: 'A', userId: 'u', messageId: 'm-1', properties })

/** Runs the command with a plan, and with messages if there are any. */
async function types(plan: unknown, ...messages: string[]) {
  const folder = await createFolder()
  const [p, m] = [join(folder, 'plan.json'), join(folder, 'messages')]
  await writeFile(p, typeof plan === 'string' ? plan : JSON.stringify(plan))
  await writeFile(m, messages.join('\n'))
  return hookline(messages.length === 0 ? ['types', p] : ['types', '--check', '--json', p, m])
}

describe('what is given up accepts any value', () => {
  it.each([
    [
      'a part of oneOf',
      { oneOf: [{ type: 'object', patternProperties: { '^a': { type: 'string' } } }, { type: 'string' }] },
    ],
    ['a reference in oneOf', { oneOf: [{ $ref: 'https://x.example/z' }, { type: 'string' }] }],
    ['a reference in not', { enum: ['x'], not: { $ref: 'https://x.example/z' } }],
    ['a reference in if', { if: { $ref: '#/none' }, else: { type: 'number' } }],
    [
      'a property of every object in oneOf',
      { oneOf: [{ type: 'object', properties: { constructor: {} } }, { type: 'string' }] },
    ],
  ])('%s', async (_what, schema) => {
    const { code, findings } = write(of(schema), 'zod', 'A')
    expect(findings.length).toBeGreaterThan(0)
    expect(accepts(run(code).events.A, { a: 'x' })).toBe(true)
    expect(await types(of(schema), message({ a: 'x' }))).toMatchObject({ code: 0 })
  })
})

describe('a keyword with a value that no JSON Schema has is named, and ends nothing', () => {
  it.each([
    [{ type: 'string', pattern: '(?i)abc' }],
    [{ enum: ['x'], pattern: '^\\@x' }],
    [{ type: 'string', required: true }],
    [{ enum: ['x'], required: 'yes' }],
    [{ enum: 'x' }],
    [{ enum: [] }],
    [{ type: 'object', properties: null }],
    [{ type: 'string', minLength: '5' }],
    [{ type: 'number', minimum: '5' }],
    [{ type: 'number', multipleOf: 0 }],
    [{ type: [] }],
    [{ type: 'foo' }],
    [{ $recursiveRef: '#' }],
  ])('%j', async (schema) => {
    const { code, stdout, stderr } = await types(of(schema))
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(/^A: a: .*any value is accepted\.\n$/) })
    expect(stdout).toContain('a: z.unknown().optional()')
    expect(await types(of(schema), message({ a: true }))).toMatchObject({ code: 0 })
  })

  it('also what Ajv has beyond JSON Schema', async () => {
    const odd = { type: 'string', $async: true, nullable: true, 'x-m': { $id: 'abc' } }
    const { code, events } = { ...(await types(of(odd))), ...run((await types(of(odd))).stdout) }
    expect([code, accepts(events.A, { a: null }), accepts(events.A, { a: 1 })]).toEqual([0, true, false])
    expect(await types(of(odd), message({ a: null }))).toMatchObject({ code: 0 })
  })
})

describe('a check', () => {
  it('sees through a reference what `unevaluatedProperties` sees', async () => {
    const plan = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $defs: { s: { type: 'object', properties: { x: { type: 'string' } } } },
      ...of({ $ref: '#/$defs/s', properties: { y: { type: 'number' } }, unevaluatedProperties: false }),
    }
    expect(await types(plan, message({ a: { x: '1', y: 1 } }))).toMatchObject({ code: 0 })
    expect(await types(plan, message({ a: { z: 1 } }))).toMatchObject({ code: 1 })
  })

  it.each([
    ['anyOf', { anyOf: [{ type: 'string' }, { type: 'number' }] }, true],
    ['a property of that name', { type: 'object', properties: { oneOf: { type: 'string' } } }, { oneOf: 4 }],
  ])('names the fault: %s', async (_what, schema, value) => {
    const { code, stdout } = await types(of(schema), message({ a: value }))
    expect(code).toBe(1)
    expect(jsonLines<{ faults: object[] }>(stdout)[0]?.faults).toHaveLength(1)
  })

  it('counts events of names that are data, or long, together', async () => {
    const others = ['Mail to john@example.com', `Long ${'x'.repeat(500)}`].map((event) =>
      JSON.stringify({ type: 'track', event, userId: 'u', messageId: 'm'.repeat(500) }),
    )
    const { stdout } = await types(of({}), ...others)
    expect(stdout).not.toMatch(/example\.com|x{200}|m{200}/)
    expect(jsonLines(stdout)[0]).toMatchObject({ title: expect.stringContaining('Other events'), messages: 2 })
  })
})

describe('a plan', () => {
  it('about a property named like a part of a message keeps it', async () => {
    const traits = { type: 'object', properties: { traits: { type: 'array' } }, required: ['traits'] }
    const { stdout } = await types([rule('A', traits)])
    expect(stdout).toContain('traits: z.array(z.unknown())')
    const whole = {
      type: 'object',
      properties: { type: { const: 'track' }, event: { const: 'A' }, properties: of({ type: 'string' }) },
    }
    const context = { ...whole.properties.properties, properties: { context: { type: 'object' } } }
    const again = { anyOf: [{ ...whole, properties: { ...whole.properties, properties: context } }] }
    expect((await types(again)).stdout).toContain('context: z.looseObject({})')
  })

  it('says what it says beside the properties of a message', async () => {
    const nested = {
      properties: { context: {}, traits: {}, properties: of({ type: 'string' }) },
      allOf: [{ required: ['userId'] }],
    }
    expect((await types([rule('A', nested)])).stderr).toBe('A: has allOf beside `properties`, which is not checked.\n')
  })

  it('of messages, of which one has no schema in a receiver, has the others', async () => {
    const part = (type: string) => ({ type: 'object', properties: { type: { const: type }, event: { const: 'A' } } })
    const { stdout, stderr } = await types({ anyOf: [part('track'), { properties: { type: { const: 'page' } } }] })
    expect(Object.keys(run(stdout).events)).toEqual(['A'])
    expect(stderr).toContain('1 left out: only track, identify and group messages have schemas')
  })

  it('that no message matches is named', async () => {
    const closed = { type: 'object', additionalProperties: false, properties: { x: {} } }
    const common = { type: 'object', properties: { app: { type: 'string' } }, required: ['app'] }
    expect((await types([rule('A', closed), rule('', common, 'COMMON')])).stderr).toBe('A: accepts no message.\n')
  })

  it('has the keywords beside a reference since $defs, and says so before', async () => {
    const at = (name: string) => ({ [name]: { s: { type: 'string' } }, ...of({ $ref: `#/${name}/s`, maxLength: 3 }) })
    expect((await types(at('$defs'))).stdout).toContain('{0,3}')
    expect((await types(at('definitions'))).stderr).toContain('`maxLength` beside `$ref` has no meaning before 2019-09')
  })

  it.each([
    [
      'references that double',
      {
        ...of({ $ref: '#/d/20' }),
        d: Object.fromEntries(
          Array.from({ length: 21 }, (_, at) => [
            at,
            at === 0 ? {} : { properties: { a: { $ref: `#/d/${at - 1}` }, b: { $ref: `#/d/${at - 1}` } } },
          ]),
        ),
      },
    ],
    [
      'JSON that nests deep',
      `{ "rules": [{ "type": "TRACK", "key": "A", "jsonSchema": ${'{"not":'.repeat(1_000)}{}${'}'.repeat(1_000)} }] }`,
    ],
    [
      'lists that nest deep',
      `{ "$schema": "https://json-schema.org/schema", "type": ${'['.repeat(50_000)}${']'.repeat(50_000)} }`,
    ],
    ['HCL that nests deep', `resource "segment_tracking_plan" "x" {\n  rules = ${'['.repeat(100_000)}\n}`],
    ['YAML that nests deep', `a: ${'['.repeat(100_000)}`],
    ['a text', 'hello: [world'],
  ])('that is too large, deep or none ends with a sentence: %s', async (_what, plan) => {
    const { code, stderr } = await types(plan)
    expect(stderr).not.toMatch(/Maximum call stack size exceeded\.?\n$|^ +at /m)
    expect([0, 2]).toContain(code)
    if (code === 2) expect(stderr).toMatch(/^error: .+ must .+\. Got .+\n$/)
  })
})

it('a pattern with half a character stays what it is', () => {
  const { code } = write(of({ type: 'string', pattern: '[\ud83d]x' }), 'zod', 'A')
  expect(code).toBe(code.toWellFormed())
})

it('one message without an id is no plan', async () => {
  const { code, stderr } = await types(
    '{"type":"track","event":"A","properties":{"email":"x"},"title":"Jane","description":"secret"}',
  )
  expect(code).toBe(2)
  expect(stderr).not.toMatch(/Jane|secret/)
})

it('types of RudderStack beside custom ones, and properties within one without a type, are kept', async () => {
  const documents = [
    'kind: events\nspec: { events: [{ id: e, name: A, event_type: track }] }',
    `kind: properties
spec:
  properties:
    - { id: home, name: home, types: ["#custom-type:code", "null"] }
    - { id: list, name: list, type: array, item_types: ["#custom-type:code", number] }
    - { id: nest, name: nest }`,
    'kind: custom-types\nspec: { types: [{ id: code, name: Code, type: string, config: { min_length: 1 } }] }',
    `kind: tracking-plan
spec:
  rules:
    - event: "#event:e"
      properties:
        - { property: "#property:home", required: true }
        - { property: "#property:list" }
        - { property: "#property:nest", properties: [{ property: "#property:home", required: true }] }`,
  ]
  const { stdout } = await types(documents.map((document) => `version: rudder/v1\n${document}\n`).join('---\n'))
  expect(stdout).toContain('home: z.string().min(1).nullable()')
  expect(stdout).toContain('list: z.array(z.union([z.string().min(1), z.number()])).optional()')
  expect(stdout).toMatch(/nest: z\.object\({\s+home: z\.string\(\)\.min\(1\)\.nullable\(\),\s+}\)\.optional\(\)/)
})
