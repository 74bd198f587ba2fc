/** Schemas that are inferred from messages: what they say, what they leave out, and how large they may grow. */

import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Message } from '../../../../src/protocol/message.ts'
import { createInference } from '../../src/types/infer.ts'
import type { JsonSchema } from '../../src/types/rule.ts'
import type { Seen } from '../../src/types/traffic.ts'

const DAY_MS = 86_400_000

function track(properties?: object, event = 'Order Completed', at?: number): Seen {
  return { message: { type: 'track', userId: 'u1', event, ...(properties && { properties }) } as Message, at }
}

function infer(seen: readonly Seen[], enums = false) {
  const inference = createInference({ enums })
  for (const each of seen) inference.add(each)
  const rules = inference.rules()
  return { rules, findings: inference.findings(), schema: rules[0]?.schema as Readonly<Record<string, JsonSchema>> }
}

function schemaOf(values: readonly unknown[], enums = false): unknown {
  const seen = values.map((a) => track({ a }))
  const { schema } = infer(seen, enums)
  const { $comment, ...others } = { ...(schema.properties?.a as JsonSchema | undefined) }
  return others
}

function findingsOf(...objects: readonly object[]) {
  return infer(objects.map((object) => track(object))).findings.map(({ place, text }) => `${place} ${text}`)
}

function times<T>(count: number, create: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => create(index))
}

const letterOf = (index: number) => String.fromCharCode(97 + index)
const nameOf = (index: number) => `key${letterOf(index / 26)}${letterOf(index % 26)}`
const keysOf = (count: number, start = 0) =>
  Object.fromEntries(times(count, (index) => [`${nameOf(index)}${start}`, 1]))

it('a rule is that of the properties of an event, and of the traits', () => {
  const { rules, findings } = infer([
    { message: { type: 'group', userId: 'u1', groupId: 'g1', traits: { seats: 5 } }, at: 0 },
    { message: { type: 'identify', userId: 'u1', traits: { plan: 'pro' } }, at: undefined },
    track({ total: 1.5 }, 'Order Completed', 0),
    track(undefined, 'App Opened', 0),
    track({ total: 2 }, 'Order Completed', 2 * DAY_MS + 1),
    { message: { type: 'page', userId: 'u1' }, at: 0 },
  ])

  const ruleOf = (type: string, event: string | undefined, $comment: string, properties: object) => {
    return { type, event, schema: { $comment, type: 'object', properties }, version: undefined }
  }
  const one = (type: string) => ({ $comment: 'in 1 of 1', type })
  expect(rules).toEqual([
    ruleOf('track', 'App Opened', '1 message, 1 day', {}),
    ruleOf('track', 'Order Completed', '2 messages, 3 days', { total: { $comment: 'in 2 of 2', type: 'number' } }),
    ruleOf('identify', undefined, '1 message', { plan: one('string') }),
    ruleOf('group', undefined, '1 message, 1 day', { seats: one('number') }),
  ])
  expect(findings).toEqual([{ place: 'page', text: expect.stringContaining('once') }])
})

it.each<[string, readonly (object | undefined)[], boolean]>([
  ['19 messages had it', times(19, () => ({ a: 1 })), false],
  ['20 messages had it', times(20, () => ({ a: 1 })), true],
  ['39 of 40 had it', [...times(39, () => ({ a: 1 })), undefined], false],
  ['20 lists in one message had it', [{ a: times(20, () => ({ b: [{ c: 1 }] })) }], false],
])('a rule requires a property that each of at least 20 messages had: %s', (_what, properties, isRequired) => {
  const { schema } = infer(properties.map((each) => track(each)))
  expect(JSON.stringify(schema).includes('"required":["a"]')).toBe(isRequired)
  if (!isRequired) expect(JSON.stringify(schema)).not.toContain('required')
})

it('a rule of names that objects inherit has them as its own', () => {
  const properties = JSON.parse('{"__proto__":{"a":1},"constructor":true,"toString":"x"}')
  const { schema, rules } = infer(times(20, () => [track(properties), track(properties, 'constructor')]).flat())
  expect(rules.map(({ event }) => event)).toEqual(['Order Completed', 'constructor'])
  expect(Object.entries(schema.properties ?? {})).toEqual([
    ['__proto__', { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] }],
    ['constructor', { type: 'boolean' }],
    ['toString', { type: 'string' }],
  ])
  expect(schema.required).toEqual(['__proto__', 'constructor', 'toString'])
  expect(Object.prototype).not.toHaveProperty('a')
})

it.each<[unknown[], object]>([
  [[null], { type: 'null' }],
  [[true, false], { type: 'boolean' }],
  [[1, 0.5], { type: 'number' }],
  [['x'], { type: 'string' }],
  [[[]], { type: 'array' }],
  [[[1], ['x']], { type: 'array', items: { type: ['number', 'string'] } }],
  [['x', null, 1], { type: ['null', 'number', 'string'] }],
])('the types of %j are in its schema', (values, schema) => {
  expect(schemaOf(values)).toEqual(schema)
})

