/** `hookline init`: the test that it writes passes at once, its server starts, and it runs a package manager. */

import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { fixtures, signedRequest } from 'hookline/testing'
import { afterAll, describe, expect, it } from 'vitest'
import manifest from '../../../package.json' with { type: 'json' }
import { startNode } from '../../../test/docs/child.ts'
import { needs } from '../../../test/support/needs.ts'
import { freePort } from '../../../test/support/redis.ts'
import { until } from '../../../test/support/until.ts'
import { FRAMEWORKS } from '../src/init/templates.ts'
import { createFolder, hookline, root } from './command.ts'
import { uncomment } from './uncomment.ts'

const run = promisify(execFile)

type Files = Readonly<Record<string, object>>

/** Holds the packages and each project until the end: a hook of one test does not see which test runs beside others. */
const home = await createFolder(afterAll)
const packages = join(home, 'packages')
await mkdir(packages)
await symlink(root, join(packages, 'hookline'), 'junction')
for (const name of ['express', 'fastify', 'hono', 'koa', 'vitest']) {
  await symlink(join(root, 'node_modules', name), join(packages, name), 'junction')
}

/** A folder in which the packages are installed, after the command. */
async function initProject(files: Files, ...args: readonly string[]): Promise<string> {
  const folder = await mkdtemp(join(home, 'project-'))
  await symlink(packages, join(folder, 'node_modules'), 'junction')
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), JSON.stringify(content))
  expect(await hookline(['init', ...args, '--no-install'], { cwd: folder })).toMatchObject({ code: 0 })
  return folder
}

async function runTests(cwd: string, ...files: readonly string[]): Promise<string> {
  const { scripts } = JSON.parse(await readFile(join(cwd, 'package.json'), 'utf8'))
  const vitest = [join(root, 'node_modules/vitest/vitest.mjs'), 'run']
  const args = scripts.test === 'vitest run' ? vitest : ['--test', '--test-reporter=tap', ...files]
  const { stdout } = await run(process.execPath, args, { cwd, env: { NO_COLOR: '1' } })
  return stdout
}

const PASSED = /^# pass 2\n# fail 0$|Tests +2 passed/m
const MODULE = { type: 'module' }
const VITEST = { devDependencies: { vitest: '*' }, scripts: { test: 'vitest run' } }

const FORMS: readonly (readonly [form: string, files: Files])[] = [
  ['ES modules', { 'package.json': MODULE }],
  ['CommonJS', { 'package.json': {} }],
  ['TypeScript, ES modules', { 'package.json': MODULE, 'tsconfig.json': {} }],
  ['TypeScript, CommonJS', { 'package.json': {}, 'tsconfig.json': {} }],
]
const VITEST_FORMS: typeof FORMS = [
  ['ES modules with vitest', { 'package.json': { ...MODULE, ...VITEST } }],
  ['TypeScript, CommonJS, with vitest', { 'package.json': VITEST, 'tsconfig.json': {} }],
]

/** Each framework with two forms, each form with several frameworks; those whose files differ with all. */
const PAIRS = Object.keys(FRAMEWORKS).flatMap((name, at) => {
  const own = name === 'express' || name === 'next' ? FORMS : FORMS.filter((_form, index) => (index + at) % 2 === 0)
  return own.map(([form, files]) => ({ name, form, files }))
})
const VITEST_PAIRS = VITEST_FORMS.map(([form, files], at) => ({ name: at === 0 ? 'express' : 'next', form, files }))

describe.concurrent('its test passes at once', { timeout: 60_000 }, () => {
  const all = [...PAIRS, ...VITEST_PAIRS, { name: 'node', form: 'an empty folder', files: {} }]
  it.for(all)('for $name, in a project of $form', async ({ name, files }, { expect }) => {
    expect(await runTests(await initProject(files, name))).toMatch(PASSED)
  })
})

/** The frameworks whose receiver is a server, in both module systems. */
const SERVERS = Object.entries(FRAMEWORKS)
  .filter(([, { isServer }]) => isServer)
  .map(([name], index) => ({ name, files: { 'package.json': index % 2 === 0 ? MODULE : {} } }))

describe.concurrent('its inbox, health and end work when they are uncommented', { timeout: 60_000 }, () => {
  it.for(SERVERS)('for $name, with $files', needs('POSIX'), async ({ name, files }, { expect, onTestFinished }) => {
    const cwd = await initProject(files, name)
    const path = join(cwd, 'webhooks.js')
    const code = await readFile(path, 'utf8')
    await writeFile(path, uncomment(code))
    expect(await runTests(cwd)).toMatch(PASSED)

    const port = await freePort()
    const url = `http://127.0.0.1:${port}`
    const server = startNode(['webhooks.js'], { cwd, env: { HOOKLINE_SECRET: 'secret', PORT: String(port) } })
    onTestFinished(() => server.kill('SIGKILL'))
    await until(async () => (await fetch(`${url}/readyz`).catch(() => undefined))?.status === 200)
    const answer = await fetch(`${url}/webhooks`, signedRequest(fixtures.track, 'secret'))
    await server.printed(/track .*Order Completed/s)
    server.kill('SIGTERM')

    expect(answer.status).toBe(200)
    expect(await server.exit).toBe(0)
    expect(await readdir(cwd)).toContain('inbox.sqlite')
  })
})

it('packages that cannot be installed are named, and the exit code is 1', async () => {
  const folder = await mkdtemp(join(home, 'project-'))
  await writeFile(join(folder, 'package.json'), '{"packageManager":"pnpm@10.0.0"}')
  const line = `pnpm add hookline@${manifest.version}`
  const ran = await hookline(['init'], { cwd: folder, env: { PATH: '/nowhere' } })
  expect(ran).toMatchObject({ code: 1, stdout: expect.stringContaining(`\n  ${line}\n`) })
  expect(ran.stderr).toContain(line)
})
