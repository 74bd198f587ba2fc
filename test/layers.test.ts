/** The house: imports go down only, and a subpath loads only what is its own. */

import { execFile } from 'node:child_process'
import { glob, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import manifest from '../package.json' with { type: 'json' }
import { findViolations } from './layers/rules.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

describe('the imports of the sources', () => {
  it('go down only, and never round in a circle', async () => {
    const sources = await readSources()
    expect([...sources.keys()]).toEqual(
      expect.arrayContaining(['src/index.ts', 'src/receiver/receiver.ts', 'adapters/express.ts']),
    )
    expect(findViolations(sources)).toEqual([])
  })
})

describe('the rule itself', () => {
  const house = {
    'src/index.ts': '',
    'src/protocol/parse.ts': '',
    'src/queues/queue.ts': '',
    'src/queues/memory.ts': '',
    'src/queues/sqlite.ts': '',
    'src/receiver/receiver.ts': '',
    'src/receiver/options.ts': '',
    'src/sender/sender.ts': '',
    'src/collector/collector.ts': '',
    'src/testing/fixtures.ts': '',
    'adapters/body.ts': '',
    'adapters/express.ts': '',
    'adapters/koa.ts': '',
  }
  const violationsOf = (files: Readonly<Record<string, string>>) =>
    findViolations(new Map(Object.entries({ ...house, ...files })))

  it.each([
    ['downstairs', 'src/receiver/receiver.ts', '../protocol/parse.ts'],
    ['two floors down', 'src/collector/collector.ts', '../sender/sender.ts'],
    ['from the top', 'src/index.ts', './receiver/receiver.ts'],
    ['inside a folder', 'src/receiver/receiver.ts', './options.ts'],
    ['from a queue to the protocol', 'src/queues/memory.ts', '../protocol/parse.ts'],
    ['from a queue to the contract', 'src/queues/memory.ts', './queue.ts'],
    ['from the fixtures to the protocol', 'src/testing/fixtures.ts', '../protocol/parse.ts'],
    ['from an adapter to a shared file', 'adapters/koa.ts', './body.ts'],
    ['from an adapter to the protocol', 'adapters/koa.ts', '../src/protocol/parse.ts'],
    ['to a package or a builtin', 'src/protocol/parse.ts', 'node:crypto'],
  ])('lets an import pass %s', (_case, from, to) => {
    expect(violationsOf({ [from]: `import { x } from '${to}'` })).toEqual([])
  })

  it.each([
    ['upstairs', 'src/protocol/parse.ts', '../receiver/receiver.ts', 'goes up, from floor 0 to floor 2'],
    ['to the top', 'src/testing/fixtures.ts', '../index.ts', 'goes up, from floor 3 to floor 4'],
    ['next door', 'src/receiver/receiver.ts', '../sender/sender.ts', 'goes sideways on floor 2'],
    ['from a queue upstairs', 'src/queues/queue.ts', '../receiver/receiver.ts', 'goes up, from floor 1 to floor 2'],
    ['from queue to queue', 'src/queues/memory.ts', './sqlite.ts', 'goes sideways, to a sibling'],
    ['from framework to framework', 'adapters/koa.ts', './express.ts', 'goes sideways, to a sibling'],
    ['from a shared file to a framework', 'adapters/body.ts', './express.ts', 'a shared file imports a sibling'],
    ['out of the house', 'src/receiver/receiver.ts', '../../adapters/koa.ts', 'only adapters import adapters'],
    ['around the seam', 'adapters/koa.ts', '../src/receiver/receiver.ts', 'adapters import src/protocol only'],
    ['through the front door', 'adapters/koa.ts', '../src/index.ts', 'adapters import src/protocol only'],
    ['to nowhere', 'src/index.ts', './protocol/gone.ts', 'is no source file'],
  ])('reports an import %s', (_case, from, to, reason) => {
    const violations = violationsOf({ [from]: `import { x } from '${to}'` })
    expect(violations).toEqual([expect.stringMatching(`^${from} → .*: ${reason}$`)])
  })

  it.each([
    ['type-only', "import type { X } from '../receiver/receiver.ts'"],
    ['inline type', "import { type X } from '../receiver/receiver.ts'"],
    ['bare', "import '../receiver/receiver.ts'"],
    ['re-export', "export * from '../receiver/receiver.ts'"],
    ['type re-export', "export type { X } from '../receiver/receiver.ts'"],
    ['dynamic', "const x = await import('../receiver/receiver.ts')"],
    ['type query', "export type X = import('../receiver/receiver.ts').X"],
    ['require', "const x = require('../receiver/receiver.ts')"],
  ])('sees an import that is %s', (_case, text) => {
    expect(violationsOf({ 'src/protocol/parse.ts': text })).toHaveLength(1)
  })

  it('is not fooled by text that looks like an import', () => {
    const text = "// import '../receiver/receiver.ts'\nconst x = \"import '../receiver/receiver.ts'\""
    expect(violationsOf({ 'src/protocol/parse.ts': text })).toEqual([])
  })

  it('reports an import of the package by its own name', () => {
    for (const name of ['hookline', 'hookline/express']) {
      const violations = violationsOf({ 'src/protocol/parse.ts': `import '${name}'` })
      expect(violations).toEqual([`src/protocol/parse.ts → ${name}: imports the package by its own name`])
    }
  })

  it('reports a folder that has no floor', () => {
    const violations = violationsOf({ 'src/utils/x.ts': "import '../protocol/parse.ts'" })
    expect(violations).toEqual(['src/utils/x.ts → src/protocol/parse.ts: a folder without a floor'])
  })

  it('reports a cycle, type-only imports included', () => {
    const violations = violationsOf({
      'src/receiver/receiver.ts': "import { readOptions } from './options.ts'",
      'src/receiver/options.ts': "import type { Receiver } from './receiver.ts'",
    })
    const [a, b] = ['src/receiver/receiver.ts', 'src/receiver/options.ts']
    expect(violations).toEqual([`${a} → ${b} → ${a}: a cycle`])
  })
})

describe('what a subpath loads', () => {
  /** Of the packages that package.json names. */
  const LOADS: Readonly<Record<string, readonly string[]>> = {
    hookline: [],
    'hookline/express': [],
    'hookline/koa': [],
    'hookline/fastify': ['fastify-plugin'],
    'hookline/node': [],
    'hookline/fetch': ['raw-body'],
    'hookline/sender': ['undici'],
    'hookline/collector': [],
    'hookline/client': ['debug', 'undici'],
    'hookline/queues/memory': [],
    'hookline/queues/sqlite': [],
    'hookline/queues/bullmq': ['bullmq', 'debug', 'ioredis'],
    'hookline/queues/pg-boss': ['pg', 'pg-boss'],
    'hookline/dedupe/memory': [],
    'hookline/dedupe/sqlite': [],
    'hookline/otel': ['@opentelemetry/api'],
    'hookline/testing': [],
  }

  /** Whose packages or servers bring an HTTP client, and which; every other subpath brings none. */
  const CLIENTS: Readonly<Record<string, readonly string[]>> = {
    // undici reads what node:http and node:http2 know of the protocol.
    'hookline/sender': ['http', 'http2', '_http_client'],
    'hookline/client': ['http', 'http2', '_http_client'],
    // The scripted endpoint is a server of node:http; an import of that makes Node load all it exports.
    'hookline/testing': ['http', 'https', 'http2', '_http_client', 'internal/deps/undici/undici'],
  }

  it.each(subpaths())('%s: its own packages and no HTTP client that it need not', async (subpath) => {
    const loaded = await load(subpath)
    expect(packagesIn(loaded)).toEqual(LOADS[subpath])
    expect(CLIENTS[subpath] ?? []).toEqual(expect.arrayContaining(httpClientsIn(loaded)))
  })

  it('src/index.ts: as the package that is built from it', async () => {
    const loaded = await load(`${root}src/index.ts`)
    expect(packagesIn(loaded)).toEqual(LOADS.hookline)
    expect(httpClientsIn(loaded)).toEqual([])
  })

  it.each([
    ['express', 'express'],
    ['koa', 'koa'],
    ['fastify', 'fastify'],
  ])('would show %s and the HTTP modules it brings', async (specifier, name) => {
    const loaded = await load(specifier)
    expect(packagesIn(loaded)).toContain(name)
    expect(httpClientsIn(loaded)).toContain('http')
  })

  function subpaths(): string[] {
    const keys = Object.keys(manifest.exports).filter((key) => key !== './package.json')
    return keys.map((key) => key.replace('.', manifest.name))
  }

  async function load(specifier: string): Promise<string[]> {
    const program = `${root}test/layers/loaded.ts`
    const { stdout } = await promisify(execFile)(process.execPath, [program, specifier], { cwd: root })
    return JSON.parse(stdout)
  }

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

async function readSources(): Promise<ReadonlyMap<string, string>> {
  const sources = new Map<string, string>()
  for await (const path of glob(['src/**/*.ts', 'adapters/**/*.ts'], { cwd: root })) {
    sources.set(path, await readFile(`${root}${path}`, 'utf8'))
  }
  return sources
}