it('types that differ are a finding, but for null', () => {
  const [sku] = findingsOf({ items: [{ sku: 1 }, { sku: [true] }, { sku: {} }, { sku: 2 }] })
  expect(sku).toMatch(/^Order Completed: items\[\]\.sku .*number \(2\), .*array \(1\) .*object \(1\)$/)
  expect(findingsOf({ total: 1 }, { total: null }, { total: 1.5 })).toEqual([])
})

it.each([
  ['date-time', ['2026-01-15T09:30:00Z', '2026-01-15T09:30:00.123+01:00']],
  ['date', ['2026-01-15', '1999-12-31']],
  ['uuid', ['7a1e1e88-6f0e-4c3e-9d59-3a1f5c2a7b10', '7A1E1E88-6F0E-4C3E-9D59-3A1F5C2A7B10']],
  ['email', ['ada@example.com', 'ada.l+x@mail.example.co']],
  ['uri', ['https://example.com/a?b=c%20d#e', 'app://orders/1']],
])('the format of texts is %s when all have it', (format, values) => {
  expect(schemaOf(values)).toEqual({ type: 'string', format })
  expect(schemaOf([...values, null])).toEqual({ type: ['null', 'string'], format })
  expect(schemaOf([...values, ''])).toEqual({ type: 'string' })
})

it.each([
  ...['2026-13-15', '2026-01-15 09:30', '2026-01-15T09:30', 'ada@example', 'a b@example.com', 'example.com'],
  ...['a://b c', `https://${'x'.repeat(2_000)}`],
])('the format of texts is none for %j', (value) => {
  expect(schemaOf([value])).toEqual({ type: 'string' })
})

const sizes = (count: number) => times(2 * count, (index) => `size ${letterOf(index % count)}`)
const colours = times(20, (index) => (index % 2 === 0 ? 'red' : 'blue'))

it('an enum is of few texts that repeat, when asked for', () => {
  expect(schemaOf(colours)).toEqual({ type: 'string' })
  expect(schemaOf(colours, true)).toEqual({ type: 'string', enum: ['blue', 'red'] })
  expect(schemaOf([...colours, null], true)).toEqual({ type: ['null', 'string'], enum: ['blue', 'red', null] })
  expect(schemaOf(sizes(10), true)).toHaveProperty('enum.9', 'size j')
})

it.each([
  ['fewer than 20 texts', colours.slice(1)],
  ['more than ten different ones', sizes(11)],
  ['long texts', times(20, () => 'x'.repeat(51))],
  ['texts that are data', times(20, () => 'ada@example.com')],
  ['texts and numbers', [...colours, 1]],
])('an enum is not of %s', (_case, values) => {
  expect(schemaOf(values, true)).not.toHaveProperty('enum')
})

it.each([
  ...['ada@example.com', '42', '2026-01-15', 'on 2026-01-15', '5f2b8c0d9e1a4b7c', '+44 20 7946 0958', '192.0.2.1'],
  ...['7a1e1e88-6f0e-4c3e-9d59-3a1f5c2a7b10', 'user_7a1e1e88-6f0e-4c3e-9d59-3a1f5c2a7b10', 'x'.repeat(201)],
])('keys that are data make a map: %s', (key) => {
  const { schema, findings } = infer([track({ seen: { home: 1 } }), track({ seen: { [key]: 'x' } })])
  const additionalProperties = { type: ['number', 'string'] }
  expect(schema.properties?.seen).toEqual({ $comment: 'in 2 of 2', type: 'object', additionalProperties })
  expect(findings).toMatchObject([{ place: 'Order Completed: seen.*' }])
  expect(JSON.stringify([schema, findings])).not.toContain(key)
})

const NAMES = ['line1', 'utm_source', 'Item 42', 'ipv4', 'sha256', '$set', 'größe', '', 'faded']
it.each(NAMES)('keys that are data are not those like %j', (key) => {
  expect(schemaOf([{ [key]: 1 }])).toMatchObject({ properties: { [key]: { type: 'number' } } })
})

it('keys that are data are left out of the properties themselves, and counted', () => {
  const { schema, findings } = infer([track({ a: 1, 'ada@example.com': 1, 42: 1 }), track({ 'bob@example.com': {} })])
  expect(Object.keys(schema.properties ?? {})).toEqual(['a'])
  expect(findings).toEqual([{ place: 'Order Completed', text: expect.stringContaining('2 times') }])
})

it('keys that are data are those of an object with more than 100 different ones', () => {
  expect(schemaOf([keysOf(100)])).toHaveProperty('properties')
  const map = { type: 'object', additionalProperties: { type: 'number' } }
  expect(schemaOf([keysOf(50), keysOf(51, 1)])).toEqual(map)
  expect(schemaOf([{ 1: keysOf(60), 2: keysOf(60, 1) }])).toEqual({ type: 'object', additionalProperties: map })
  const [day, text] = ['2026-01-15', { type: 'object', additionalProperties: { type: 'string' } }]
  expect(schemaOf([{ sent: day, by: 'x' }, { 42: day }])).toEqual(text)
})

