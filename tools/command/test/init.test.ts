/** `hookline init`: the test it writes passes at once in each form that a folder can have, and it writes over nothing. */

import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import manifest from '../../../package.json' with { type: 'json' }
import { needs } from '../../../test/support/needs.ts'
import { FRAMEWORKS } from '../src/init/templates.ts'
import { hookline } from './command.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../..', import.meta.url))

type Files = Readonly<Record<string, string | object>>

/** Holds the packages and each project until the end: a hook of one test does not see which test runs beside others. */
let home: string
let packages: string
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'hookline-init-'))
  packages = join(home, 'packages')
  await mkdir(packages)
  await symlink(root, join(packages, 'hookline'), 'junction')
  for (const name of ['express', 'fastify', 'hono', 'koa', 'vitest']) {
    await symlink(join(root, 'node_modules', name), join(packages, name), 'junction')
  }
})
afterAll(() => rm(home, { recursive: true, maxRetries: 9 }))

/** A folder in which the packages are installed. */
async function createProject(files: Files): Promise<string> {
  const folder = await mkdtemp(join(home, 'project-'))
  await symlink(packages, join(folder, 'node_modules'), 'junction')
  for (const [name, content] of Object.entries(files)) {
    await writeFile(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content))
  }
  return folder
}

async function init(folder: string, ...args: readonly string[]) {
  return hookline(['init', ...args, '--no-install'], { cwd: folder, env: { npm_config_user_agent: '' } })
}

/** The files of a folder, but for the packages. */
async function listFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile() && !entry.parentPath.includes('node_modules'))
  return files
    .map(({ parentPath, name }) =>
      join(parentPath, name)
        .slice(folder.length + 1)
        .replaceAll('\\', '/'),
    )
    .sort()
}

async function readScript(folder: string): Promise<string> {
  return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')).scripts.test
}

/** Runs what `npm test` runs, without npm. */
async function runTests(folder: string): Promise<string> {
  const args: Readonly<Record<string, readonly string[]>> = {
    'node --test': ['--test', '--test-reporter=tap'],
    'vitest run': [join(root, 'node_modules/vitest/vitest.mjs'), 'run'],
  }
  const { stdout } = await run(process.execPath, args[await readScript(folder)] ?? [], {
    cwd: folder,
    env: { NO_COLOR: '1' },
  })
  return stdout
}

const MODULE = { type: 'module' }
const VITEST = { devDependencies: { vitest: '*' }, scripts: { test: 'vitest run' } }

/** What the folder has before the command. */
const FORMS: Readonly<Record<string, Files>> = {
  'an empty folder': {},
  'ES modules': { 'package.json': MODULE },
  CommonJS: { 'package.json': {} },
  'TypeScript, ES modules': { 'package.json': MODULE, 'tsconfig.json': '{}' },
  'TypeScript, CommonJS': { 'package.json': {}, 'tsconfig.json': '{}' },
}

const VITEST_FORMS: Readonly<Record<string, Files>> = {
  'ES modules with vitest': { 'package.json': { ...MODULE, ...VITEST } },
  'CommonJS with vitest': { 'package.json': VITEST },
  'TypeScript with vitest': { 'package.json': { ...MODULE, ...VITEST }, 'tsconfig.json': '{}' },
  'TypeScript, CommonJS, with vitest': { 'package.json': VITEST, 'tsconfig.json': '{}' },
}

