/** Schemas and messages that were once read wrongly, or broke the command. */

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createFolder, expectUsage, hookline, jsonLines } from '../command.ts'
import { accepts, runCode, write } from './code.ts'

const TEXT = { type: 'string' }
const of = (schema: unknown) => ({ title: 'A', type: 'object', properties: { a: schema } })
const rule = (key: string, jsonSchema: unknown, type = 'TRACK') => ({ key, type, version: 1, jsonSchema })
const message = (properties: object) =>
  JSON.stringify({ type: 'track', event: 'A', userId: 'u', messageId: 'm-1', properties })

async function types(plan: unknown, ...messages: string[]) {
  const folder = await createFolder()
  const [p, m] = [join(folder, 'plan.json'), join(folder, 'messages')]
  await writeFile(p, typeof plan === 'string' ? plan : JSON.stringify(plan))
  await writeFile(m, messages.join('\n'))
  return hookline(messages.length === 0 ? ['types', p] : ['types', '--check', '--json', p, m])
}

it.each([
  ['a part of oneOf', { oneOf: [{ type: 'object', patternProperties: { '^a': { type: 'string' } } }, TEXT] }],
  ['a reference in oneOf', { oneOf: [{ $ref: 'https://x.example/z' }, { type: 'string' }] }],
  ['a reference in not', { enum: ['x'], not: { $ref: 'https://x.example/z' } }],
  ['a reference in if', { if: { $ref: '#/none' }, else: { type: 'number' } }],
  ['a property of every object in oneOf', { oneOf: [{ type: 'object', properties: { constructor: {} } }, TEXT] }],
])('what is given up accepts any value: %s', async (_what, schema) => {
  const { code, findings } = write(of(schema), 'zod', 'A')
  expect(findings.length).toBeGreaterThan(0)
  expect(accepts(runCode(code).events.A, { a: 'x' })).toBe(true)
  expect(await types(of(schema), message({ a: 'x' }))).toMatchObject({ code: 0 })
})

it.each([
  ...[
    '{"type":"string","pattern":"(?i)abc"}',
    '{"enum":["x"],"pattern":"^\\\\@x"}',
    '{"type":"string","required":true}',
  ],
  ...['{"enum":["x"],"required":"yes"}', '{"enum":"x"}', '{"enum":[]}', '{"type":"object","properties":null}'],
  ...['{"type":"string","minLength":"5"}', '{"type":"number","minimum":"5"}', '{"type":"number","multipleOf":0}'],
  ...['{"type":[]}', '{"type":"foo"}', '{"$recursiveRef":"#"}'],
])('a keyword with a value that no JSON Schema has is named, and ends nothing: %s', async (text) => {
  const schema = JSON.parse(text)
  const { code, stdout, stderr } = await types(of(schema))
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(/^A: a: .*\n$/) })
  expect(stdout).toContain('a: z.unknown().optional()')
  expect(await types(of(schema), message({ a: true }))).toMatchObject({ code: 0 })
})

it('what Ajv has beyond JSON Schema ends nothing', async () => {
  const odd = { type: 'string', $async: true, nullable: true, 'x-m': { $id: 'abc' } }
  const { code, events } = { ...(await types(of(odd))), ...runCode((await types(of(odd))).stdout) }
  expect([code, accepts(events.A, { a: null }), accepts(events.A, { a: 1 })]).toEqual([0, true, false])
  expect(await types(of(odd), message({ a: null }))).toMatchObject({ code: 0 })
})

it('a check sees through a reference what `unevaluatedProperties` sees', async () => {
  const plan = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $defs: { s: { type: 'object', properties: { x: { type: 'string' } } } },
    ...of({ $ref: '#/$defs/s', properties: { y: { type: 'number' } }, unevaluatedProperties: false }),
  }
  expect(await types(plan, message({ a: { x: '1', y: 1 } }))).toMatchObject({ code: 0 })
  expect(await types(plan, message({ a: { z: 1 } }))).toMatchObject({ code: 1 })
})

it.each([
  ['anyOf', { anyOf: [TEXT, { type: 'number' }] }, true],
  ['a property of that name', { type: 'object', properties: { oneOf: TEXT } }, { oneOf: 4 }],
])('a check names the fault once: %s', async (_what, schema, value) => {
  const { stdout } = await types(of(schema), message({ a: value }))
  expect(jsonLines(stdout)).toMatchObject([{ faults: [{}] }])
})

