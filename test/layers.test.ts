/** The layout: imports go down only, and a subpath loads only what is its own. */

import { execFile } from 'node:child_process'
import { glob, readFile } from 'node:fs/promises'
import { sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import manifest from '../package.json' with { type: 'json' }
import { findCycles, findViolations } from './layers/rules.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

describe('the imports of the sources', () => {
  it('go down only, and never round in a circle', async () => {
    const sources = await readFiles([
      'src/**/*.ts',
      'adapters/**/*.ts',
      'tools/{json,letter-groups,*/src/**/*}.{ts,tsx}',
    ])
    expect([...sources.keys()]).toEqual(
      expect.arrayContaining(['src/index.ts', 'src/receive/create-receiver.ts', 'adapters/express.ts']),
    )
    expect(findViolations(sources)).toEqual([])
  })

  it('never go round in a circle in the benchmarks', async () => {
    const sources = await readFiles(['bench/**/*.ts'])

    expect(sources.size).toBeGreaterThan(40)
    expect(findCycles(sources)).toEqual([])
  })
})

describe('the rule itself', () => {
  const tree = {
    'src/index.ts': '',
    'src/protocol/parse.ts': '',
    'src/kit/clock.ts': '',
    'src/host/endpoint.ts': '',
    'src/store/queue-types.ts': '',
    'src/store/memory/memory-queue.ts': '',
    'src/store/memory/memory-store.ts': '',
    'src/store/sqlite/sqlite-queue.ts': '',
    'src/receive/create-receiver.ts': '',
    'src/receive/receiver-options.ts': '',
    'src/send/create-sender.ts': '',
    'src/collect/create-client.ts': '',
    'src/collect/create-collector.ts': '',
    'src/testing/fixtures.ts': '',
    'adapters/shared/node-request.ts': '',
    'adapters/express.ts': '',
    'adapters/koa.ts': '',
    'adapters/node.ts': '',
    'src/internals.ts': '',
    'tools/command/src/page.ts': '',
    'tools/inspector/src/journal.ts': '',
    'tools/inspector/src/page-server.ts': '',
  }
  const violationsOf = (files: Readonly<Record<string, string>>) =>
    findViolations(new Map(Object.entries({ ...tree, ...files })))

  it.each([
    ['one layer down', 'src/host/endpoint.ts', '../protocol/parse.ts'],
    ['many layers down', 'src/collect/create-collector.ts', '../send/create-sender.ts'],
    ['from a face', 'src/index.ts', './receive/create-receiver.ts'],
    ['inside a folder', 'src/receive/create-receiver.ts', './receiver-options.ts'],
    ['from an engine to a lower layer', 'src/store/memory/memory-store.ts', '../../protocol/parse.ts'],
    ['from an engine to the contract', 'src/store/memory/memory-store.ts', '../queue-types.ts'],
    ['inside an engine', 'src/store/memory/memory-queue.ts', './memory-store.ts'],
    ['from the fixtures to the messages', 'src/testing/fixtures.ts', '../protocol/parse.ts'],
    ['from an adapter to a shared file', 'adapters/koa.ts', './shared/node-request.ts'],
    ['from an adapter to the contract of endpoints', 'adapters/koa.ts', '../src/host/endpoint.ts'],
    ['from a tool to a public name', 'tools/command/src/page.ts', 'hookline/node'],
    ['from a tool to the internals', 'tools/inspector/src/journal.ts', '../../../src/internals.ts'],
    ['from a tool to what tools share', 'tools/command/src/page.ts', '../../json.ts'],
    ['from the command to the page', 'tools/command/src/page.ts', '../../inspector/src/page-server.ts'],
    ['from the tools for tests to it', 'src/testing/fixtures.ts', '../../adapters/node.ts'],
    ['to a package or a builtin', 'src/protocol/parse.ts', 'node:crypto'],
  ])('lets an import pass %s', (_case, from, to) => {
    expect(violationsOf({ [from]: `import { x } from '${to}'` })).toEqual([])
  })

  it.each([
    ['up', 'src/protocol/parse.ts', '../receive/create-receiver.ts', 'goes up, from layer 0 to layer 3'],
    ['to a face', 'src/testing/fixtures.ts', '../index.ts', 'goes up, from layer 6 to layer 7'],
    ['sideways', 'src/receive/create-receiver.ts', '../send/create-sender.ts', 'goes sideways on layer 3'],
    ['from the host to a store', 'src/host/endpoint.ts', '../store/queue-types.ts', 'goes sideways on layer 2'],
    [
      'from a contract up',
      'src/store/queue-types.ts',
      '../receive/create-receiver.ts',
      'goes up, from layer 2 to layer 3',
    ],
    [
      'from engine to engine',
      'src/store/memory/memory-store.ts',
      '../sqlite/sqlite-queue.ts',
      'goes sideways, to a sibling',
    ],
    [
      'from the contract to an engine',
      'src/store/queue-types.ts',
      './memory/memory-queue.ts',
      'goes up, to a member of the family',
    ],
    [
      'from a tool to the library',
      'tools/command/src/page.ts',
      '../../../src/protocol/parse.ts',
      'tools import public names and the internals only',
    ],
    [
      'from the command into the page',
      'tools/command/src/page.ts',
      '../../inspector/src/journal.ts',
      'goes sideways, to a sibling',
    ],
    [
      'from the page to the command',
      'tools/inspector/src/journal.ts',
      '../../command/src/page.ts',
      'goes sideways, to a sibling',
    ],
    [
      'from the library to the internals',
      'src/testing/fixtures.ts',
      '../internals.ts',
      'only tools import the internals',
    ],
    [
      'from the library to a tool',
      'src/receive/create-receiver.ts',
      '../../tools/command/src/page.ts',
      'is no layer of the library',
    ],
    ['from framework to framework', 'adapters/koa.ts', './express.ts', 'goes sideways, to a sibling'],
    [
      'from a shared file to a framework',
      'adapters/shared/node-request.ts',
      '../express.ts',
      'goes up, to a member of the family',
    ],
    ['out of src', 'src/receive/create-receiver.ts', '../../adapters/koa.ts', 'only adapters import adapters'],
    [
      'around the contract of endpoints',
      'adapters/koa.ts',
      '../src/receive/create-receiver.ts',
      'adapters import protocol, kit, host only',
    ],
    ['through a face', 'adapters/koa.ts', '../src/index.ts', 'adapters import protocol, kit, host only'],
    ['to nowhere', 'src/index.ts', './protocol/gone.ts', 'is no source file'],
  ])('reports an import %s', (_case, from, to, reason) => {
    const violations = violationsOf({ [from]: `import { x } from '${to}'` })
    expect(violations).toEqual([expect.stringMatching(`^${from} → .*: ${reason}$`)])
  })

  it.each([
    ['type-only', "import type { X } from '../receive/create-receiver.ts'"],
    ['inline type', "import { type X } from '../receive/create-receiver.ts'"],
    ['bare', "import '../receive/create-receiver.ts'"],
    ['re-export', "export * from '../receive/create-receiver.ts'"],
    ['type re-export', "export type { X } from '../receive/create-receiver.ts'"],
    ['dynamic', "const x = await import('../receive/create-receiver.ts')"],
    ['type query', "export type X = import('../receive/create-receiver.ts').X"],
    ['require', "const x = require('../receive/create-receiver.ts')"],
  ])('sees an import that is %s', (_case, text) => {
    expect(violationsOf({ 'src/protocol/parse.ts': text })).toHaveLength(1)
  })

  it('is not fooled by text that looks like an import', () => {
    const text = "// import '../receive/create-receiver.ts'\nconst x = \"import '../receive/create-receiver.ts'\""
    expect(violationsOf({ 'src/protocol/parse.ts': text })).toEqual([])
  })

  it('reports an import of the package by its own name', () => {
    for (const name of ['hookline', 'hookline/express']) {
      const violations = violationsOf({ 'src/protocol/parse.ts': `import '${name}'` })
      expect(violations).toEqual([`src/protocol/parse.ts → ${name}: imports the package by its own name`])
    }
  })

  it('reports a folder that has no layer', () => {
    const violations = violationsOf({ 'src/utils/x.ts': "import '../protocol/parse.ts'" })
    expect(violations).toEqual(['src/utils/x.ts → src/protocol/parse.ts: a folder without a layer'])
  })

  it.each([
    ["export * from './protocol/parse.ts'", 'holds more than lists of names'],
    ["export * as parsing from './protocol/parse.ts'", 'holds more than lists of names'],
    ["import * as parsing from './protocol/parse.ts'\nexport { parsing }", 'holds more than lists of names'],
    ['export const tools = {}', 'holds more than lists of names'],
    [
      `export { ${Array.from({ length: 46 }, (_, at) => `a${at}`)} } from './protocol/parse.ts'`,
      '46 names, and at most 45',
    ],
  ])('reports internals that hide names, and too many: %s', (text, reason) => {
    const violations = violationsOf({ 'src/internals.ts': text })
    expect(violations).toEqual([expect.stringContaining(`src/internals.ts: ${reason}`)])
  })

  it('lets a list of internals pass', () => {
    const text = "export { parse, type Json } from './protocol/parse.ts'\nexport type { Clock } from './kit/clock.ts'"
    expect(violationsOf({ 'src/internals.ts': text })).toEqual([])
  })

  it('reports a cycle, type-only imports included', () => {
    const violations = violationsOf({
      'src/receive/create-receiver.ts': "import { readOptions } from './receiver-options.ts'",
      'src/receive/receiver-options.ts': "import type { Receiver } from './create-receiver.ts'",
    })
    const [a, b] = ['src/receive/create-receiver.ts', 'src/receive/receiver-options.ts']
    expect(violations).toEqual([`${a} → ${b} → ${a}: a cycle`])
  })
})

describe('what a subpath loads', () => {
  const LOADS: Readonly<Record<string, readonly string[]>> = {
    hookline: [],
    'hookline/express': ['raw-body'],
    'hookline/koa': ['raw-body'],
    'hookline/fastify': ['fastify-plugin', 'raw-body'],
    'hookline/node': ['raw-body'],
    'hookline/fetch': [],
    'hookline/lambda': [],
    'hookline/sender': ['undici'],
    'hookline/collector': [],
    'hookline/client': ['debug', 'undici'],
    'hookline/queues': [],
    'hookline/queues/memory': [],
    'hookline/queues/sqlite': [],
    'hookline/queues/bullmq': ['bullmq', 'debug', 'ioredis'],
    'hookline/queues/pg-boss': ['pg', 'pg-boss'],
    'hookline/dedupe/memory': [],
    'hookline/otel': ['@opentelemetry/api'],
    'hookline/testing': ['raw-body'],
    'hookline/inspector': ['raw-body'],
  }

  const SERVER = ['http', 'https', 'http2', '_http_client', 'internal/deps/undici/undici']
  /** Whose packages or servers bring an HTTP client, and which; every other subpath brings none. */
  const CLIENTS: Readonly<Record<string, readonly string[]>> = {
    // undici reads what node:http and node:http2 know of the protocol.
    'hookline/sender': ['http', 'http2', '_http_client'],
    'hookline/client': ['http', 'http2', '_http_client'],
    // They have servers of node:http; an import of that makes Node load all it exports.
    'hookline/testing': SERVER,
    'hookline/inspector': SERVER,
  }

  const FRAMEWORKS = ['express', 'koa', 'fastify']
  const SOURCES = ['src/index.ts', 'src/testing.ts'].map((path) => new URL(`../${path}`, import.meta.url).href)
  const subpaths = Object.keys(manifest.exports)
    .filter((key) => key !== './package.json')
    .map((key) => key.replace('.', manifest.name))
  let loads: ReadonlyMap<string, readonly string[]>
  const load = (specifier: string): readonly string[] => loads.get(specifier) ?? []

  beforeAll(async () => {
    const specifiers = [...subpaths, ...SOURCES, ...FRAMEWORKS]
    const args = [`${root}test/layers/loaded.mjs`, ...specifiers]
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, maxBuffer: Infinity })
    const lists = JSON.parse(stdout)
    loads = new Map(specifiers.map((specifier, index) => [specifier, lists[index]]))
  })

  it.each(subpaths)('%s: its own packages and no HTTP client that it need not', (subpath) => {
    const loaded = load(subpath)
    expect(packagesIn(loaded)).toEqual(LOADS[subpath])
    expect(CLIENTS[subpath] ?? []).toEqual(expect.arrayContaining(httpClientsIn(loaded)))
  })

  it('src/index.ts: as the package that is built from it, and nothing that explains signatures, as src/testing.ts does', () => {
    const [index = [], testing = []] = SOURCES.map(load)
    expect(packagesIn(index)).toEqual(LOADS.hookline)
    expect(httpClientsIn(index)).toEqual([])
    const explains = (loaded: readonly string[]) => loaded.some((url) => url.includes('/src/protocol/explain/'))
    expect([explains(index), explains(testing)]).toEqual([false, true])
  })

  it.each(FRAMEWORKS)('would show %s and the HTTP modules it brings', (name) => {
    expect(packagesIn(load(name))).toContain(name)
    expect(httpClientsIn(load(name))).toContain('http')
  })

  function packagesIn(loaded: readonly string[]): string[] {
    const { dependencies, peerDependencies, devDependencies } = manifest
    const known = Object.keys({ ...dependencies, ...peerDependencies, ...devDependencies })
    return known.filter((name) => loaded.some((url) => url.includes(`/node_modules/${name}/`))).sort()
  }

  function httpClientsIn(loaded: readonly string[]): string[] {
    const clients = ['http', 'https', 'http2', '_http_client', 'internal/deps/undici/undici']
    return clients.filter((name) => loaded.includes(`node:${name}`) || loaded.includes(`NativeModule ${name}`))
  }
})

async function readFiles(patterns: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const sources = new Map<string, string>()
  for await (const path of glob(patterns, { cwd: root })) {
    sources.set(path.replaceAll(sep, '/'), await readFile(`${root}${path}`, 'utf8'))
  }
  return sources
}
