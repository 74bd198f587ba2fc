/** Apps with the packed tarball, built as the guide says: a receiver and a sender on SQLite run in a folder that has no packages. */

import { cp, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type BuildOptions, build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { startNode } from '../docs/child.ts'
import { createProject, type Project } from './project.ts'
import { runProgram } from './run.ts'

const { esbuild, 'pg-boss': pgBoss } = manifest.devDependencies
const ROLLUP = ['rollup@4', ...['commonjs@29', 'json@6', 'node-resolve@16'].map((name) => `@rollup/plugin-${name}`)]
const WEBPACK = ['webpack@5', 'webpack-cli@7']

/** What SST 4 gives to esbuild for a function, without what its `nodejs` may change. */
const SST: BuildOptions = {
  outfile: 'dist/server.mjs',
  bundle: true,
  keepNames: true,
  platform: 'node',
  format: 'esm',
  target: 'esnext',
  mainFields: ['module', 'main'],
  banner: {
    js: `import { createRequire as topLevelCreateRequire } from 'module';
const require = topLevelCreateRequire(import.meta.url);
import { fileURLToPath as topLevelFileUrlToPath, URL as topLevelURL } from "url"
const __filename = topLevelFileUrlToPath(import.meta.url)
const __dirname = topLevelFileUrlToPath(new topLevelURL(".", import.meta.url))`,
  },
}

/** What each program returns. */
const RECEIVED = { statuses: [200, 401], event: 'Order Completed' }
const SENT = { ok: true, status: 'delivered', undelivered: [] }

type Build = (directory: string) => Promise<unknown>

const BUNDLERS: readonly (readonly [name: string, build: Build])[] = [
  ['esbuild', (directory) => runProgram(process.execPath, ['esbuild.mjs'], directory)],
  ['SST', (directory) => build({ ...SST, absWorkingDir: directory, entryPoints: ['server.mjs'] })],
  ['rollup', (directory) => runBin(directory, 'rollup', '--config', 'rollup.config.mjs')],
  ['webpack', (directory) => runBin(directory, 'webpack')],
]

describe('a project without the packages that it does not use', { timeout: 600_000 }, () => {
  const project = useProject([`esbuild@${esbuild}`, ...ROLLUP, ...WEBPACK, `pg-boss@${pgBoss}`])

  beforeAll(async () => {
    const modules = join(project().directory, 'node_modules')
    await mkdir(join(modules, 'pg-boss/node_modules'), { recursive: true }) // As pnpm has it: only pg-boss finds `pg`.
    for (const name of ['pg', 'pg-pool']) await rename(join(modules, name), join(modules, 'pg-boss/node_modules', name))
  })

  it('does not run when esbuild is not given the line of the guide', async () => {
    const { banner: _line, ...settings } = SST
    const bundle: Build = (directory) => build({ ...settings, absWorkingDir: directory, entryPoints: ['server.mjs'] })
    const ran = bundleAndRun(project().directory, 'bundled-sender', bundle)
    await expect(ran).rejects.toThrow('Dynamic require of "node:assert" is not supported')
  })

  describe.each(BUNDLERS)('bundled by %s', (_name, bundle) => {
    it.each([
      ['bundled-receiver', RECEIVED],
      ['bundled-sender', SENT],
      ['bundled-engine', 'function'],
    ])('runs %s', async (program, result) => {
      expect(await bundleAndRun(project().directory, program, bundle)).toEqual(result)
    })
  })
})

describe('Next with the output standalone', () => {
  const project = useProject(['next@16', 'react@19', 'react-dom@19'])

  test('runs both', { timeout: 600_000 }, async () => {
    const { directory } = project()
    for (const program of ['bundled-receiver', 'bundled-sender']) {
      await mkdir(join(directory, 'app', program), { recursive: true })
      await writeFile(
        join(directory, 'app', program, 'route.js'),
        `import { runBundled } from '../../${program}.mjs'\n\nexport const POST = async () => Response.json(await runBundled())\n`,
      )
    }
    await runBin(directory, 'next', 'build')
    const elsewhere = await moveAway(join(directory, '.next/standalone'))

    const server = startNode(['server.js'], { cwd: elsewhere, env: { HOSTNAME: '127.0.0.1', PORT: '0' } })
    onTestFinished(() => server.kill('SIGKILL'))
    const [, url] = await server.printed(/(http:\/\/127\.0\.0\.1:[1-9]\d*)/)
    const post = async (path: string) => (await fetch(`${url}/${path}`, { method: 'POST' })).json()
    expect(await post('bundled-receiver')).toEqual(RECEIVED)
    expect(await post('bundled-sender')).toEqual(SENT)
  })
})

function useProject(packages: readonly string[]): () => Project {
  let project: Project
  beforeAll(async () => {
    project = await createProject(packages)
    await cp(fileURLToPath(new URL('../../examples/bundlers', import.meta.url)), project.directory, { recursive: true })
  })
  afterAll(() => project?.remove())
  return () => project
}

function runBin(directory: string, program: string, ...parameters: readonly string[]) {
  return runProgram(join(directory, 'node_modules/.bin', program), parameters, directory)
}

/** Bundles a program as `server.mjs`, and returns what it prints where no package can be found. */
async function bundleAndRun(directory: string, program: string, bundle: Build): Promise<unknown> {
  const server = `import { runBundled } from './${program}.mjs'\n\nconsole.log(JSON.stringify(await runBundled()))\n`
  await writeFile(join(directory, 'server.mjs'), server)
  await bundle(directory)
  const { stdout, stderr } = await runProgram(process.execPath, ['server.mjs'], await moveAway(join(directory, 'dist')))
  expect(stderr).toBe('')
  return JSON.parse(stdout)
}

async function moveAway(folder: string): Promise<string> {
  const place = await mkdtemp(join(tmpdir(), 'hookline-built-'))
  onTestFinished(() => rm(place, { recursive: true }))
  await rename(folder, join(place, 'built'))
  return join(place, 'built')
}
