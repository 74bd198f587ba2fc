/**
 * Run as a program: proves that the tests of docs/conformance.md notice faults. Puts one fault after the other into a copy of the
 * sources, runs the tests of the rows that it breaks, and expects each to fail. `run.ts Limits` takes the rows with that text.
 */

import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createVitest } from 'vitest/node'
import { readRows } from '../conformance/rows.ts'
import { client } from './client.ts'
import { outbound } from './outbound.ts'
import { findRows, type Patch } from './patch.ts'

/** The longest that the tests of a patch may take: a fault may keep their thread busy for ever. */
const TIMEOUT_MS = 60_000

const root = fileURLToPath(new URL('../..', import.meta.url))
const names = readRows()
const wanted = process.argv[2] ?? ''
const patches = [...outbound, ...client].filter((patch) => findRows(patch, names).some((row) => row.includes(wanted)))
if (patches.length === 0)
  throw new Error(`No row matches. Got '${wanted}'. Pass part of a name in docs/conformance.md.`)

const folder = copySources()
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => process.exit(1))

// One test runner for all faults: it transforms again only what changed.
const runner = await createVitest('test', {
  root: folder,
  config: false,
  watch: false,
  reporters: [{}],
  maxWorkers: 1,
  testTimeout: 15_000,
})
const startedAt = Date.now()
const healthy = await run([...new Set(patches.flatMap((patch) => findRows(patch, names)))])
const red =
  typeof healthy === 'string' ? [healthy] : [...healthy].flatMap(([row, state]) => (state === 'failed' ? [row] : []))
for (const row of red) print('RED', `without a fault: ${row}`)
let noticed = 0
if (red.length === 0) {
  for (const patch of patches) if (await tryPatch(patch)) noticed += 1
}
await runner.close()

const seconds = Math.round((Date.now() - startedAt) / 1000)
console.log(`\n${patches.length} faults, ${patches.length - noticed} not noticed or not tried, ${seconds} s`)
process.exit(noticed === patches.length ? 0 : 1)

function copySources(): string {
  const copy = mkdtempSync(join(tmpdir(), 'hookline-mutate-'))
  for (const path of ['src', 'test/conformance', 'test/mutations', 'test/support', 'docs/conformance.md']) {
    cpSync(join(root, path), join(copy, path), { recursive: true })
  }
  for (const path of ['package.json', 'tsconfig.json']) cpSync(join(root, path), join(copy, path))
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  return copy
}

async function tryPatch(patch: Patch): Promise<boolean> {
  const { fault, file, from, to } = patch
  const path = join(folder, file)
  const original = existsSync(path) ? readFileSync(path, 'utf8') : ''
  const count = original.split(from).length - 1
  if (count !== 1) {
    print('stale', `${fault}: the text to replace must be in ${file} once. Got ${count} times: ${from}`)
    return false
  }
  const write = (text: string): void => {
    writeFileSync(path, text)
    runner.invalidateFile(path)
  }
  write(original.replace(from, () => to))
  const rows = findRows(patch, names)
  const states = await run(rows)
  write(original)
  if (typeof states === 'string') {
    print('broken', `${fault}: the patched ${file} must run. Got ${states}`)
    return false
  }
  for (const row of rows) print(states.get(row) === 'failed' ? 'killed' : 'SURVIVED', `${fault}: ${row}`)
  return rows.every((row) => states.get(row) === 'failed')
}

/** Runs the tests of these rows. Returns the state of each, or why there is none: a file that does not load. */
async function run(rows: readonly string[]): Promise<ReadonlyMap<string, string> | string> {
  const files = ['outbound', 'client'].filter((name) => rows.some((row) => row.toLowerCase().startsWith(name)))
  const project = runner.getRootProject()
  const tests = files.map((name) => project.createSpecification(join(folder, `test/conformance/${name}.test.ts`)))
  const late = setTimeout(() => {
    print('broken', `The tests must end within ${TIMEOUT_MS} ms. Got no end of: ${rows.join(', ')}`)
    process.exit(1)
  }, TIMEOUT_MS)
  runner.setGlobalTestNamePattern(new RegExp(`^(${rows.map(escapeRegExp).join('|')})$`))
  const { testModules } = await runner.runTestSpecifications(tests)
  clearTimeout(late)
  const unloaded = testModules.flatMap((module) => module.errors())[0]
  if (unloaded !== undefined) return unloaded.message
  return new Map(
    testModules.flatMap(({ children }) =>
      [...children.allTests()].map((test) => [test.fullName, test.result().state] as const),
    ),
  )
}

function escapeRegExp(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
}

function print(result: 'killed' | 'SURVIVED' | 'RED' | 'broken' | 'stale', text: string): void {
  console.log(`${result === 'killed' ? '' : 'ERROR: '}${result.padEnd(8)}  ${text}`)
}
