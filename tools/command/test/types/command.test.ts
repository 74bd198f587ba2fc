/** What a user of `hookline types` sees: files, findings, checks and errors. */

import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { link, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import ts from 'typescript'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { needs } from '../../../../test/support/needs.ts'
import { createFolder, hookline, jsonLines } from '../command.ts'
import { accepts, run, write } from './code.ts'

const ORDER = { type: 'object', properties: { total: { type: 'number' } }, required: ['total'] }

function plan(...rules: object[]): string {
  return JSON.stringify({ data: { rules: rules.map((rule) => ({ type: 'TRACK', version: 1, ...rule })) } })
}

function track(event: string, properties: object, messageId = 'm-1'): string {
  return JSON.stringify({ type: 'track', event, userId: 'u-1', messageId, properties })
}

/** Writes files into a folder of their own. Returns their paths. */
async function files<Name extends string>(texts: Readonly<Record<Name, string>>): Promise<Record<Name, string>> {
  const folder = await createFolder()
  const entries = Object.entries<string>(texts).map(async ([name, text]) => {
    const path = join(folder, name)
    await writeFile(path, text)
    return [name, path]
  })
  return Object.fromEntries(await Promise.all(entries))
}

describe('a file', () => {
  it('is written, and written again only when something changed', async () => {
    const { p, out } = await files({ p: plan({ key: 'A', jsonSchema: ORDER }), out: '' })
    const path = `${out}.ts`
    const args = ['types', p, '--out', path]
    expect(await hookline(args)).toMatchObject({ code: 0, stdout: `Wrote ${path}: 1 event.\n` })
    const first = await readFile(path, 'utf8')
    expect(await hookline(args)).toMatchObject({ code: 0, stdout: `Nothing changed in ${path}: 1 event.\n` })
    await writeFile(p, plan({ key: 'A', jsonSchema: ORDER }, { key: 'B', jsonSchema: {} }))
    expect(await hookline(args)).toMatchObject({ code: 0, stdout: `Wrote ${path}: 2 events.\n` })
    expect(await readFile(path, 'utf8')).toContain(first.slice(0, 150))
  })

  it.each([
    ['--out', (p: string, _m: string, out: string) => ['types', p, '--out', out]],
    ['--junit', (p: string, m: string, out: string) => ['types', '--check', p, m, '--junit', out]],
  ])('of %s is a new one: no link is followed, and no folder replaced', needs('POSIX'), async (option, args) => {
    const marked = '/** Written by `hookline types`. */'
    const { p, m, target } = await files({
      p: plan({ key: 'A', jsonSchema: ORDER }),
      m: track('A', {}),
      target: marked,
    })
    const folder = await createFolder()
    const paths = ['link', 'dangling', 'folder', 'pipe'].map((name) => join(folder, name))
    const [toTarget = '', dangling = '', inner = '', pipe = ''] = paths
    await symlink(target, toTarget)
    await symlink(join(folder, 'new'), dangling)
    await mkdir(inner)
    execFileSync('mkfifo', [pipe])

    for (const path of paths) {
      const stderr = `error: ${option}: ${path} cannot be written: it is a link, or no plain file.\n`
      const run = await hookline(args(p, m, path))
      expect({ code: run.code, stderr: run.stderr }).toEqual({ code: 2, stderr: expect.stringContaining(stderr) })
    }

    expect([await readFile(target, 'utf8'), existsSync(join(folder, 'new'))]).toEqual([marked, false])
  })

  it.each(['--out', '--junit'])(
    'of %s takes the place of a plain one, and leaves its other names alone',
    async (option) => {
      const { p, m, old } = await files({
        p: plan({ key: 'A', jsonSchema: ORDER }),
        m: track('A', { total: 1 }),
        old: '/** Written by `hookline types`. */',
      })
      const path = `${old}.new`
      await link(old, path)
      const args = option === '--out' ? ['types', p, option, path] : ['types', '--check', p, m, option, path]
      expect(await hookline(args)).toMatchObject({ code: 0 })
      expect((await readFile(path, 'utf8')).length).toBeGreaterThan(100)
      expect(await readFile(old, 'utf8')).toBe('/** Written by `hookline types`. */')
    },
  )

  it('of a person is never overwritten', async () => {
    const { p, out } = await files({ p: plan({ key: 'A', jsonSchema: ORDER }), out: 'export const mine = 1\n' })
    expect(await hookline(['types', p, '--out', out])).toMatchObject({
      code: 2,
      stderr: `error: --out: ${out} was not written by this command. Delete it, or pass another path.\n`,
    })
    expect(await readFile(out, 'utf8')).toBe('export const mine = 1\n')
  })
})

describe('several sources', () => {
  it('have the newest version of each event, wherever it is', async () => {
    const newest = { type: 'object', properties: { newest: { type: 'string' } } }
    const { one, two } = await files({
      one: plan({ key: 'A', version: 2, jsonSchema: newest }, { key: 'B', jsonSchema: ORDER }),
      two: plan({ key: 'A', version: 1, jsonSchema: ORDER }, { key: 'C', jsonSchema: ORDER }),
    })
    const [{ stdout, stderr }, reverse] = [await hookline(['types', one, two]), await hookline(['types', two, one])]
    expect(Object.keys(run(stdout).events)).toEqual(['A', 'B', 'C'])
    expect(stdout).toContain('newest: z.string()')
    expect([stderr, reverse.stdout]).toEqual(['', stdout])
  })

  it('that differ at one version are a finding', async () => {
    const { one, two } = await files({
      one: plan({ key: 'A', jsonSchema: ORDER }),
      two: plan({ key: 'A', jsonSchema: {} }),
    })
    const { stdout, stderr } = await hookline(['types', one, two])
    expect(stdout).toContain('total: z.number()')
    expect(stderr).toBe('A: has several schemas of the same version: the first one is used.\n')
  })

  it('of messages add the events that no plan has', async () => {
    const { p, m } = await files({
      p: plan({ key: 'A', jsonSchema: ORDER }),
      m: [track('A', { total: 'x' }), track('B', { n: 1 })].join('\n'),
    })
    const { stdout } = await hookline(['types', m, p])
    expect(stdout).toContain('total: z.number(),')
    expect(stdout).toContain('n: z.number().optional(),')
  })

  it('may be a folder, where other files lie, too', async () => {
    const folder = await createFolder()
    await mkdir(join(folder, 'deep'))
    await writeFile(join(folder, 'deep/plan.json'), plan({ key: 'A', jsonSchema: ORDER }))
    await writeFile(join(folder, 'package.json'), '{ "name": "app" }')
    await writeFile(join(folder, 'tsconfig.json'), '{ "$schema": "https://json.schemastore.org/tsconfig" }')
    await writeFile(join(folder, 'compose.yaml'), 'services: {}\n')
    expect(Object.keys(run((await hookline(['types', folder])).stdout).events)).toEqual(['A'])
    const { code, stderr } = await hookline(['types', join(folder, 'package.json')])
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('must hold a tracking plan') })
  })

  it.each<[string, string, object]>([
    ['its title', '1-0.json', { title: 'Order Completed' }],
    ['its name in a registry', '1-0-0', { self: { vendor: 'com.acme', name: 'Order Completed', version: '1-0-0' } }],
    ['its file', 'schemas/Order Completed.schema.json', {}],
    ['its folder', 'Order Completed/1-0.json', {}],
    ['its folder, of one number', 'Order Completed/v1.json', {}],
    ['its folder in a registry', 'Order Completed/jsonschema/1-0-0', {}],
    ['the folder of its versions', 'Order Completed/v2/1.0.3.json', {}],
  ])('of JSON Schema are named by %s', async (_what, name, facts) => {
    const path = join(await createFolder(), name)
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, JSON.stringify({ ...ORDER, ...facts }))
    expect(Object.keys(run((await hookline(['types', path])).stdout).events)).toEqual(['Order Completed'])
  })

  it.each([
    ['the names of files', ['A/2-0.json', 'A/10-0.json', 'A/2-1.json'], [{}, {}, {}]],
    [
      'what they say',
      ['A/x.json', 'A/y.json'],
      ['2-0-1', '2-1-0'].map((version) => ({ self: { name: 'A', version } })),
    ],
  ])('of JSON Schema have the newest version by %s', async (_what, names, facts) => {
    const folder = await createFolder()
    await mkdir(join(folder, 'A'))
    for (const [at, name] of names.entries()) {
      const schema = { type: 'object', properties: { [name]: {} }, ...facts[at] }
      await writeFile(join(folder, name), JSON.stringify(schema))
    }
    const { stdout, stderr } = await hookline(['types', folder])
    expect([stdout, stderr]).toEqual([expect.stringContaining(names[1] as string), ''])
  })

  it('are that of HOOKLINE_QUEUE without any', needs('POSIX'), async () => {
    const { m } = await files({ m: track('A', {}) })
    const link = join(await createFolder(), 'queue')
    await symlink(m, link)
    const { stdout } = await hookline(['types'], { env: { HOOKLINE_QUEUE: link } })
    expect(Object.keys(run(stdout).events)).toEqual(['A'])
  })
})

