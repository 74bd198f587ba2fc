/**
 * `hookline init`: writes a receiver, its test and `.env.example`, and installs the required packages. The files use the language and the
 * module system of this folder.
 */

import { spawnSync } from 'node:child_process'
import { existsSync, lstatSync, statSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join, parse, posix } from 'node:path'
import { Argument, type Command, Option } from 'commander'
import packageJson from '../../../../package.json' with { type: 'json' }
import { isObject } from '../../../json.ts'
import { note, print, UsageError } from '../terminal.ts'
import { environmentOf, FRAMEWORKS, type Framework, type FrameworkName, receiverOf, testOf } from './templates.ts'

const NAMES = Object.keys(FRAMEWORKS) as FrameworkName[]

export function define(command: Command): void {
  const argument = new Argument('[framework]', 'the framework. Default: the one that package.json names, or node')
  command
    .addArgument(argument.choices(NAMES))
    .addOption(
      // Commander sets the defaults of `--no-` options before `define` is called, so this option must set its own default.
      new Option('--no-install', 'print the command that installs packages instead of running it').default(true),
    )
    .addHelpText('after', HELP)
    .action(init)
}

const HELP = `
Overwrites nothing: if the receiver or its test exists, no file is written. Adds a test script to package.json if it has none.

Exit codes: 0 done, 1 the packages could not be installed, 2 wrong usage.

Examples:
  hookline init express --no-install
      Writes webhooks.js, its test and .env.example for Express.
  hookline init --no-install
      Does the same for the framework that this project uses.`

async function init(named: FrameworkName | undefined, { install }: { readonly install: boolean }): Promise<void> {
  const project = await readProject()
  const framework: Framework = FRAMEWORKS[named ?? frameworkOf(project)]
  if (framework === FRAMEWORKS.next && project.manifest.type === 'commonjs') {
    throw new UsageError(
      `Routes of Next.js must be ES modules. Remove "type": "commonjs" from ${MANIFEST}, then run the command again.`,
    )
  }
  const files = filesOf(framework, project)
  const existing = Object.keys(files).filter((path) => path !== ENVIRONMENT && isThere(path))
  if (existing.length > 0) {
    const [verb, pronoun] = existing.length === 1 ? ['exists', 'it'] : ['exist', 'them']
    throw new UsageError(
      `${existing.join(' and ')} ${verb}. Nothing was written. Move ${pronoun}, then run the command again.`,
    )
  }
  note(`Writes ${describeForm(project, framework)}.`)
  await addTestScript(project)
  for (const [path, text] of Object.entries(files)) await write(path, text)
  const left = installPackages(framework, project, install)
  printNext(framework, project, Object.keys(files), left)
  if (install && left.length > 0) process.exitCode = 1
}

/** Says which language and module system the files use, and why. */
function describeForm({ text, isTypeScript, isModule }: Project, framework: Framework): string {
  if (isTypeScript) return 'TypeScript, because this folder has a tsconfig.json'
  if (text === undefined) return `ES modules, and ${MANIFEST} with "type": "module"`
  if (isModule) return `ES modules, because "type" is "module" in ${MANIFEST}`
  if (framework === FRAMEWORKS.next) return 'ES modules, because routes of Next.js must be ES modules'
  return `CommonJS, because "type" is not "module" in ${MANIFEST}`
}

interface Project {
  /** The text of package.json; undefined when it does not exist. */
  readonly text: string | undefined
  readonly manifest: Manifest
  readonly isModule: boolean
  readonly isTypeScript: boolean
  /** The test runner; undefined if the project uses an unsupported runner, such as Jest. */
  readonly runner: 'node' | 'vitest' | undefined
  readonly manager: Manager
}

interface Manifest {
  readonly type?: unknown
  readonly packageManager?: unknown
  readonly scripts?: Readonly<Record<string, unknown>>
  readonly dependencies?: Readonly<Record<string, unknown>>
  readonly devDependencies?: Readonly<Record<string, unknown>>
}

async function readProject(): Promise<Project> {
  const text = existsSync(MANIFEST) ? await readFile(MANIFEST, 'utf8') : undefined
  const manifest = text === undefined ? NEW_MANIFEST : parseManifest(text)
  return {
    text,
    manifest,
    isModule: manifest.type === 'module',
    isTypeScript: existsSync('tsconfig.json'),
    runner: runnerOf(manifest),
    manager: managerOf(manifest),
  }
}

