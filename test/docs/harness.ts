/** Tests code blocks: writes them into a directory inside the package, type-checks all at once, runs each. */

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Block, fileName, kindOf } from './blocks.ts'
import { type Child, startNode } from './child.ts'
import { checkShell } from './shell.ts'
import { checkCompilerOptions, checkTypes } from './type-check.ts'

/** What every block finds in its environment. */
const SECRET = 'the secret of the docs'

/** A set of blocks, ready to be tested. */
export interface Harness {
  /** @throws Error that says what is wrong with a block of the set. */
  check(block: Block): Promise<void>
  /** Ends what still runs and removes the files. */
  close(): void
}

const root = new URL('../../', import.meta.url)
const runner = fileURLToPath(new URL('run-block.ts', import.meta.url))
const vitest = fileURLToPath(new URL('node_modules/vitest/vitest.mjs', root))

/** Prepares blocks. Their files stand below package.json, so that the package's own name leads to what is built. */
export function createHarness(blocks: readonly Block[]): Harness {
  const cache = fileURLToPath(new URL('.cache/', root))
  mkdirSync(cache, { recursive: true })
  const directory = mkdtempSync(join(cache, 'docs-'))
  const secretFile = join(directory, 'secret')
  writeFileSync(secretFile, `${SECRET}\n`)
  const pathOf = (block: Block): string => join(directory, fileName(block))
  const code = blocks.filter((block) => ['script', 'vitest', 'node:test'].includes(kindOf(block)))
  for (const block of code) writeFileSync(pathOf(block), block.code)
  const children = new Set<Child>()
  let types: Map<string, string[]> | undefined
  let suites: Promise<VitestReport> | undefined

  return {
    async check(block) {
      const kind = kindOf(block)
      if (kind === 'json') return checkJson(block)
      if (kind === 'shell') return refuse(block, checkShell(block.code, SECRET))
      types ??= checkTypes(code.map(pathOf))
      refuse(block, types.get(pathOf(block)) ?? ['not type-checked'])
      if (kind === 'script') return runScript(block)
      if (kind === 'node:test') return runNodeTest(block)
      suites ??= runSuites()
      return findSuite(block, await suites)
    },
    close() {
      for (const child of children) child.kill('SIGKILL')
      rmSync(directory, { recursive: true, force: true })
    },
  }

  async function runScript(block: Block): Promise<void> {
    const output = await run([runner, pathOf(block)], block.place)
    const { tried } = JSON.parse(output.trim().split('\n').at(-1) ?? '') as { tried: string[] }
    for (const [pattern, target] of TARGETS) {
      if (pattern.test(block.code) && !tried.includes(target)) throw new Error(`${block.place}: nobody tried ${target}`)
    }
  }

  async function runNodeTest(block: Block): Promise<void> {
    const output = await run(['--test', '--test-reporter', 'tap', pathOf(block)], block.place)
    if (!/^ {4}ok 1 /m.test(output) && !/^ok 1 /m.test(output))
      throw new Error(`${block.place}: no test ran\n${output}`)
  }

  async function runSuites(): Promise<VitestReport> {
    const file = join(directory, 'report.json')
    await run([vitest, 'run', '--root', directory, '--reporter', 'json', '--outputFile', file], 'the blocks of vitest')
    return JSON.parse(readFileSync(file, 'utf8')) as VitestReport
  }

  function findSuite(block: Block, report: VitestReport): void {
    const suite = report.testResults.find(({ name }) => name.endsWith(fileName(block)))
    const failures = suite?.assertionResults.filter(({ status }) => status !== 'passed') ?? []
    if (suite?.status === 'passed' && suite.assertionResults.length > 0 && failures.length === 0) return
    throw new Error(`${block.place}: ${JSON.stringify(suite ?? 'its tests did not run', undefined, 2)}`)
  }

  async function run(args: readonly string[], place: string): Promise<string> {
    const env = { SHARED_SECRET: SECRET, SHARED_SECRETS: `${SECRET},an older one`, SECRET_FILE: secretFile }
    const child = startNode(args, { env, cwd: directory })
    children.add(child)
    const code = await child.exit
    // Vitest's report says itself which file failed.
    if (code !== 0 && args[0] !== vitest) throw new Error(`${place}: ended with ${code}\n${child.output}`)
    return child.output
  }
}

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

function checkJson(block: Block): void {
  const value = JSON.parse(block.code) as { compilerOptions?: unknown }
  if (value.compilerOptions !== undefined) refuse(block, checkCompilerOptions(value.compilerOptions))
}

function refuse({ place }: Block, faults: readonly string[]): void {
  if (faults.length > 0) throw new Error(`${place}:\n${faults.join('\n')}`)
}
