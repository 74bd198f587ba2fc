/** Tests code blocks: writes them into a directory inside the package, type-checks all at once, runs each. */

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Block, fileName, kindOf } from './blocks.ts'
import { type Child, startNode } from './child.ts'
import { checkCompilerOptions } from './compiler-options.ts'
import type { BlockResult } from './run-blocks.ts'
import { checkShell } from './shell.ts'

/** A set of blocks, ready to be tested. */
export interface Harness {
  /** @throws Error (as a rejection) that says what is wrong with a block of the set. */
  check(block: Block): Promise<void>
  /** Ends what still runs and removes the files. */
  close(): void
}

/** What every block finds in its environment. */
const SECRET = 'the secret of the docs'

const root = new URL('../../', import.meta.url)
const cache = fileURLToPath(new URL('.cache/', root))
const vitest = fileURLToPath(new URL('node_modules/vitest/vitest.mjs', root))
const typeCheck = fileURLToPath(new URL('type-check.ts', import.meta.url))
const runBlocks = fileURLToPath(new URL('run-blocks.ts', import.meta.url))

/** Prepares blocks. Their files stand below package.json, so that the package's own name leads to what is built. */
export function createHarness(blocks: readonly Block[]): Harness {
  const code = blocks.filter((block) => ['script', 'vitest', 'node:test'].includes(kindOf(block)))
  mkdirSync(cache, { recursive: true })
  const directory = mkdtempSync(join(cache, 'docs-'))
  const pathOf = (block: Block): string => join(directory, fileName(block))
  for (const block of code) writeFileSync(pathOf(block), block.code)
  const env = {
    SHARED_SECRET: SECRET,
    SHARED_SECRETS: `${SECRET},an older one`,
    SECRET_FILE: join(directory, 'secret'),
  }
  writeFileSync(env.SECRET_FILE, `${SECRET}\n`)
  const children = new Set<Child>()
  let started: ReturnType<typeof start> | undefined

  return {
    async check(block) {
      const kind = kindOf(block)
      if (kind === 'json') return checkJson(block)
      if (kind === 'example') return checkExample(block)
      if (kind === 'shell') return refuse(block, checkShell(block.code, SECRET))
      started ??= start()
      const types = await started.types
      refuse(block, types[pathOf(block)] ?? ['not type-checked'])
      await started.runs.get(block)
    },
    close() {
      for (const child of children) child.kill('SIGKILL')
      rmSync(directory, { recursive: true, force: true })
    },
  }

  /** Starts everything, so that the compiler and the blocks share the time. */
  function start() {
    const types = run([typeCheck, ...code.map(pathOf)]).then((json) => JSON.parse(json) as Types)
    const scripts = runScripts(code.filter((block) => kindOf(block) === 'script').map(pathOf))
    const suites = code.some((block) => kindOf(block) === 'vitest') ? runSuites() : undefined
    const runs = new Map(code.map((block) => [block, execute(block, scripts, suites)]))
    for (const each of [types, scripts, suites, ...runs.values()]) each?.catch(() => {}) // Whoever checks hears of it.
    return { types, runs }
  }

  async function execute(block: Block, scripts: Promise<Results>, suites?: Promise<VitestReport>): Promise<void> {
    const kind = kindOf(block)
    if (kind === 'vitest') return findSuite(block, await suites)
    if (kind === 'node:test') {
      const output = await run(['--test', '--test-reporter', 'tap', pathOf(block)])
      return refuse(block, /^ *ok 1 /m.test(output) ? [] : ['no test ran', output])
    }
    const result = (await scripts)[pathOf(block)] ?? { error: 'it did not run' }
    if ('error' in result) return refuse(block, [result.error])
    const missed = TARGETS.filter(([pattern, target]) => pattern.test(block.code) && !result.tried.includes(target))
    refuse(
      block,
      missed.map(([, target]) => `nobody tried ${target}`),
    )
  }

  /** All in one process: starting one costs more than most blocks do. */
  async function runScripts(paths: readonly string[]): Promise<Results> {
    const report = join(directory, 'scripts.json')
    await run([runBlocks, report, ...paths])
    return JSON.parse(readFileSync(report, 'utf8')) as Results
  }

  async function runSuites(): Promise<VitestReport> {
    const file = join(directory, 'suites.json')
    const options = ['--no-isolate', '--maxWorkers=1', '--testTimeout=30000', '--reporter=json']
    const failed = await run([vitest, 'run', '--root', directory, ...options, '--outputFile', file]).then(
      () => undefined,
      (error: unknown) => error,
    )
    try {
      return JSON.parse(readFileSync(file, 'utf8')) as VitestReport
    } catch (cause) {
      throw failed ?? cause
    }
  }

  function findSuite(block: Block, report: VitestReport | undefined): void {
    const suite = report?.testResults.find(({ name }) => name.endsWith(fileName(block)))
    const tests = suite?.assertionResults ?? []
    if (tests.length > 0 && tests.every(({ status }) => status === 'passed') && suite?.status === 'passed') return
    refuse(block, [JSON.stringify(suite ?? 'its tests did not run', undefined, 2)])
  }

  /** @returns What it printed. @throws Error (as a rejection) with what it printed when it fails. */
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
  [/\.listen\(/, 'listen'],
  [/\bexport const POST\b/, 'POST'],
  [/\bexport default app\b/, 'fetch'],
  [/\bexport (const|async function|function) handler\b/, 'handler'],
]

interface VitestReport {
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly assertionResults: readonly { readonly status: string }[]
  }[]
}

/** A block with the path of an example is that file, which a test of its own builds and starts. */
function checkExample(block: Block): void {
  const { file = '', code } = block
  refuse(block, readFileSync(new URL(file, root), 'utf8') === code ? [] : [`it is not ${file}`])
}

function checkJson(block: Block): void {
  const value = JSON.parse(block.code) as { compilerOptions?: unknown }
  if (value.compilerOptions !== undefined) refuse(block, checkCompilerOptions(value.compilerOptions))
}

function refuse({ place }: Block, faults: readonly string[]): void {
  if (faults.length > 0) throw new Error(`${place}:\n${faults.join('\n')}`)
}