describe('what is not supported is named, and any value', () => {
  it.each([
    ['not', { not: { type: 'string' } }],
    ['if', { if: { type: 'string' }, else: { type: 'number' } }],
    ['patternProperties', { type: 'object', patternProperties: { '^x': { type: 'string' } } }],
    ['propertyNames', { type: 'object', propertyNames: { maxLength: 3 } }],
    ['minProperties', { type: 'object', minProperties: 1 }],
    ['maxProperties', { type: 'object', maxProperties: 1 }],
    ['dependentRequired', { type: 'object', dependencies: { a: ['b'] } }],
    ['dependentSchemas', { type: 'object', dependencies: { a: { required: ['b'] } } }],
    ['prefixItems', { type: 'array', items: [{ type: 'string' }] }],
    ['contains', { type: 'array', contains: { type: 'string' } }],
    ['unevaluatedProperties', { type: 'object', unevaluatedProperties: false }],
    ['unevaluatedItems', { type: 'array', unevaluatedItems: false }],
    ['properties', { properties: { a: { type: 'string' } } }],
    ['uniqueItems', { type: 'array', uniqueItems: true }],
    ['enum', { enum: [{ a: 1 }] }],
    ['pattern', { type: 'string', pattern: '(' }],
    ['type', { type: 'date' }],
    ['additionalProperties', { type: 'object', additionalProperties: false, anyOf: [{ required: ['a'] }, {}] }],
  ])('%s', (keyword, schema) => {
    const { code, findings } = write({ type: 'object', properties: { x: { type: 'array', items: schema } } })
    expect(findings).toEqual([{ place: 'Order Completed: x[]', text: expect.stringContaining(keyword) }])
    expect(code).toContain('x: z.array(z.unknown()).optional()')
  })

  it.each([
    [
      'a reference to nothing',
      { $ref: '#/definitions/none' },
      'refers to #/definitions/none, which is not in the schema',
    ],
    ['one to another file', { $ref: 'other.json' }, 'refers to other.json, which is not in the schema'],
    ['one to itself', { $ref: '#' }, 'refers to itself'],
    ['no schema', 'text', 'is no JSON Schema'],
  ])('%s', (_what, schema, text) => {
    const { code, findings } = write({ type: 'object', properties: { x: schema } })
    expect(findings.map((each) => each.text)).toEqual([expect.stringContaining(text)])
    expect(code).toContain('x: ')
  })

  it('a property that every object of JavaScript has is left out', () => {
    const { code, findings } = write({ type: 'object', properties: { constructor: ORDER, a: ORDER } })
    expect(findings).toEqual([{ place: 'Order Completed: constructor', text: expect.stringContaining('is left out') }])
    expect(accepts(run(code).events['Order Completed'], {})).toBe(true)
  })

  it('an expression of Terraform is an error that says what to do', async () => {
    const { tf } = await files({
      tf: 'resource "segment_tracking_plan" "shop" {\n  rules = [\n    { json_schema = file("order.json") }\n  ]\n}\n',
    })
    const { code, stderr } = await hookline(['types', tf])
    expect(code).toBe(2)
    expect(stderr).toBe(
      `error: ${tf}: line 3 must be a plain value. Got an expression, or no HCL. Pass the output of \`terraform show -json\`, or the JSON that it reads.\n`,
    )
  })
})

