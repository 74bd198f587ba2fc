/**
 * `npm run mutate`: proves that the tests of docs/conformance.md notice faults. Puts one fault after the other into a copy of
 * the sources, runs the tests of the rows that it breaks, and expects each to fail. `-- Limits` takes the rows with that text.
 */

import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readRows } from '../conformance/rows.ts'
import { client } from './client.ts'
import { outbound } from './outbound.ts'
import { findRows, type Patch } from './patch.ts'

/** The longest that the tests of a patch may take: a fault may make them wait for ever. */
const TIMEOUT_MS = 60_000

const root = fileURLToPath(new URL('../..', import.meta.url))
const names = readRows()
const wanted = process.argv[2] ?? ''
const patches = [...outbound, ...client].filter((patch) => findRows(patch, names).some((row) => row.includes(wanted)))
if (patches.length === 0)
  throw new Error(`No row matches. Got '${wanted}'. Pass part of a name in docs/conformance.md.`)

const folder = mkdtempSync(join(tmpdir(), 'hookline-mutate-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => process.exit(1))
for (const path of [
  'src',
  'test/conformance',
  'test/mutations',
  'test/support',
  'docs/conformance.md',
  'package.json',
  'tsconfig.json',
]) {
  cpSync(join(root, path), join(folder, path), { recursive: true })
}
symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
writeFileSync(join(folder, 'vitest.config.ts'), 'export default { test: { maxWorkers: 1, testTimeout: 15_000 } }')

const startedAt = Date.now()
const healthy = run([...new Set(patches.flatMap((patch) => findRows(patch, names)))])
const red =
  typeof healthy === 'string' ? [healthy] : [...healthy].flatMap(([row, status]) => (status === 'failed' ? [row] : []))
for (const row of red) print('RED', `without a fault: ${row}`)
const unnoticed = red.length > 0 ? patches : patches.filter((patch) => !tryPatch(patch))

const seconds = Math.round((Date.now() - startedAt) / 1000)
console.log(`\n${patches.length} faults, ${unnoticed.length} not noticed or not tried, ${seconds} s`)
process.exitCode = unnoticed.length === 0 ? 0 : 1

/** Tries a patch and prints a line for each of its rows. Returns whether each test noticed it. */
function tryPatch(patch: Patch): boolean {
  const { fault, file, from, to } = patch
  const path = join(folder, file)
  const original = readFileSync(path, 'utf8')
  const count = original.split(from).length - 1
  if (count !== 1) {
    print('stale', `${fault}: the text to replace must be in ${file} once. Got ${count} times: ${from}`)
    return false
  }
  writeFileSync(
    path,
    original.replace(from, () => to),
  )
  const rows = findRows(patch, names)
  const statuses = run(rows)
  writeFileSync(path, original)
  if (typeof statuses === 'string') {
    print('broken', `${fault}: the patched ${file} must run. Got ${statuses}`)
    return false
  }
  for (const row of rows) print(statuses.get(row) === 'failed' ? 'killed' : 'SURVIVED', `${fault}: ${row}`)
  return rows.every((row) => statuses.get(row) === 'failed')
}

/** Runs the tests of these rows. Returns the status of each, or why there is none: a file that does not load. */
function run(rows: readonly string[]): ReadonlyMap<string, string> | string {
  const report = join(folder, 'report.json')
  rmSync(report, { force: true })
  const files = ['outbound', 'client'].filter((name) => rows.some((row) => row.toLowerCase().startsWith(name)))
  const { error, stderr } = spawnSync(
    process.execPath,
    [
      join(root, 'node_modules/vitest/vitest.mjs'),
      'run',
      ...files.map((name) => `test/conformance/${name}.test.ts`),
      `--testNamePattern=^(${rows.map(escapeRegExp).join('|')})$`,
      '--reporter=json',
      `--outputFile=${report}`,
    ],
    { cwd: folder, encoding: 'utf8', timeout: TIMEOUT_MS, killSignal: 'SIGKILL' },
  )
  if (error !== undefined) return error.message
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as Report
  const unloaded = testResults.find(({ assertionResults }) => assertionResults.length === 0)
  if (unloaded !== undefined) return `${unloaded.message}${stderr}`
  return new Map(
    testResults.flatMap(({ assertionResults }) => assertionResults.map(({ fullName, status }) => [fullName, status])),
  )
}

/** What is used of the report of the test runner. */
interface Report {
  readonly testResults: readonly {
    readonly message: string
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[]
  }[]
}

function escapeRegExp(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
}

function print(result: string, text: string): void {
  console.log(`${result.padEnd(8)}  ${text}`)
}
