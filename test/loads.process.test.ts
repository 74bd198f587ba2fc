/** A subpath loads its own packages and no HTTP client that it need not. Each is imported in a thread of its own, from the build. */

import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import manifest from '../package.json' with { type: 'json' }

const root = fileURLToPath(new URL('..', import.meta.url))

describe('what a subpath loads', () => {
  /** Every other subpath loads no package. */
  const LOADS: Readonly<Record<string, readonly string[]>> = {
    'hookline/express': ['raw-body'],
    'hookline/koa': ['raw-body'],
    'hookline/fastify': ['fastify-plugin', 'raw-body'],
    'hookline/node': ['raw-body'],
    'hookline/sender': ['undici'],
    'hookline/client': ['debug', 'undici'],
    'hookline/queues/bullmq': ['bullmq', 'debug', 'ioredis'],
    'hookline/queues/pg-boss': ['pg', 'pg-boss'],
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
    const args = [`${root}test/support/loaded.mjs`, ...specifiers]
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, maxBuffer: Infinity })
    const lists = JSON.parse(stdout)
    loads = new Map(specifiers.map((specifier, index) => [specifier, lists[index]]))
  })

  it.each(subpaths)('%s: its own packages and no HTTP client that it need not', (subpath) => {
    const loaded = load(subpath)
    expect(packagesIn(loaded)).toEqual(LOADS[subpath] ?? [])
    expect(CLIENTS[subpath] ?? []).toEqual(expect.arrayContaining(httpClientsIn(loaded)))
  })

  it('src/index.ts: as the package that is built from it, and nothing that explains signatures, as src/testing.ts does', () => {
    const [index = [], testing = []] = SOURCES.map(load)
    expect(packagesIn(index)).toEqual([])
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
    return SERVER.filter((name) => loaded.includes(`node:${name}`) || loaded.includes(`NativeModule ${name}`))
  }
})