const MANIFEST = 'package.json'
const ENVIRONMENT = '.env.example'
const NEW_MANIFEST: Manifest = { type: 'module' }

function parseManifest(text: string): Manifest {
  try {
    const manifest: unknown = JSON.parse(text.replace(/^\uFEFF/, '')) // Some editors on Windows write a byte order mark.
    if (isObject(manifest)) return manifest
  } catch {}
  throw new UsageError(`${MANIFEST} must contain a JSON object. Correct it, then run the command again.`)
}

function has({ dependencies, devDependencies }: Manifest, name: string): boolean {
  return dependencies?.[name] !== undefined || devDependencies?.[name] !== undefined
}

function runnerOf(manifest: Manifest): Project['runner'] {
  const { test } = manifest.scripts ?? {}
  const isOwn = test === undefined || String(test).includes('no test specified') // `npm init` writes a script that always fails.
  if (has(manifest, 'vitest') && (isOwn || /\bvitest\b/.test(String(test)))) return 'vitest'
  return isOwn || /\bnode\b.* --test\b/.test(String(test)) ? 'node' : undefined
}

function frameworkOf({ manifest }: Project): FrameworkName {
  return (['next', 'fastify', 'hono', 'koa', 'express'] as const).find((name) => has(manifest, name)) ?? 'node'
}

const MANAGERS = {
  npm: { add: 'npm install', dev: '--save-dev', run: 'npx', test: 'npm test' },
  pnpm: { add: 'pnpm add', dev: '--save-dev', run: 'pnpm exec', test: 'pnpm test' },
  yarn: { add: 'yarn add', dev: '--dev', run: 'yarn', test: 'yarn test' },
  bun: { add: 'bun add', dev: '--dev', run: 'bunx', test: 'bun run test' },
} as const
type Manager = keyof typeof MANAGERS

const LOCK_FILES: Readonly<Record<string, Manager>> = {
  'pnpm-lock.yaml': 'pnpm',
  'yarn.lock': 'yarn',
  'bun.lock': 'bun',
  'bun.lockb': 'bun',
  'package-lock.json': 'npm',
}

/**
 * Returns the package manager that package.json names. Otherwise, returns the package manager whose lock file is in this folder or in the
 * nearest folder above it. If there is no lock file, returns the package manager that runs this command.
 */
function managerOf({ packageManager }: Manifest): Manager {
  const isKnown = (name: string | undefined): name is Manager => name !== undefined && Object.hasOwn(MANAGERS, name)
  const [named] = String(packageManager).split('@')
  if (isKnown(named)) return named
  for (let folder = process.cwd(); ; folder = dirname(folder)) {
    const lockFile = Object.keys(LOCK_FILES).find((name) => existsSync(join(folder, name)))
    if (lockFile !== undefined) return LOCK_FILES[lockFile] as Manager
    if (folder === parse(folder).root) break
  }
  const [running] = process.env.npm_config_user_agent?.split('/') ?? []
  return isKnown(running) ? running : 'npm'
}

/** Returns the texts of the files to write, by path: the receiver, its test, and `.env.example`. */
function filesOf(framework: Framework, project: Project): Record<string, string> {
  const isNext = framework === FRAMEWORKS.next
  const { isTypeScript, runner = 'node' } = project
  const isModule = project.isModule || isTypeScript || isNext
  // Node recognises an ES module by package.json or by the extension of the file. Next.js prescribes the file name of a route.
  const kind = project.isModule || !isTypeScript || isNext ? '' : 'm'
  const stem = isFolder('src') && !(isNext && isFolder('app')) ? `src/${framework.path}` : framework.path
  const isTypedTest = isTypeScript && runner === 'vitest'
  const test = isTypedTest ? `test.${kind}ts` : project.isModule ? 'test.js' : 'test.mjs'
  // A test in TypeScript must import `.js`, which vitest resolves to the `.ts` file. Node needs the real file name.
  const imported = `./${posix.basename(stem)}.${kind}${isTypeScript && !isTypedTest ? 'ts' : 'js'}`
  return {
    [`${stem}.${kind}${isTypeScript ? 'ts' : 'js'}`]: receiverOf(framework, isModule),
    // `node-` in the name keeps other test runners, such as Jest, from running the file.
    [`${stem}.${project.runner === undefined ? 'node-' : ''}${test}`]: testOf(framework, imported, {
      runner,
      isTypeScript: isTypedTest,
    }),
    [ENVIRONMENT]: environmentOf(framework),
  }
}