describe.concurrent.each(Object.keys(FRAMEWORKS))('%s', { timeout: 60_000 }, (name) => {
  const forms = name === 'express' || name === 'next' ? { ...FORMS, ...VITEST_FORMS } : FORMS
  it.for(Object.entries(forms))('in a project of %s, its test passes at once', async ([, files], { expect }) => {
    const folder = await createProject(files)
    expect(await init(folder, name)).toMatchObject({ code: 0 })
    expect(await runTests(folder)).toMatch(/^# pass 2\n# fail 0$|Tests +2 passed/m)
  })
})

it.each([MODULE, {}])('a server listens when it is started (%o)', async (form) => {
  const folder = await createProject({ 'package.json': form })
  await init(folder, 'node')
  const options = { cwd: folder, env: { HOOKLINE_SECRET: 'secret', PORT: '65536' } }
  await expect(run(process.execPath, ['webhooks'], options)).rejects.toThrow('ERR_SOCKET_BAD_PORT')
})

describe('what is there', () => {
  it.each(['webhooks.js', 'webhooks.test.js'])('%s is not written over, and nothing else is written', async (name) => {
    const files = { 'package.json': MODULE, [name]: 'mine' }
    const folder = await createProject(files)
    const { code, stderr } = await init(folder, 'express')
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: `error: ${name} exists. Nothing was written. Move it, then run the command again.\n`,
    })
    expect(await listFiles(folder)).toEqual(Object.keys(files).sort())
    expect(await readFile(join(folder, name), 'utf8')).toBe('mine')
  })

  it('.env.example is left as it is', async () => {
    const folder = await createProject({ '.env.example': 'mine' })
    const { code, stderr } = await init(folder, 'express')
    expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining('it needs HOOKLINE_SECRET') })
    expect(await readFile(join(folder, '.env.example'), 'utf8')).toBe('mine')
  })

  it.each(['webhooks.js', 'webhooks.test.js'])(
    '%s is not written where a link leads nowhere',
    needs('POSIX'),
    async (name) => {
      const folder = await createProject({ 'package.json': MODULE })
      await symlink('nowhere', join(folder, name))
      expect(await init(folder, 'express')).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(`${name} exists. Nothing`),
      })
      expect(await listFiles(folder)).toEqual(['package.json'])
    },
  )

  it('.env.example is left as it is where it is a link that leads nowhere', needs('POSIX'), async () => {
    const folder = await createProject({})
    await symlink('nowhere', join(folder, '.env.example'))
    expect(await init(folder, 'express')).toMatchObject({ code: 0 })
  })

  it('a file src is not taken for the folder of the sources', async () => {
    const folder = await createProject({ src: 'mine' })
    expect(await init(folder, 'express')).toMatchObject({ code: 0 })
    expect(await listFiles(folder)).toEqual(expect.arrayContaining(['src', 'webhooks.js']))
  })

  it('both are named', async () => {
    const folder = await createProject({ 'package.json': MODULE, 'webhooks.js': 'mine', 'webhooks.test.js': 'mine' })
    expect((await init(folder, 'express')).stderr).toBe(
      'error: webhooks.js and webhooks.test.js exist. Nothing was written. Move them, then run the command again.\n',
    )
  })

  it('package.json keeps its form and the script of another test runner, which does not find the test', async () => {
    const text = '{\n\t"name": "mine",\n\t"scripts": {\n\t\t"test": "jest"\n\t}\n}\n'
    const folder = await createProject({ 'package.json': text })
    const { stdout } = await init(folder, 'express')
    expect(await readFile(join(folder, 'package.json'), 'utf8')).toBe(text)
    expect(stdout).toContain('  node --test webhooks.node-test.mjs\n')
    const args = ['--test', '--test-reporter=tap', 'webhooks.node-test.mjs']
    expect((await run(process.execPath, args, { cwd: folder })).stdout).toMatch(/^# pass 2$/m)
  })

  it('a script that tests other files than ours is named no more', async () => {
    const folder = await createProject({ 'package.json': { ...MODULE, scripts: { test: 'node --test test/*.js' } } })
    expect((await init(folder, 'express')).stdout).toContain('  node --test webhooks.test.js\n')
  })

  it('package.json gets a test script in place of the one of npm init', async () => {
    const placeholder = { scripts: { build: 'tsc', test: 'echo "Error: no test specified" && exit 1' } }
    const folder = await createProject({ 'package.json': JSON.stringify(placeholder, undefined, '\t') })
    await init(folder, 'express')
    const text = await readFile(join(folder, 'package.json'), 'utf8')
    expect(text).toBe('{\n\t"scripts": {\n\t\t"build": "tsc",\n\t\t"test": "node --test"\n\t}\n}\n')
  })

  it('package.json keeps its line ends, and may begin with a byte order mark', async () => {
    const folder = await createProject({ 'package.json': '\uFEFF{\r\n  "name": "mine"\r\n}\r\n' })
    await init(folder, 'express')
    expect(await readFile(join(folder, 'package.json'), 'utf8')).toBe(
      '{\r\n  "name": "mine",\r\n  "scripts": {\r\n    "test": "node --test"\r\n  }\r\n}\r\n',
    )
  })

  it.each(['{', '[]'])('package.json with %s is refused', async (text) => {
    const folder = await createProject({ 'package.json': text })
    expect(await init(folder)).toMatchObject({ code: 2, stderr: expect.stringContaining('package.json is not JSON') })
    expect(await listFiles(folder)).toEqual(['package.json'])
  })
})

