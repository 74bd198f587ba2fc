/** Schemas and messages that were once read wrongly, or broke the command. */

import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createFiles, expectUsage, hookline, jsonLines } from '../command.ts'
import { accepts, runCode, write } from './code.ts'

const TEXT = { type: 'string' }
const of = (schema: unknown) => ({ title: 'A', type: 'object', properties: { a: schema } })
const rule = (key: string, jsonSchema: unknown, type = 'TRACK') => ({ key, type, version: 1, jsonSchema })
const message = (properties: object) =>
  JSON.stringify({ type: 'track', event: 'A', userId: 'u', messageId: 'm-1', properties })

async function types(plan: string | object, ...messages: string[]) {
  const folder = await createFiles({ 'plan.json': plan, messages: messages.join('\n') })
  const [p, m] = [join(folder, 'plan.json'), join(folder, 'messages')]
  return hookline(messages.length === 0 ? ['types', p] : ['types', '--check', '--json', p, m])
}

it.each([
  ['a part of oneOf', { oneOf: [{ type: 'object', patternProperties: { '^a': { type: 'string' } } }, TEXT] }],
  ['a reference in not', { enum: ['x'], not: { $ref: 'https://x.example/z' } }],
])('what is given up accepts any value: %s', async (_what, schema) => {
  const { code, findings } = write(of(schema), 'zod', 'A')
  expect(findings.length).toBeGreaterThan(0)
  expect(accepts(runCode(code).events.A, { a: 'x' })).toBe(true)
  expect(await types(of(schema), message({ a: 'x' }))).toMatchObject({ code: 0 })
})

it.each([
  ...['{"type":"string","pattern":"(?i)abc"}', '{"type":"string","required":true}', '{"enum":"x"}', '{"enum":[]}'],
  ...['{"type":"object","properties":null}', '{"type":"string","minLength":"5"}', '{"type":"number","minimum":"5"}'],
  ...['{"type":"number","multipleOf":0}', '{"type":[]}', '{"$recursiveRef":"#"}'],
])('a keyword with a value that no JSON Schema has is named, and ends nothing: %s', async (text) => {
  const schema = JSON.parse(text)
  const { code, stdout, stderr } = await types(of(schema))
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(/^A: a: .*\n$/) })
  expect(stdout).toContain('a: z.unknown().optional()')
  expect(await types(of(schema), message({ a: true }))).toMatchObject({ code: 0 })
})

it.each<[string, string, string, string]>([
  ['properties', '{"properties":{"toString":{"type":"number"}}}', '[{}, {"toString":1}]', '[{"toString":"x"}]'],
  ['properties, __proto__', '{"properties":{"__proto__":{}},"additionalProperties":false}', '[{}]', '[{"other":1}]'],
  ['required', '{"type":"object","required":["constructor"]}', '[{"constructor":1}]', '[{}]'],
  ['dependentRequired', '{"dependentRequired":{"toString":["b"]}}', '[{}, {"toString":1,"b":1}]', '[{"toString":1}]'],
  ['uniqueItems', '{"uniqueItems":true}', '[[{"toString":""}, {"toString":"x"}], [1, "1"]]', '[[{"a":1}, {"a":1}]]'],
  ['enum', '{"enum":[{"a":1,"toString":""},1]}', '[{"toString":"","a":1}, 1]', '[{"toString":""}, {"a":1}, "1"]'],
  ['const', '{"const":{"valueOf":[]}}', '[{"valueOf":[]}]', '[{}, {"valueOf":{}}, {"toString":""}]'],
])('a check judges what Ajv misjudges: %s', async (_what, text, ...values) => {
  const schema = of(JSON.parse(text))
  const [right, wrong] = values.map((each) => JSON.parse(each).map((a: unknown) => message({ a })) as string[])
  const { code, stdout } = await types(schema, ...(right ?? []), ...(wrong ?? []))
  expect({ code, results: jsonLines(stdout) }).toMatchObject({ code: 1, results: [{ broken: wrong?.length }] })
  expect(await types(schema, ...(right ?? []))).toMatchObject({ code: 0 })
})

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
  expect([code, jsonLines(stdout)[0]]).toMatchObject([1, { title, verdict: 'unplanned', messages: 2 }])
})

describe('a plan', () => {
  describe('of whole messages', () => {
    const of = (fields: object, required: string[] = []) => ({ type: 'object', properties: fields, required })
    const total = of({ total: { type: 'number' } }, ['total'])
    const ids = { userId: TEXT, anonymousId: {}, messageId: {}, integrations: { id: '/integrations' } }
    const sections = { context: {}, properties: total, traits: {} }
    const beside = { ...ids, ...sections, type: { const: 'track' }, event: {} }
    const nullable = { ...total, type: ['object', 'null'] }
    const common = (fields: object, required?: string[]) => rule('', of(fields, required), 'COMMON')
    const eitherId = { anyOf: [{ required: ['userId'] }, { required: ['anonymousId'] }] }

    it.each<[string, object[], string[]]>([
      ['with fields beside', [rule('A', of(beside, ['userId', 'properties']))], [...Object.keys(ids), 'type', 'event']],
      ['of one section and a field', [rule('A', of({ properties: total, userId: {} }))], ['userId']],
      ['of sections that may be null', [rule('A', of({ context: { type: ['object'] }, properties: nullable }))], []],
      ['of a required field', [rule('A', of(sections, ['userId', 'context']))], ['userId']],
      ['beside a common rule of fields', [rule('A', of(sections)), common(ids, ['userId'])], Object.keys(ids)],
      ['beside a common rule of ids', [rule('A', of(sections)), rule('', eitherId, 'COMMON')], ['properties']],
    ])('is about their sections: %s', async (_what, rules, notChecked) => {
      const { code, stdout, stderr } = await types(rules)
      const { events } = runCode(stdout)
      const values = [{ total: 1, more: 1 }, { total: 'x' }, {}]
      expect(values.map((value) => accepts(events.A, value))).toEqual([true, false, false])
      const lines = stderr.split('\n').slice(0, -1)
      expect([code, ...lines.map((line) => /^A: [^`]*`(\w+)`/.exec(line)?.[1])]).toEqual([0, ...notChecked])
      expect(await types(rules, message({ total: 1 }))).toMatchObject({ code: 0 })
      expect(await types(rules, message({}))).toMatchObject({ code: 1 })
    })
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

it('one message without an id is no plan, and not quoted', async () => {
  const { code, stderr } = await types({ type: 'track', event: 'A', properties: { email: 'x' }, title: 'Jane' })
  expect([code, stderr]).toEqual([2, expect.not.stringContaining('Jane')])
})
