/** Tests code blocks: writes them into a directory inside the package, type-checks all at once, runs each. */

import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Block, fileName, kindOf } from './blocks.ts'
import { type Child, startNode } from './child.ts'
import type { BlockResult } from './run-blocks.ts'

export interface Harness {
  /** @throws Error (as a rejection) that says what is wrong with a block of the set. */
  check(block: Block): Promise<void>
  close(): void
}

const SECRET = 'the secret of the docs'

const root = new URL('../../', import.meta.url)
const cache = fileURLToPath(new URL('.cache/', root))
const vitest = fileURLToPath(new URL('node_modules/vitest/vitest.mjs', root))
const typeCheck = fileURLToPath(new URL('type-check.ts', import.meta.url))
const runBlocks = fileURLToPath(new URL('run-blocks.ts', import.meta.url))

/** Prepares blocks. Their files stand below package.json, so that the package's own name leads to what is built. */
export function createHarness(blocks: readonly Block[]): Harness {
  mkdirSync(cache, { recursive: true })
  const directory = mkdtempSync(join(cache, 'docs-'))
  const pathOf = (block: Block): string => join(directory, fileName(block))
  const pathsOf = (...kinds: readonly string[]) => blocks.filter((block) => kinds.includes(kindOf(block))).map(pathOf)
  for (const block of blocks.filter((each) => kindOf(each) !== 'example')) {
    mkdirSync(dirname(pathOf(block)), { recursive: true })
    writeFileSync(pathOf(block), block.code)
  }
  const env = {
    HOOKLINE_SECRET: SECRET,
    HOOKLINE_SECRETS: `${SECRET},an older one`,
    GITHUB_SECRET: SECRET,
    STANDARD_SECRET: `whsec_${btoa(SECRET)}`,
    SECRET_FILE: join(directory, 'secret'),
  }
  writeFileSync(env.SECRET_FILE, `${SECRET}\n`)
  const children = new Set<Child>()
  let started: ReturnType<typeof start> | undefined

  return {
    async check(block) {
      const kind = kindOf(block)
      if (kind === 'example') return checkExample(block)
      if (kind === 'shell') return checkShell(block)
      if (kind === 'json') return void JSON.parse(block.code)
      started ??= start()
      refuse(block, (await started.types)[pathOf(block)] ?? ['not type-checked'])
      if (kind === 'script') return checkScript(block, (await started.scripts)[pathOf(block)])
      if (kind === 'vitest') await started.suites
      if (kind === 'node:test') await run(['--test', '--test-reporter', 'tap', pathOf(block)])
    },
    close() {
      for (const child of children) child.kill('SIGKILL')
      rmSync(directory, { recursive: true, force: true, maxRetries: 9 })
    },
  }

  /** Runs one after the other: beside a compiler, the waits of a suite may end too early on a busy machine. */
  function start() {
    const types = run([typeCheck, ...pathsOf('script', 'vitest', 'node:test')]).then(
      (json) => JSON.parse(json) as Types,
    )
    const scripts = types.then(() => runScripts(pathsOf('script')))
    const suites = scripts.then(runSuites)
    for (const each of [types, scripts, suites]) each.catch(() => {}) // Whoever checks hears of it.
    return { types, scripts, suites }
  }

  async function runScripts(paths: readonly string[]): Promise<Results> {
    const report = join(directory, 'scripts-report')
    await run([runBlocks, report, ...paths])
    return JSON.parse(readFileSync(report, 'utf8')) as Results
  }

  async function runSuites(): Promise<void> {
    const options = ['--no-isolate', '--maxWorkers=1', '--testTimeout=30000']
    await run([vitest, 'run', '--root', directory, ...options])
  }

  /** Resolves to what it printed, and rejects with that when it fails. */
  async function run(args: readonly string[]): Promise<string> {
    const child = startNode(args, { env, cwd: directory })
    children.add(child)
    const code = await child.exit
    children.delete(child)
    if (code !== 0) throw new Error(`${args.at(-1)} ended with ${code}\n${child.output}`)
    return child.stdout
  }
}

type Results = Readonly<Record<string, BlockResult>>

type Types = Readonly<Record<string, readonly string[]>>

/** What a block that reads like this must have been tried as. */
const TARGETS: readonly (readonly [RegExp, string])[] = [
  [/^(?!.*\binspector\.handler\b).*(?<!\binspector)\.listen\(/s, 'listen'],
  [/\binspector\.(handler|listen)\b/, 'page'],
  [/\bexport const POST\b/, 'POST'],
  [/\bexport default app\b/, 'fetch'],
  [/\bexport (const|async function|function) handler\b/, 'handler'],
]

function checkExample(block: Block): void {
  const { file = '', code } = block
  refuse(block, readFileSync(new URL(file, root), 'utf8') === code ? [] : [`it is not ${file}`])
}

function checkScript(block: Block, result: BlockResult = { error: 'it did not run' }): void {
  const { tried } = 'tried' in result ? result : { tried: [] }
  const missed = TARGETS.filter(([pattern, target]) => pattern.test(block.code) && !tried.includes(target))
  refuse(block, 'error' in result ? [result.error] : missed.map(([, target]) => `nothing called ${target}`))
}

function checkShell(block: Block): void {
  const { stderr } = spawnSync('sh', ['-n'], { input: block.code, encoding: 'utf8' })
  refuse(block, stderr === '' ? [] : [stderr])
}

function refuse({ place }: Block, faults: readonly string[]): void {
  if (faults.length > 0) throw new Error(`${place}:\n${faults.join('\n')}`)
}
