/** What docs/versions.md and the tables that it links to promise, held against the sources and package.json. */

import { readdirSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { find, warningCodes } from './names.ts'

const root = new URL('../../', import.meta.url)
const page = read('docs/versions.md')
const observability = read('docs/observability.md')
const { engines, peerDependencies } = JSON.parse(read('package.json'))

const channels = find(/channel(?:<.*>)?\('(hookline:\w+)'\)/gi)

it('the channels and the warnings are those of the code', () => {
  expect(channels.length).toBeGreaterThan(8)
  expect(codesOf(rowOf(page, 'channels')).sort()).toEqual(channels)
  expect(codesOf(rowOf(page, 'warnings')).sort()).toEqual(warningCodes())
})

it('the variables of the environment are those that the command reads', () => {
  expect(codesOf(rowOf(page, 'environment')).sort()).toEqual(find(/process\.env\.(HOOKLINE_\w+)/g))
})

it('the table of channels has each, with the fields of its type', () => {
  const rows = [...observability.matchAll(/^\| `(hookline:\w+)` \|.*?\| ([^|]*) \| `(\w+)` \|$/gm)]
  expect(rows.map(([, name]) => name).sort()).toEqual(channels)
  for (const [, name, listed = '', type = ''] of rows) {
    expect([name, codesOf(listed).sort()]).toEqual([name, [...new Set(fieldsOf(type))].sort()])
  }
})

it('the tables of OpenTelemetry have each metric and each attribute', () => {
  const section = observability.slice(observability.indexOf('## OpenTelemetry'))
  const rows = [...section.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, names = '']) => withPrefixes(codesOf(names)))
  const created = [
    ...find(/(?:count|time)\('((?:hookline|messaging)\.[\w.]+)'/g, 'observe'),
    ...find(/ count\('(\w+)'/g, 'observe').map((name) => `hookline.destination.${name}`),
    ...['inbox', 'destination'].flatMap((owner) =>
      find(/ create\('(\w+)'/g, 'observe').map((name) => `hookline.${owner}.${name}`),
    ),
  ]
  const attributes = find(/'([a-z]+\.[\w.]+)':/g, 'observe')

  expect(created.length).toBeGreaterThan(15)
  expect(created.filter((name) => !rows.includes(name))).toEqual([])
  expect(attributes.filter((name) => !section.includes(`\`${name}\``))).toEqual([])
})

it('the exit codes are those that the command sets, and its help names no other', () => {
  const listed = [...page.matchAll(/^\| (\d+) \| /gm)].map(([, code = '']) => code)
  const values = find(/(?:exitCode = |process\.exit\()(.*)/g, 'command').map((value) => value.replace(/^.*\?/, ''))
  const named = find(/Exit codes: (.*)/g, 'command').flatMap((text) => text.match(/\b\d(?= )/g) ?? [])
  expect([...new Set(['0', ...values.flatMap((value) => value.match(/\b\d+\b/g) ?? [])])].sort()).toEqual(listed.sort())
  expect(listed).toEqual(expect.arrayContaining(named))
  expect(named.length).toBeGreaterThan(15)
})

it('no stored form is another than that of 1.0: a release that changes one reads the old one, too', () => {
  const versionOf = (path: string) => /VERSION = (\d+)/.exec(read(`src/${path}.ts`))?.[1]
  expect(versionOf('receive/envelope')).toBe('1')
  expect(versionOf('store/sqlite/sqlite-tables')).toBe('5')
  expect(versionOf('store/bullmq/redis-server')).toBe('1')
  expect(versionOf('store/pg-boss/pg-boss-tables')).toBe('2')
})

it('the peers and their ranges are those of package.json', () => {
  const rows = [...page.matchAll(/^\| `([@\w/-]+)` \| `([^`]+)` \|$/gm)]
  const listed = rows.map(([, name, range = '']) => [name, range.replaceAll('\\|', '|')])
  expect(Object.fromEntries(listed)).toEqual(peerDependencies)
})

it('the runtimes are those of package.json and of the table of runtimes', () => {
  const [heads = ''] = /^\| {2}\| .*Node.*$/m.exec(read('docs/hosts.md')) ?? []
  const nodes = [...heads.matchAll(/Node (\d+)/g)].map(([, line]) => line)
  const [first, ...others] = nodes
  expect(rowOf(page, 'Node')).toContain([`${first} from ${engines.node.replace('>=', '')}`, ...others].join(', '))
  for (const runtime of ['Bun', 'Deno']) {
    const [, version] = new RegExp(`${runtime} ([\\d.]+)`).exec(heads) ?? []
    expect(rowOf(page, runtime)).toContain(`${version} and newer`)
  }
})

function rowOf(text: string, first: string): string {
  const row = text.split('\n').find((line) => line.startsWith(`| ${first} |`))
  if (row === undefined) throw new Error(`There is no row of ${first}.`)
  return row
}

function codesOf(text: string): string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)
}

/** `hookline.inbox.waiting`, `.active` is the same with its beginning. */
function withPrefixes(names: readonly string[]): string[] {
  const prefix = names[0]?.replace(/\.\w+$/, '') ?? ''
  return names.map((name) => (name.startsWith('.') ? prefix + name : name))
}

/** The names of the fields of a type, as the lists of public names have it, and of those that it extends. */
function fieldsOf(type: string): readonly string[] {
  const lists = readdirSync(new URL('test/api/', root)).map((name) => read(`test/api/${name}`))
  const pattern = new RegExp(`interface ${type}(?: extends (?:Omit<)?(\\w+).*)? {\\r?\\n([^]*?)\\n}`)
  const [, parent, body = ''] = lists.map((list) => pattern.exec(list)).find((found) => found !== null) ?? []
  const own = [...body.matchAll(/^ {4}readonly (\w+)\??:/gm)].map(([, name = '']) => name)
  return [...own, ...(parent === undefined ? [] : fieldsOf(parent))]
}

function read(path: string): string {
  return readFileSync(new URL(path, root), 'utf8')
}