describe('the framework', () => {
  it.each([
    ['fastify', "from 'hookline/fastify'"],
    ['next', "from 'hookline/fetch'"],
    ['lodash', "from 'hookline/node'"],
  ])('is that of a project with %s', async (name, line) => {
    const folder = await createProject({ 'package.json': { ...MODULE, dependencies: { [name]: '*' } } })
    await init(folder)
    const [receiver = ''] = (await listFiles(folder)).filter((path) => /(webhooks|route)\.js$/.test(path))
    expect(await readFile(join(folder, receiver), 'utf8')).toContain(line)
  })

  it.each([
    ['next', 'src/app/api/webhooks/route'],
    ['express', 'src/webhooks'],
  ])('%s has its files in src where the project has it: %s', async (name, stem) => {
    const folder = await createProject({ 'package.json': MODULE, 'tsconfig.json': '{}' })
    await mkdir(join(folder, 'src'))
    await init(folder, name)
    expect(await listFiles(folder)).toEqual(expect.arrayContaining([`${stem}.test.js`, `${stem}.ts`]))
    expect(await runTests(folder)).toMatch(/^# pass 2$/m)
  })

  it.each([
    ['express', true],
    ['next', false], // Its own settings find the types.
  ])('of %s: whether it says how to compile: %s', async (name, isSaid) => {
    const folder = await createProject({ 'package.json': {}, 'tsconfig.json': '{}' })
    expect((await init(folder, name)).stdout.includes('Compile with "module"')).toBe(isSaid)
  })

  it('next is refused where no route of it can be an ES module', async () => {
    const folder = await createProject({ 'package.json': { type: 'commonjs' } })
    expect(await init(folder, 'next')).toMatchObject({ code: 2, stderr: expect.stringContaining('"type": "commonjs"') })
  })

  it('is one of those that it knows', async () => {
    const folder = await createProject({})
    expect(await init(folder, 'rails')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Allowed choices are express'),
    })
  })
})

describe('packages', () => {
  const version = `hookline@${manifest.version}`

  it.each([
    [{ 'package-lock.json': '{}' }, `npm install ${version} express`],
    [{ 'pnpm-lock.yaml': '' }, `pnpm add ${version} express`],
    [{ 'yarn.lock': '' }, `yarn add ${version} express`],
    [{ 'bun.lock': '' }, `bun add ${version} express`],
    [{ 'package.json': { packageManager: 'pnpm@10.0.0' }, 'yarn.lock': '' }, `pnpm add ${version} express`],
    [{ 'package.json': { packageManager: 'toString@1' } }, `npm install ${version} express`],
    [{ 'package.json': { dependencies: { express: '5' } } }, `npm install ${version}`],
    [{ 'package.json': { dependencies: { hookline: '1' } }, 'tsconfig.json': '{}' }, 'npm install express'],
  ] as const)('of a folder with %o: %s', async (files, line) => {
    const folder = await createProject(files)
    const { stdout } = await init(folder, 'express')
    expect(stdout).toContain(`Next:\n  ${line}\n`)
  })

  it.each([
    [{}, 'express', 'ES modules, and package.json with "type": "module"'],
    [{ 'package.json': { type: 'module' } }, 'express', 'ES modules, because "type" is "module" in package.json'],
    [{ 'package.json': {} }, 'express', 'CommonJS, because "type" is not "module" in package.json'],
    [{ 'package.json': {} }, 'next', 'ES modules, because Next.js takes no other routes'],
    [{ 'tsconfig.json': '{}' }, 'express', 'TypeScript, because this folder has a tsconfig.json'],
  ] as const)('of a folder with %o for %s are written as: %s', async (files, framework, form) => {
    const { stderr } = await init(await createProject(files), framework)
    expect(stderr).toContain(`Writes ${form}.\n`)
  })

  it.each([
    ['npm', 'npm test'],
    ['bun', 'bun run test'], // `bun test` is its own test runner.
  ])('of %s: the next step is %s', async (name, step) => {
    const folder = await createProject({ 'package.json': { packageManager: `${name}@1.0.0` } })
    expect((await init(folder, 'express')).stdout).toContain(`\n  ${step}\n`)
  })

  it('of types are for TypeScript', async () => {
    const folder = await createProject({ 'tsconfig.json': '{}', 'yarn.lock': '' })
    expect((await init(folder, 'express')).stdout).toContain('\n  yarn add --dev @types/express\n')
  })

  it('are those of the package manager that runs the command, where the folder says nothing', async () => {
    const folder = await createProject({})
    const env = { npm_config_user_agent: 'pnpm/10.1.0 npm/? node/v24.0.0 linux x64' }
    const { stdout } = await hookline(['init', '--no-install'], { cwd: folder, env })
    expect(stdout).toContain(`Next:\n  pnpm add ${version}\n`)
  })

  it('that cannot be installed are named, and the exit code is 1', async () => {
    const folder = await createProject({ 'package.json': { packageManager: 'pnpm@10.0.0' } })
    const { code, stdout, stderr } = await hookline(['init'], { cwd: folder, env: { PATH: '/nowhere' } })
    expect({ code, stdout, stderr }).toEqual({
      code: 1,
      stdout: expect.stringContaining(`Next:\n  pnpm add ${version}\n`),
      stderr: expect.stringContaining(`The packages could not be installed by: pnpm add ${version}\n`),
    })
  })
})