it('an event whose name holds data gets no rule', () => {
  const data = ['Invited ada@example.com', 'Opened 7a1e1e88-6f0e-4c3e-9d59-3a1f5c2a7b10', 'x'.repeat(201)]
  const { rules, findings } = infer([...data, 'Step 2 @ home'].map((name) => track({}, name)))
  expect(rules.map(({ event }) => event)).toEqual(['Step 2 @ home'])
  expect(findings).toEqual([{ place: 'track', text: expect.stringContaining('3 times') }])
})

it('memory is bounded in depth', () => {
  const nested = (levels: number) => times(levels, () => 0).reduce<object>((a) => ({ a }), { a: 1 })
  expect(findingsOf(nested(9))).toEqual([])
  const { schema, findings } = infer([track(nested(10)), track(nested(100_000))])
  const place = `Order Completed: ${Array(10).fill('a').join('.')}`
  expect(findings).toEqual([{ place, text: expect.stringContaining('10 levels') }])
  const path = Array(10).fill('properties.a').join('.')
  expect(schema).toHaveProperty(path, { $comment: 'in 2 of 2' })
})

it('memory is bounded in events, in keys of an event, and in all places together', () => {
  const events = infer(times(10_002, (index) => track({}, `Viewed page ${index}`)))
  const keys = infer([track(Object.fromEntries(times(10_001, (index) => [`k${index}`, 1])))])
  const places = infer(times(2_100, (index) => track(keysOf(100), `event ${index}`)))
  expect(events.rules).toHaveLength(10_000)
  expect(events.findings).toEqual([{ place: 'track', text: expect.stringMatching(/2 times .*10 000/) }])
  expect(keys.findings[1]).toEqual({ place: 'Order Completed', text: expect.stringMatching(/once .*10 000/) })
  expect(places.findings).toEqual([{ place: 'all messages', text: expect.stringContaining('200 000') }])
  expect(places.rules.flatMap(({ schema }) => Object.keys(schema.properties as object))).toHaveLength(200_000)
})

/** Up to 120 of 200 keys. */
const wide = fc.record({ start: fc.nat(80), count: fc.nat(120), value: fc.constantFrom(1, 'red', null) })
const wideObject = wide.map(({ start, count, value }) =>
  Object.fromEntries(times(count, (index) => [nameOf(start + index), value])),
)
const keys = fc.constantFrom('a', 'b', 'c', '__proto__', 'constructor', 'toString', 'ada@example.com', '42', '')
const { value } = fc.letrec((tie) => ({
  leaf: fc.constantFrom(null, true, 0, 1, 1.5, 2 ** 60, 'red', 'blue', '2026-01-15', 'ada@example.com', ''),
  value: fc.oneof(
    { maxDepth: 11, depthSize: 'small', withCrossShrink: true },
    tie('leaf'),
    fc.dictionary(keys, tie('value'), { maxKeys: 4 }),
    fc.array(tie('value'), { maxLength: 3 }),
    wideObject,
  ),
}))
const drawn = {
  ...{ type: fc.constantFrom('track', 'identify', 'page'), event: fc.constantFrom('A', '__proto__') },
  fields: fc.oneof(fc.dictionary(keys, value, { maxKeys: 5 }), wideObject),
  at: fc.integer({ min: 0, max: 9 * DAY_MS }),
}
const messages = fc.array(fc.record(drawn, { requiredKeys: ['type', 'event'] }), { maxLength: 12 })
type Drawn = { readonly type: string; readonly event: string; readonly fields?: object; readonly at?: number }
const toSeen = ({ type, event, fields, at }: Drawn): Seen => {
  const sections = type === 'track' ? { event, properties: fields } : { traits: fields }
  return { message: JSON.parse(JSON.stringify({ type, ...sections })) as Message, at }
}
const shuffled = messages.chain((all) => fc.shuffledSubarray(all, { minLength: all.length }).map((each) => [all, each]))

it('the order of messages changes nothing', () => {
  const property = fc.property(shuffled, fc.boolean(), (orders, enums) => {
    const [one, other] = orders.map((each) => infer(each.map(toSeen), enums))
    expect(JSON.stringify(other)).toBe(JSON.stringify(one))
  })
  fc.assert(property, { numRuns: 20 })
})

it('each message is valid by its rule', () => {
  const property = fc.property(messages, fc.boolean(), (all, enums) => {
    const seen = all.map(toSeen)
    const { rules } = infer(seen, enums)
    const ajv = new Ajv2020({ strict: false, validateFormats: false, ownProperties: true })
    expect(rules.every(({ schema }) => ajv.validateSchema(schema))).toBe(true)
    const validators = new Map(rules.map(({ type, event, schema }) => [`${type} ${event}`, ajv.compile(schema)]))
    for (const { message } of seen) {
      if (message.type !== 'track' && message.type !== 'identify') continue
      const [event, fields] =
        message.type === 'track' ? [message.event, message.properties] : [undefined, message.traits]
      const validate = validators.get(`${message.type} ${event}`)
      expect(validate?.(fields ?? {}), JSON.stringify(validate?.errors)).toBe(true)
    }
  })
  fc.assert(property, { numRuns: 12 })
})
