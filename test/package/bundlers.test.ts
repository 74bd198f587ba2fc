/** Apps with the packed tarball, built as the guide says: a receiver and a sender on SQLite run in a folder that has no packages. */

import { cp, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type BuildOptions, build } from 'esbuild'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { useProject } from './project.ts'
import { runProgram } from './run.ts'

const { esbuild, 'pg-boss': pgBoss } = manifest.devDependencies
const ROLLUP = ['rollup@4', ...['commonjs@29', 'json@6', 'node-resolve@16'].map((name) => `@rollup/plugin-${name}`)]

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

type Build = (directory: string) => Promise<unknown>

const BUNDLERS: readonly (readonly [name: string, build: Build])[] = [
  ['esbuild', (directory) => runProgram(process.execPath, ['esbuild.mjs'], directory)],
  ['SST', (directory) => build({ ...SST, absWorkingDir: directory, entryPoints: ['server.mjs'] })],
  ['rollup', (directory) => runProgram('npx', ['rollup', '--config', 'rollup.config.mjs'], directory)],
  ['webpack', (directory) => runProgram('npx', ['webpack'], directory)],
]

describe('a project without the packages that it does not use', { timeout: 600_000 }, () => {
  const project = useProject([`esbuild@${esbuild}`, ...ROLLUP, 'webpack@5', 'webpack-cli@7', `pg-boss@${pgBoss}`])

  beforeAll(async () => {
    const { directory } = project()
    await cp(fileURLToPath(new URL('../../examples/bundlers', import.meta.url)), directory, { recursive: true })
    const modules = join(directory, 'node_modules')
    await mkdir(join(modules, 'pg-boss/node_modules'), { recursive: true }) // As pnpm has it: only pg-boss finds `pg`.
    for (const name of ['pg', 'pg-pool']) await rename(join(modules, name), join(modules, 'pg-boss/node_modules', name))
  })

  it.each(BUNDLERS)('runs, bundled by %s: a receiver, a sender, an engine', async (_name, bundle) => {
    const run = (program: string) => bundleAndRun(project().directory, program, bundle)
    expect(await run('bundled-receiver')).toEqual({ statuses: [200, 401], event: 'Order Completed' })
    expect(await run('bundled-sender')).toEqual({ ok: true, status: 'delivered', undelivered: [] })
    expect(await run('bundled-engine')).toBe('function')
  })
})

/** Bundles a program as `server.mjs`, and returns what it prints where no package can be found. */
async function bundleAndRun(directory: string, program: string, bundle: Build): Promise<unknown> {
  const server = `import { runBundled } from './${program}.mjs'\n\nconsole.log(JSON.stringify(await runBundled()))\n`
  await writeFile(join(directory, 'server.mjs'), server)
  await bundle(directory)
  const place = await mkdtemp(join(tmpdir(), 'hookline-built-'))
  onTestFinished(() => rm(place, { recursive: true }))
  await rename(join(directory, 'dist'), join(place, 'built'))
  const { stdout, stderr } = await runProgram(process.execPath, ['server.mjs'], join(place, 'built'))
  expect(stderr).toBe('')
  return JSON.parse(stdout)
}