describe('names and texts of strangers', { timeout: 240_000 }, () => {
  const NAMES = [
    '__proto__',
    'constructor',
    'toString',
    "it's",
    '"',
    '\\',
    '\n',
    '\u2028',
    '\u0024{x}',
    '`',
    '*/',
    '\u202e',
    '\ud800',
    '',
  ]

  it('become the keys that they are, and nothing else', () => {
    const text = fc.oneof(fc.constantFrom(...NAMES), fc.string({ unit: 'binary', maxLength: 20 }))
    fc.assert(
      fc.property(text, text, text, (event, name, description) => {
        const { code, findings } = write(
          JSON.parse(
            `{ "type": "object", "description": ${JSON.stringify(description)}, "properties": { ${JSON.stringify(name)}: { "enum": [${JSON.stringify(description)}] } } }`,
          ),
          'zod',
          event,
        )
        const { events, traits } = run(code)
        expect([Object.keys(events), Object.keys(traits)]).toEqual([[event], []])
        expect(Object.getPrototypeOf(events)).toBe(Object.prototype)
        const value = JSON.parse(`{ ${JSON.stringify(name)}: ${JSON.stringify(description)} }`)
        expect(accepts(events[event], value)).toBe(true)
        if (findings.length === 0) expect(accepts(events[event], { [name]: 1 })).toBe(false)
        expect(code).not.toMatch(/[\p{Cf}\p{Zl}\p{Zp}]/u)
      }),
      { numRuns: 2_000 },
    )
  })

  it('compile', () => {
    for (const format of ['zod', 'valibot', 'typescript'] as const) {
      for (const name of NAMES) {
        const { code } = write(
          { description: name, properties: { [name]: { description: name, enum: [name] } } },
          format,
          name,
        )
        const { diagnostics } = ts.transpileModule(code, { reportDiagnostics: true })
        expect(diagnostics).toEqual([])
      }
    }
  })

  it.each(['zod', 'valibot', 'typescript', 'json-schema'])(
    'are escaped in %s, and in all that is printed',
    async (format) => {
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
    },
  )

  it('are escaped for a terminal, and in XML', async () => {
    const { p, m, xml } = await files({
      p: plan({ key: 'A\u001b[31m', jsonSchema: ORDER }),
      m: track('<B>\u001b', {}),
      xml: '',
    })
    const { stdout, stderr } = await hookline(['types', '--check', p, m, '--junit', xml])
    expect(stdout + stderr).not.toContain('\u001b')
    expect(await readFile(xml, 'utf8')).toContain('name="&#60;B&#62;')
  })
})