it.each<[string, string, string, string]>([
  ['multipleOf', '{"type":"number","multipleOf":0.01}', '[19.99, 123456789.01, -0.07, 1e21, 0]', '[19.999, 1e-7]'],
  ['multipleOf of a small number', '{"type":"number","multipleOf":1e-7}', '[3e-7, 1]', '[1.5e-7]'],
  ...['constructor', 'toString', 'valueOf', 'hasOwnProperty'].map((name) => {
    const schema = `{"properties":{"${name}":{"type":"number"}},"additionalProperties":false}`
    const names = [`properties, ${name}`, schema] as const
    return [...names, `[{}, {"${name}":1}]`, `[{"other":1}, {"${name}":"x"}]`] as [string, string, string, string]
  }),
  ['properties, __proto__', '{"properties":{"__proto__":{}},"additionalProperties":false}', '[{}]', '[{"other":1}]'],
  ['required', '{"type":"object","required":["constructor"]}', '[{"constructor":1}]', '[{}]'],
  ['dependentRequired', '{"dependentRequired":{"toString":["b"]}}', '[{}, {"toString":1,"b":1}]', '[{"toString":1}]'],
  [
    'uniqueItems',
    '{"type":"array","uniqueItems":true}',
    '[[{"toString":""}, {"toString":"x"}], [{"valueOf":1}, {}], [{"constructor":1}, {"constructor":2}], [1, "1"]]',
    '[[{"toString":""}, {"toString":""}], [{"a":1,"b":[{"valueOf":1}]}, {"b":[{"valueOf":1}],"a":1}], [0, -0]]',
  ],
  ['enum', '{"enum":[{"a":1,"toString":""},1]}', '[{"toString":"","a":1}, 1]', '[{"toString":""}, {"a":1}, "1"]'],
  ['const', '{"const":{"valueOf":[]}}', '[{"valueOf":[]}]', '[{}, {"valueOf":{}}, {"toString":""}]'],
])('a check judges what Ajv misjudges: %s', async (_what, text, ...values) => {
  const schema = of(JSON.parse(text))
  const [right, wrong] = values.map((each) => JSON.parse(each).map((a: unknown) => message({ a })) as string[])
  const { code, stdout } = await types(schema, ...(right ?? []), ...(wrong ?? []))
  expect({ code, results: jsonLines(stdout) }).toMatchObject({ code: 1, results: [{ broken: wrong?.length }] })
  expect(await types(schema, ...(right ?? []))).toMatchObject({ code: 0 })
})

it.each(['zod', 'valibot'] as const)(
  'a check takes a number that is too large for one for no multiple: %s',
  async (target) => {
    const large = message({ a: 'LARGE' }).replace('"LARGE"', '1e400')
    const { code, stdout } = await types(of({ type: 'number', multipleOf: 0.01 }), large, message({ a: 1 }))
    expect({ code, results: jsonLines(stdout) }).toMatchObject({ code: 1, results: [{ broken: 1 }] })
    const written = write(of(JSON.parse('{ "enum": [1e400, 2], "multipleOf": 0.01 }')), target, 'A')
    expect(accepts(runCode(written.code).events.A, { a: 2 })).toBe(true)
    expect(accepts(runCode(written.code).events.A, { a: Number.POSITIVE_INFINITY })).toBe(false)
  },
)

it('a check goes on after a message that nests deeper than the stack', async () => {
  const deep = `{"type":"track","event":"A","userId":"u","properties":{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`
  const { code, stdout } = await types(of({ const: [] }), deep, message({ a: [] }))
  expect({ code, results: jsonLines(stdout) }).toMatchObject({ code: 1, results: [{ messages: 2, broken: 1 }] })
})

it('a check counts events of names that are data, or long, together', async () => {
  const others = ['Mail to john@example.com', `Long ${'x'.repeat(500)}`].map((event) =>
    JSON.stringify({ type: 'track', event, userId: 'u', messageId: 'm'.repeat(500) }),
  )
  const { code, stdout } = await types(of({}), ...others)
  expect(stdout).not.toMatch(/example\.com|x{200}|m{200}/)
  const title = expect.stringContaining('Other events')
  expect(jsonLines(stdout)[0]).toMatchObject({ title, verdict: 'unplanned', messages: 2 })
  expect(code).toBe(1)
})