/** Returns whether the path exists. A link whose target is missing counts as existing. */
function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}

async function write(path: string, text: string): Promise<void> {
  if (path === ENVIRONMENT && isThere(path)) {
    return note(`${path} exists and was not changed: add HOOKLINE_SECRET to it.`)
  }
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, text, { flag: 'wx' })
  print(`wrote ${path}`)
}

async function addTestScript({ text, manifest, runner }: Project): Promise<void> {
  const { test = 'no test specified' } = manifest.scripts ?? {}
  if (runner === undefined || !String(test).includes('no test specified')) return
  const scripts = { ...manifest.scripts, test: runner === 'vitest' ? 'vitest run' : 'node --test' }
  const [, indent = '  '] = /^([ \t]+)"/m.exec(text ?? '') ?? []
  const json = `${JSON.stringify({ ...manifest, scripts }, undefined, indent)}\n`
  await writeFile(MANIFEST, text?.includes('\r\n') ? json.replaceAll('\n', '\r\n') : json)
  print(`added the script "test" to ${MANIFEST}`)
}

/** @returns The commands that the user still has to run. */
function installPackages({ packages, types }: Framework, { manifest, manager, isTypeScript }: Project, isRun: boolean) {
  const missing = (names: readonly string[]) => names.filter((name) => !has(manifest, name))
  const own = has(manifest, 'hookline') ? [] : [`hookline@${packageJson.version}`]
  const { add, dev } = MANAGERS[manager]
  const lists = [[...own, ...missing(packages)], isTypeScript ? missing(types).map((name) => `${dev} ${name}`) : []]
  const lines = lists.filter(({ length }) => length > 0).map((list) => `${add} ${list.join(' ')}`)
  if (!isRun) return lines
  return lines.filter((line) => {
    note(`$ ${line}`)
    // Windows needs a shell to start package managers. The shell is safe here, because the line contains no user input.
    const isInstalled = spawnSync(line, { shell: true, stdio: ['ignore', 2, 2] }).status === 0
    if (!isInstalled) note(`The packages could not be installed. Run: ${line}`)
    return !isInstalled
  })
}

function printNext(
  framework: Framework,
  { manifest, runner, manager, isTypeScript, isModule }: Project,
  files: readonly string[],
  left: readonly string[],
) {
  const [receiver, test] = files
  const { run, test: runTests } = MANAGERS[manager]
  const isNext = framework === FRAMEWORKS.next
  const check = (path: string) =>
    `Set HOOKLINE_SECRET in another terminal, since the command reads no .env file, and check the endpoint: ${run} hookline check http://localhost:3000${path}`
  const steps = [
    ...left,
    runner === undefined || /--test ./.test(String(manifest.scripts?.test)) ? `node --test ${test}` : runTests,
    `Write your handlers in ${receiver}. The guide: ${GUIDES}/start.md`,
    `Copy ${ENVIRONMENT} to .env, add .env to .gitignore, and enter the shared secret.`,
    ...(framework.isServer ? [`node --env-file=.env ${receiver}`, check('/webhooks')] : []),
    ...(isNext ? ['Start the app.', check('/api/webhooks')] : []),
    ...(framework.isServer || isNext ? [] : [`Serve the receiver: ${GUIDES}/hosts.md`]),
    ...(isTypeScript && !isModule && !isNext
      ? ['Compile with "module": "nodenext" or "preserve": older settings do not find the types.']
      : []),
    framework.isServer
      ? `Before production, uncomment the inbox in ${receiver}: ${GUIDES}/deploy.md`
      : `Before production: ${GUIDES}/deploy.md`,
  ]
  print(`\nNext:\n${steps.map((step) => `  ${step}`).join('\n')}`)
}

const GUIDES = 'https://github.com/hookline/hookline/blob/main/docs'