it('10 000 events are written, and all are there', async () => {
  const names = Array.from({ length: 10_000 }, (_, at) => `Event ${at}`)
  const { p } = await files({ p: plan(...names.map((key) => ({ key, jsonSchema: ORDER }))) })
  const { stdout } = await hookline(['types', p])
  expect(Object.keys(run(stdout).events)).toEqual([...names].sort())
})

describe('--check', () => {
  const schema = {
    ...ORDER,
    properties: { ...ORDER.properties, items: { type: 'array', items: { required: ['sku'] } } },
  }
  const messages = [
    track('A', { total: 1 }, 'm-1'),
    track('A', { total: 'jane@example.com', items: [{ sku: 1 }, {}] }, 'm-2'),
    track('A', { items: [{}] }, 'm-3'),
    track('C', {}, 'm-4'),
    track('D', { total: 5 }, 'm-5'),
    '{"type":"page","userId":"u-1"}',
  ].join('\n')
  const sources = () =>
    files({
      p: plan({ key: 'A', jsonSchema: schema }, { key: 'B', jsonSchema: ORDER }, { key: 'D', jsonSchema: ORDER }),
      m: messages,
      xml: '',
    })

  it('tells what breaks the plan, with counts and a message of each', async () => {
    const { p, m } = await sources()
    const { code, stdout, stderr } = await hookline(['types', '--check', m, p])
    expect(code).toBe(1)
    expect(stdout).toBe(`fail  A  2 of 3 messages broke the plan
        items[].sku is missing: 2 messages, for example m-2
        total must be number: 1 message, for example m-2
        total is missing: 1 message, for example m-3
fail  C  1 message of an event that the plan does not have, for example m-4
skip  B  never came
pass  D  1 message
`)
    expect(stderr).toBe('1 event as planned, 1 broken, 1 not in the plan, 1 never came.\n')
  })

  it('prints JSON and writes XML', async () => {
    const { p, m, xml } = await sources()
    const { code, stdout } = await hookline(['types', '--check', p, m, '--json', '--junit', xml])
    expect(code).toBe(1)
    expect(jsonLines(stdout)).toEqual([
      {
        title: 'A',
        verdict: 'breaks',
        messages: 3,
        broken: 2,
        faults: [
          { path: 'items[].sku', text: 'is missing', count: 2, messageId: 'm-2' },
          { path: 'total', text: 'must be number', count: 1, messageId: 'm-2' },
          { path: 'total', text: 'is missing', count: 1, messageId: 'm-3' },
        ],
      },
      { title: 'C', verdict: 'unplanned', messages: 1, broken: 0, faults: [], messageId: 'm-4' },
      { title: 'B', verdict: 'unseen', messages: 0, broken: 0, faults: [] },
      { title: 'D', verdict: 'pass', messages: 1, broken: 0, faults: [] },
    ])
    expect(await readFile(xml, 'utf8')).toContain('tests="4" failures="2" errors="0" skipped="1"')
  })

  it('ends with 0 when nothing breaks the plan', async () => {
    const { p, m } = await files({ p: plan({ key: 'A', jsonSchema: ORDER }), m: track('A', { total: 1 }) })
    expect(await hookline(['types', '--check', p, m])).toMatchObject({ code: 0 })
  })

  it('shows no key of a message that the plan does not name', async () => {
    const maps = {
      type: 'object',
      properties: { by: { additionalProperties: { type: 'number' } } },
      additionalProperties: false,
    }
    const { p, m } = await files({
      p: plan({ key: 'A', jsonSchema: maps }),
      m: track('A', { by: { 'jane@example.com': 'x' }, 'jo@example.com': 1 }),
    })
    const { stdout } = await hookline(['types', '--check', p, m])
    expect(stdout).toContain('by.* must be number: 1 message')
    expect(stdout).toContain('the whole has properties that the plan does not have: 1 message')
    expect(stdout).not.toContain('example.com')
  })
})

describe('wrong usage', () => {
  it.each([
    ['no source', [], 'SOURCE is required. Pass a plan or messages, see --help.'],
    ['a missing file', ['none.json'], 'SOURCE: none.json cannot be read: it does not exist.'],
    ['--json without --check', ['none.json', '--json'], '--json needs --check.'],
    ['--out with --check', ['none.json', '--check', '--out', 'x.ts'], '--out does not go with --check.'],
    ['another format', ['none.json', '--format', 'zd'], 'Did you mean zod?'],
  ])('%s', async (_what, args, message) => {
    const { code, stderr } = await hookline(['types', ...args])
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(message) })
  })

  it('--check without a plan, or without messages', async () => {
    const { p, m } = await files({ p: plan({ key: 'A', jsonSchema: ORDER }), m: track('A', {}) })
    expect(await hookline(['types', '--check', p])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Got no messages.'),
    })
    expect(await hookline(['types', '--check', m])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Got no plan.'),
    })
  })
})
