/** What a user of `hookline types` sees: files, findings, checks and errors. */

import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { link, mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import ts from 'typescript'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { needs } from '../../../../test/support/needs.ts'
import { FORMATS } from '../../src/types/print.ts'
import { createFiles, createFolder, expectUsage, hookline, jsonLines } from '../command.ts'
import { accepts, runCode, write } from './code.ts'

const ORDER = { type: 'object', properties: { total: { type: 'number' } }, required: ['total'] }

function plan(...rules: object[]): string {
  return JSON.stringify({ data: { rules: rules.map((rule) => ({ type: 'TRACK', version: 1, ...rule })) } })
}

function track(event: string, properties: object | undefined, messageId = 'm-1'): string {
  return JSON.stringify({ type: 'track', event, userId: 'u-1', messageId, properties })
}

async function files<Name extends string>(texts: Readonly<Record<Name, string>>): Promise<Record<Name, string>> {
  const folder = await createFiles(texts)
  return Object.fromEntries(Object.keys(texts).map((name) => [name, join(folder, name)])) as Record<Name, string>
}

describe('a file', () => {
  it('is written, and written again only when something changed', async () => {
    const { p, out } = await files({ p: plan({ key: 'A', jsonSchema: ORDER }), out: '' })
    const write = async () => (await hookline(['types', p, '--out', `${out}.ts`])).stdout
    const [first, same] = [await write(), await write()]
    await writeFile(p, plan({ key: 'A', jsonSchema: ORDER }, { key: 'B', jsonSchema: {} }))
    expect(same).not.toBe(first)
    expect(await write()).toBe(first.replace('1 event', '2 events'))
    expect(await readFile(`${out}.ts`, 'utf8')).toContain('B: z.looseObject({})')
  })

  describe.each([
    ['--out', 0o666 & ~process.umask(), (p: string, _m: string, out: string) => ['types', p, '--out', out]],
    ['--junit', 0o600, (p: string, m: string, out: string) => ['types', '--check', p, m, '--junit', out]],
  ] as const)('of %s is a new one', (option, mode, args) => {
    const marked = '/** Written by `hookline types`. */'
    const sources = () => files({ p: plan({ key: 'A', jsonSchema: {} }), m: track('A', {}), target: marked })

    it('no link is followed, and no folder replaced', needs('POSIX'), async () => {
      const { p, m, target } = await sources()
      const folder = await createFolder()
      const paths = ['link', 'dangling', 'folder', 'pipe'].map((name) => join(folder, name))
      const [toTarget = '', dangling = '', inner = '', pipe = ''] = paths
      await symlink(target, toTarget)
      await symlink(join(folder, 'new'), dangling)
      await mkdir(inner)
      execFileSync('mkfifo', [pipe])

      for (const path of paths) expectUsage(await hookline(args(p, m, path)), option, path)
      await hookline(args(p, m, `${target}.new`))

      expect((await stat(`${target}.new`)).mode & 0o777).toBe(mode)
      expect([await readFile(target, 'utf8'), existsSync(join(folder, 'new'))]).toEqual([marked, false])
    })

    it('it takes the place of a plain one, and leaves its other names alone', async () => {
      const { p, m, target } = await sources()
      const path = `${target}.new`
      await link(target, path)
      expect(await hookline(args(p, m, path))).toMatchObject({ code: 0 })
      expect((await readFile(path, 'utf8')).length).toBeGreaterThan(100)
      expect(await readFile(target, 'utf8')).toBe(marked)
    })
  })

  it('of a person is never overwritten', async () => {
    const { p, out } = await files({ p: plan({ key: 'A', jsonSchema: ORDER }), out: 'export const mine = 1\n' })
    expectUsage(await hookline(['types', p, '--out', out]), '--out', out)
    expect(await readFile(out, 'utf8')).toBe('export const mine = 1\n')
  })
})

it('several sources have the newest version of each event, wherever it is; messages add those that no plan has', async () => {
  const newest = { type: 'object', properties: { newest: { type: 'string' } } }
  const { one, two, m } = await files({
    one: plan({ key: 'A', version: 2, jsonSchema: newest }, { key: 'B', jsonSchema: ORDER }),
    two: plan({ key: 'A', version: 1, jsonSchema: ORDER }, { key: 'C', jsonSchema: ORDER }),
    m: [track('A', { newest: 1 }), track('D', { n: 1 })].join('\n'),
  })
  const { stdout, stderr } = await hookline(['types', one, two, m])
  expect(Object.keys(runCode(stdout).events)).toEqual(['A', 'B', 'C', 'D'])
  expect(stdout).toMatch(/ newest: z\.string\(\).* total: z\.number\(\),.* n: z\.number\(\)\.optional\(\),/s)
  expect([stderr, (await hookline(['types', m, two, one])).stdout]).toEqual(['', stdout])
})

it('a source may be a folder, where other files lie, too; without one, that of HOOKLINE_QUEUE is read', async () => {
  const others = { 'package.json': '{ "name": "app" }', 'tsconfig.json': '{ "$schema": "https://x.y/tsconfig" }' }
  const [a, b] = ['A', 'B'].map((key) => plan({ key, jsonSchema: ORDER })) as [string, string]
  const plans = { 'deep/plan.json': a, 'node_modules/plan.json': b }
  const folder = await createFiles({ ...others, ...plans, 'compose.yaml': 'services: {}\n' })
  const { stdout } = await hookline(['types'], { env: { HOOKLINE_QUEUE: folder } })
  expect(Object.keys(runCode(stdout).events)).toEqual(['A'])
  expectUsage(await hookline(['types', join(folder, 'package.json')]), 'package.json')
})

it.each<[string, string, object]>([
  ['its title', '1-0.json', { title: 'Order Completed' }],
  ['its name in a registry', '1-0-0', { self: { vendor: 'com.acme', name: 'Order Completed', version: '1-0-0' } }],
  ['its file', 'schemas/Order Completed.schema.json', {}],
  ['its folder', 'Order Completed/v1.json', {}],
  ['its folder in a registry', 'Order Completed/jsonschema/1-0-0', {}],
  ['the folder of its versions', 'Order Completed/v2/1.0.3.json', {}],
])('events of JSON Schema are named by %s', async (_what, name, facts) => {
  const path = join(await createFiles({ [name]: { ...ORDER, ...facts } }), name)
  expect(Object.keys(runCode((await hookline(['types', path])).stdout).events)).toEqual(['Order Completed'])
})

it.each([
  ['the names of files', ['A/2-0.json', 'A/10-0.json', 'A/2-1.json'], [{}, {}, {}]],
  ['what they say', ['A/x.json', 'A/y.json'], ['2-0-1', '2-1-0'].map((version) => ({ self: { name: 'A', version } }))],
])('events of JSON Schema have the newest version by %s', async (_what, names, facts) => {
  const schemas = names.map((name, at) => [name, { type: 'object', properties: { [name]: {} }, ...facts[at] }])
  const folder = await createFiles(Object.fromEntries(schemas))
  const { stdout, stderr } = await hookline(['types', folder])
  expect([stdout, stderr]).toEqual([expect.stringContaining(names[1] as string), ''])
})

it.each([
  ['not', { not: { type: 'string' } }],
  ['if', { if: { type: 'string' }, else: { type: 'number' } }],
  ['minProperties', { type: 'object', minProperties: 1 }],
  ['dependentRequired', { type: 'object', dependencies: { a: ['b'] } }],
  ['dependentSchemas', { type: 'object', dependencies: { a: { required: ['b'] } } }],
  ['prefixItems', { type: 'array', items: [{ type: 'string' }] }],
  ['contains', { type: 'array', contains: { type: 'string' } }],
  ['unevaluatedProperties', { type: 'object', unevaluatedProperties: false }],
  ['properties', { properties: { a: { type: 'string' } } }],
  ['uniqueItems', { type: 'array', uniqueItems: true }],
  ['enum', { enum: [{ a: 1 }] }],
  ['pattern', { type: 'string', pattern: '(' }],
  ['type', { type: 'date' }],
  ['additionalProperties', { type: 'object', additionalProperties: false, anyOf: [{ required: ['a'] }, {}] }],
  ['#/definitions/none', { $ref: '#/definitions/none' }],
  ['other.json', { $ref: 'other.json' }],
  ['itself', { $ref: '#' }],
  ['JSON Schema', 'text'],
])('what is not supported is named, and accepts any value: %s', (keyword, schema) => {
  const { code, findings } = write({ type: 'object', properties: { x: { type: 'array', items: schema } } })
  const place = keyword === 'itself' ? 'Order Completed: x[].x[]' : 'Order Completed: x[]'
  expect(findings).toEqual([{ place, text: expect.stringContaining(keyword) }])
  expect(code).toContain('z.array(z.unknown()).optional()')
})

it('an expression of Terraform is an error that says where', async () => {
  const rules = '  rules = [\n    { json_schema = file("order.json") }\n  ]'
  const { tf } = await files({ tf: `resource "segment_tracking_plan" "shop" {\n${rules}\n}\n` })
  expectUsage(await hookline(['types', tf]), tf, 'line 3', 'terraform show -json')
})

const NAMES = [
  ...['__proto__', 'constructor', 'toString', "it's", '"', '\\', '\n', '\u2028', '\u0024{x}', '`', '*/'],
  ...['\u202e', '\ud800', ''],
]

it('names and texts of strangers become the keys that they are, and nothing else', () => {
  const text = fc.oneof(fc.constantFrom(...NAMES), fc.string({ unit: 'binary', maxLength: 20 }))
  const property = fc.property(text, text, text, (event, name, description) => {
    const properties = { [name]: { enum: [description] } }
    const { code, findings } = write({ type: 'object', description, properties }, 'zod', event)
    const { events, traits } = runCode(code)
    expect([Object.keys(events), Object.keys(traits)]).toEqual([[event], []])
    expect(Object.getPrototypeOf(events)).toBe(Object.prototype)
    expect(accepts(events[event], { [name]: description })).toBe(true)
    expect(accepts(events[event], {})).toBe(true) // Also where every object of JavaScript has that property.
    if (findings.length === 0) expect(accepts(events[event], { [name]: 1 })).toBe(false)
    expect(code).not.toMatch(/[\p{Cf}\p{Zl}\p{Zp}]/u)
  })
  fc.assert(property, { numRuns: 60 })
})

it('names and texts of strangers compile', () => {
  for (const format of FORMATS.slice(0, 3)) {
    for (const name of NAMES) {
      const properties = { [name]: { description: name, enum: [name] } }
      const { code } = write({ description: name, properties }, format, name)
      const { diagnostics } = ts.transpileModule(code, { reportDiagnostics: true })
      expect(diagnostics).toEqual([])
    }
  }
})

it.each(FORMATS)('names and texts of strangers are escaped in %s, and in all that is printed', async (format) => {
  const hostile = '\u001b]0;x\u0007\u007f\u009b31m\u202e\u2028\u0085\u200b'
  const schema = {
    description: hostile,
    type: 'object',
    properties: { [hostile]: { title: hostile, enum: [hostile] }, b: { type: 'string', pattern: '\u009b\u202e' } },
    additionalProperties: { not: {} },
  }
  const beside = { type: 'object', properties: { context: {}, properties: schema, [hostile]: {} } }
  const { p, m, yaml } = await files({
    p: plan({ key: hostile, jsonSchema: schema }, { key: `B${hostile}`, jsonSchema: beside }),
    m: [track(hostile, { [hostile]: 1, b: 1 }, hostile), track(`C${hostile}`, {}, hostile)].join('\n'),
    yaml: `version: rudder/v1\nkind: tracking-plan${hostile}\n? [ "\u009b31m\u202e" ]\n: 1\n`,
  })
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  onTestFinished(() => warned.mockRestore())

  const printed = [
    await hookline(['types', p, '--format', format]),
    await hookline(['types', m, '--enums', '--format', format]),
    await hookline(['types', '--check', p, m]),
    await hookline(['types', '--check', p, m, '--json']),
    await hookline(['types', yaml]),
  ]

  for (const { stdout, stderr } of printed) expect(stdout + stderr).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
  expect(warned).not.toHaveBeenCalled()
})

const items = { type: 'array', items: { required: ['sku'] } }
const broken = { ...ORDER, properties: { total: { type: 'number', enum: [1] }, items } }
const messages = [
  track('A', { total: 1 }, 'm-1'),
  track('A', { total: 'jane@example.com', items: [{ sku: 1 }, {}] }, 'm-2'),
  track('A', { items: [{}] }, 'm-3'),
  track('C', {}, 'm-4'),
  track('D', { total: 5 }, 'm-5'),
  track('A', undefined, 'm-6'),
  '{"type":"page","userId":"u-1"}',
].join('\n')
const rules = [{ key: 'A', jsonSchema: broken }, ...['B', 'D'].map((key) => ({ key, jsonSchema: ORDER }))]

it('--check tells what breaks the plan, with counts and a message of each: in lines, as JSON and as XML', async () => {
  const { p, m, xml } = await files({ p: plan(...rules), m: messages, xml: '' })

  const lines = await hookline(['types', '--check', m, p])
  const { code, stdout } = await hookline(['types', '--check', p, m, '--json', '--junit', xml])

  expect(lines.stdout.match(/^\w+ {2}\w\b/gm)).toEqual(['fail  A', 'fail  C', 'skip  B', 'pass  D'])
  expect(lines.stdout).toMatch(/^ +items\[\]\.sku .*: 2 messages, .* m-2$/m)
  expect(lines.stdout).not.toContain('example.com')
  expect([lines.code, lines.stderr]).toEqual([1, expect.stringMatching(/^1 .*, 1 .*, 1 .*, 1 .*\n$/)])
  const faults = [
    { path: 'items[].sku', text: expect.any(String), count: 2, messageId: 'm-2' },
    { path: 'total', text: expect.any(String), count: 2, messageId: 'm-3' },
    { path: 'total', text: expect.any(String), count: 1, messageId: 'm-2' },
  ]
  expect(jsonLines(stdout)).toEqual([
    { title: 'A', verdict: 'breaks', messages: 4, broken: 3, faults },
    { title: 'C', verdict: 'unplanned', messages: 1, broken: 0, faults: [], messageId: 'm-4' },
    { title: 'B', verdict: 'unseen', messages: 0, broken: 0, faults: [] },
    { title: 'D', verdict: 'pass', messages: 1, broken: 0, faults: [] },
  ])
  const counts = expect.stringContaining('tests="4" failures="2" errors="0" skipped="1"')
  expect([code, await readFile(xml, 'utf8')]).toEqual([1, counts])
})

it('--check shows no key of a message that the plan does not name', async () => {
  const properties = { by: { additionalProperties: { type: 'number' } } }
  const jsonSchema = { type: 'object', properties, additionalProperties: false }
  const given = { by: { 'jane@example.com': 'x' }, 'jo@example.com': 1 }
  const { p, m } = await files({ p: plan({ key: 'A', jsonSchema }), m: track('A', given) })
  const { stdout } = await hookline(['types', '--check', p, m])
  expect(stdout).toContain('by.* must be number: 1 message')
  expect(stdout).not.toContain('example.com')
})

it('--check without a plan, or without messages, is wrong usage', async () => {
  const { p, m } = await files({ p: plan({ key: 'A', jsonSchema: ORDER }), m: track('A', {}) })
  expectUsage(await hookline(['types', '--check', p]), 'messages')
  expectUsage(await hookline(['types', '--check', m]), 'plan')
})