describe('a plan', () => {
  it('about a property named like a part of a message keeps it', async () => {
    const traits = { type: 'object', properties: { traits: { type: 'array' } }, required: ['traits'] }
    const context = { type: 'object', properties: { context: { type: 'object' } } }
    const properties = { type: { const: 'track' }, event: { const: 'A' }, properties: context }
    const whole = { type: 'object', properties }

    expect((await types([rule('A', traits)])).stdout).toContain('traits: z.array(z.unknown())')
    expect((await types({ anyOf: [whole] })).stdout).toContain('context: z.looseObject({})')
  })

  describe('of whole messages', () => {
    const of = (fields: object, required: string[] = []) => ({ type: 'object', properties: fields, required })
    const total = of({ total: { type: 'number' } }, ['total'])
    const ids = { userId: TEXT, anonymousId: {}, messageId: {}, integrations: { id: '/integrations' } }
    const sections = { context: {}, properties: total, traits: {} }
    const beside = { ...ids, ...sections, type: { const: 'track' }, event: {} }
    const nullable = { ...total, type: ['object', 'null'] }
    const strict = { context: of({}, ['ip']), properties: total, traits: { minProperties: 1 } }
    const common = (fields: object, required?: string[]) => rule('', of(fields, required), 'COMMON')
    const eitherId = { anyOf: [{ required: ['userId'] }, { required: ['anonymousId'] }] }

    it.each<[string, object[], string[]]>([
      ['with fields beside', [rule('A', of(beside, ['userId', 'properties']))], [...Object.keys(ids), 'type', 'event']],
      ['of two sections and any field', [rule('A', of({ context: {}, properties: total, tenant: {} }))], ['tenant']],
      ['of one section and a field', [rule('A', of({ properties: total, userId: {} }))], ['userId']],
      ['of sections that may be null', [rule('A', of({ context: { type: ['object'] }, properties: nullable }))], []],
      ['of sections that say more than is checked', [rule('A', of(strict))], ['context', 'traits']],
      ['of a required field', [rule('A', of(sections, ['userId', 'context']))], ['userId']],
      ['of a misplaced `required`', [rule('A', of({ ...sections, required: ['properties'] }))], ['required']],
      ['beside a common rule of fields', [rule('A', of(sections)), common(ids, ['userId'])], Object.keys(ids)],
      [
        'beside a common rule of sections and fields',
        [rule('A', of(sections)), common({ ...sections, properties: {}, ...ids }, ['userId'])],
        Object.keys(ids),
      ],
      ['beside a common rule of ids', [rule('A', of(sections)), rule('', eitherId, 'COMMON')], ['properties']],
    ])('is about their sections: %s', async (_what, rules, notChecked) => {
      const { code, stdout, stderr } = await types(rules)

      const { events } = runCode(stdout)
      const values = [{ total: 1, more: 1 }, { total: 'x' }, {}]
      expect(values.map((value) => accepts(events.A, value))).toEqual([true, false, false])
      const lines = stderr.split('\n').slice(0, -1)
      expect(lines.map((line) => /^A: [^`]*`(\w+)`/.exec(line)?.[1])).toEqual(notChecked)
      expect(code).toBe(0)
      expect(await types(rules, message({ total: 1 }))).toMatchObject({ code: 0 })
      expect(await types(rules, message({}))).toMatchObject({ code: 1 })
    })

    it.each(['identify', 'group'] as const)('is about the traits of %s messages', async (type) => {
      const schema = of({ ...ids, groupId: {}, context: {}, traits: total })

      const { stdout, stderr } = await types([rule('', schema, type.toUpperCase())])

      const { traits } = runCode(stdout)
      expect([accepts(traits[type], { total: 1 }), accepts(traits[type], {})]).toEqual([true, false])
      expect(stderr).toMatch(new RegExp(`^${type} traits: .*\`groupId\``, 'm'))
    })

    it('that are put together elsewhere is named, and is no schema of properties', async () => {
      const { stdout, stderr } = await types([rule('A', { allOf: [of(ids), of(sections)] })])
      expect(stderr).toMatch(/^A: .*allOf.*`properties`.*\n$/)
      expect(stdout).toContain('A: z.looseObject({}),')
    })

    it('of plain JSON Schema says what stands beside the section', async () => {
      const whole = { ...of({ ...sections, ...ids, type: { const: 'track' }, event: { const: 'A' } }), title: 'A' }
      const { stdout, stderr } = await types(whole)
      expect(stdout).toContain('total: z.number(),')
      expect(stderr.match(/`\w+`/g)).toEqual(Object.keys(ids).map((name) => `\`${name}\``))
    })

    it.each([
      ['a property of that name that is no object', { properties: { type: 'array' }, agent: {} }],
      ['an object of that name beside other properties', { properties: { type: 'object' }, agent: {} }],
      ['names of fields alone', { userId: {}, type: {} }],
    ])('is none: %s', async (_what, properties) => {
      const { stdout, stderr } = await types([rule('A', of(properties, Object.keys(properties)))])
      expect(stderr).toBe('')
      for (const name of Object.keys(properties)) expect(stdout).toContain(`    ${name}: z.`)
    })
  })

  it('of messages, of which one has no schema in a receiver, has the others', async () => {
    const part = (type: string) => ({ type: 'object', properties: { type: { const: type }, event: { const: 'A' } } })
    const { stdout, stderr } = await types({ anyOf: [part('track'), { properties: { type: { const: 'page' } } }] })
    expect(Object.keys(runCode(stdout).events)).toEqual(['A'])
    expect(stderr).toMatch(/\b1 .*\btrack, identify and group\b/)
  })

  it('that no message matches is named', async () => {
    const closed = { type: 'object', additionalProperties: false, properties: { x: {} } }
    const common = { type: 'object', properties: { app: { type: 'string' } }, required: ['app'] }
    expect((await types([rule('A', closed), rule('', common, 'COMMON')])).stderr).toMatch(/^A: .*\n$/)
  })

  it('has the keywords beside a reference since $defs, and says so before', async () => {
    const at = (name: string) => ({ [name]: { s: { type: 'string' } }, ...of({ $ref: `#/${name}/s`, maxLength: 3 }) })
    expect((await types(at('$defs'))).stdout).toContain('{0,3}')
    expect((await types(at('definitions'))).stderr).toMatch(/`maxLength`.*2019-09/)
  })

  const twice = (at: number) => ({ properties: { a: { $ref: `#/d/${at}` }, b: { $ref: `#/d/${at}` } } })
  const doubling = Object.fromEntries(Array.from({ length: 21 }, (_, at) => [at, at === 0 ? {} : twice(at - 1)]))
  const nots = `${'{"not":'.repeat(1_000)}{}${'}'.repeat(1_000)}`
  const lists = (count: number) => '['.repeat(count) + ']'.repeat(count)

  it.each([
    ['references that double', { ...of({ $ref: '#/d/20' }), d: doubling }],
    ['JSON that nests deep', `{ "rules": [{ "type": "TRACK", "key": "A", "jsonSchema": ${nots} }] }`],
    ['lists that nest deep', `{ "$schema": "https://json-schema.org/schema", "type": ${lists(50_000)} }`],
    ['HCL that nests deep', `resource "segment_tracking_plan" "x" {\n  rules = ${'['.repeat(100_000)}\n}`],
    ['YAML that nests deep', `a: ${'['.repeat(20_000)}`],
    ['a text', 'hello: [world'],
  ])('that is too large, deep or none ends without a stack: %s', async (_what, plan) => {
    const ran = await types(plan)
    if (ran.code !== 0) expectUsage(ran)
  })
})

it('a pattern with half a character stays what it is', () => {
  const { code } = write(of({ type: 'string', pattern: '[\ud83d]x' }), 'zod', 'A')
  expect(code).toBe(code.toWellFormed())
})

it('one message without an id is no plan', async () => {
  const told = { title: 'Jane', description: 'secret' }
  const { code, stderr } = await types({ type: 'track', event: 'A', properties: { email: 'x' }, ...told })
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
