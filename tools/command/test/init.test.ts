/** `hookline init`: what it writes in each form that a folder can have, and that it writes over nothing. */

import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import manifest from '../../../package.json' with { type: 'json' }
import { createFiles, expectUsage, hookline } from './command.ts'

const MODULE = { type: 'module' }

function init(folder: string, ...args: readonly string[]) {
  return hookline(['init', ...args, '--no-install'], { cwd: folder, env: { npm_config_user_agent: '' } })
}

const read = (folder: string, name: string) => readFile(join(folder, name), 'utf8')

async function listFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name))
  return files.map((path) => path.slice(folder.length + 1).replaceAll('\\', '/')).sort()
}

it.each([['webhooks.js'], ['webhooks.test.js'], ['webhooks.js', 'webhooks.test.js']])(
  'what is there is not written over, and nothing else is written: %s %s',
  async (...names) => {
    const mine = Object.fromEntries(names.map((name) => [name, 'mine']))
    const folder = await createFiles({ 'package.json': MODULE, ...mine })
    expectUsage(await init(folder, 'express'), ...names)
    expect(await listFiles(folder)).toEqual(['package.json', ...names])
    expect(await read(folder, names[0] as string)).toBe('mine')
  },
)

it('what is there may be .env.example, which is left as it is', async () => {
  const folder = await createFiles({ '.env.example': 'mine' })
  expect(await init(folder, 'express')).toMatchObject({ code: 0, stderr: expect.stringContaining('HOOKLINE_SECRET') })
  expect(await read(folder, '.env.example')).toBe('mine')
})

const textWith = (test: string) => `{\r\n\t"scripts": {\r\n\t\t"build": "tsc",\r\n\t\t"test": "${test}"\r\n\t}\r\n}\r\n`
const npmInit = `\uFEFF${textWith('echo \\"Error: no test specified\\" && exit 1')}`
it.each([
  ['keeps the script of another test runner', textWith('jest'), textWith('jest'), 'node --test webhooks.node-test.mjs'],
  ['gets one in place of that of npm init, with its tabs and line ends', npmInit, textWith('node --test'), 'npm test'],
])('package.json %s', async (_what, before, after, step) => {
  const folder = await createFiles({ 'package.json': before })
  const { stdout } = await init(folder, 'express')
  expect(await read(folder, 'package.json')).toBe(after)
  expect(stdout).toContain(`\n  ${step}\n`)
})

it.each([
  ['{', [], 'package.json'],
  ['[]', [], 'package.json'],
  ['{}', ['rails'], "'rails' express"],
  ['{"type":"commonjs"}', ['next'], 'commonjs'], // No route of Next.js can be an ES module then.
])('package.json with %s, and the framework %j, are wrong usage', async (text, args, names) => {
  const folder = await createFiles({ 'package.json': text })
  expectUsage(await init(folder, ...args), ...names.split(' '))
  expect(await listFiles(folder)).toEqual(['package.json'])
})

it.each([
  ['fastify', "from 'hookline/fastify'"],
  ['next', "from 'hookline/fetch'"],
  ['lodash', "from 'hookline/node'"],
])('the framework is that of a project with %s', async (name, line) => {
  const folder = await createFiles({ 'package.json': { ...MODULE, dependencies: { [name]: '*' } } })
  await init(folder)
  const [receiver = ''] = (await listFiles(folder)).filter((path) => /(webhooks|route)\.js$/.test(path))
  expect(await read(folder, receiver)).toContain(line)
})

it.each([
  ['next', 'src/app/api/webhooks/route'],
  ['express', 'src/webhooks'],
])('%s has its files in src where the project has it: %s', async (name, stem) => {
  const folder = await createFiles({ 'package.json': MODULE, 'tsconfig.json': '{}', 'src/mine.ts': '' })
  await init(folder, name)
  expect(await listFiles(folder)).toEqual(expect.arrayContaining([`${stem}.test.js`, `${stem}.ts`]))
})

it('the package manager is that of the nearest lock file above', async () => {
  const folder = join(await createFiles({ 'pnpm-lock.yaml': '', 'packages/app/mine.js': '' }), 'packages/app')
  expect((await init(folder, 'express')).stdout).toContain('\n  pnpm add ')
})

const version = `hookline@${manifest.version}`

const TYPESCRIPT = { 'tsconfig.json': '{}' }
const VITEST = { 'package.json': { devDependencies: { vitest: '*' } } }

it.each<[string, Readonly<Record<string, string | object>>, ...lines: string[]]>([
  ['express', { 'package-lock.json': '{}' }, `npm install ${version} express`, 'node --env-file=.env webhooks.js'],
  ['express', { 'pnpm-lock.yaml': '' }, `pnpm add ${version} express`],
  ['express', { 'package.json': { packageManager: 'pnpm@10.0.0' }, 'yarn.lock': '' }, `pnpm add ${version} express`],
  ['express', { 'package.json': { dependencies: { express: '5' } } }, `npm install ${version}`],
  ['express', { 'package.json': { dependencies: { hookline: '1' } }, ...TYPESCRIPT }, 'npm install express'],
  ['express', { ...TYPESCRIPT, 'yarn.lock': '' }, 'yarn add --dev @types/express', 'node --env-file=.env webhooks.ts'],
  ['express', { 'package.json': { ...MODULE, scripts: { test: 'node --test a' } } }, 'node --test webhooks.test.js'],
  ['express', { 'package.json': { packageManager: 'bun@1.0.0' } }, 'bun run test'], // `bun test` is its own test runner.
  ['next', { 'package.json': MODULE }, 'Start the app.', 'npm test'],
  ['hono', VITEST, `npm install ${version} hono`, 'npm test'],
])('the next steps for %s in a folder with %o: %s', async (name, files, ...lines) => {
  const { stdout } = await init(await createFiles(files), name)
  for (const line of lines) expect(stdout).toContain(`\n  ${line}\n`)
  const path = name === 'next' ? '/api/webhooks' : '/webhooks'
  expect(/http:\/\/localhost:3000(\S+)/.exec(stdout)?.[1]).toBe(name === 'hono' ? undefined : path)
})

it.each([
  ['express', { 'package.json': {} }, 'webhooks.test.mjs', './webhooks.js'],
  ['express', TYPESCRIPT, 'webhooks.test.js', './webhooks.ts'],
  ['express', { ...TYPESCRIPT, 'package.json': {} }, 'webhooks.test.mjs', './webhooks.mts'],
  ['express', { ...TYPESCRIPT, ...VITEST }, 'webhooks.test.mts', './webhooks.mjs'],
  ['next', { ...TYPESCRIPT, 'package.json': {} }, 'app/api/webhooks/route.test.mjs', './route.ts'],
] as const)('the test for %s in a folder with %o is %s, and imports %s', async (name, files, test, imported) => {
  const folder = await createFiles(files)
  await init(folder, name)
  expect(await read(folder, test)).toContain(`'${imported}'`)
})
