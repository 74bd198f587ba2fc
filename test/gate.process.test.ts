/** The end of `.ci/run`: what it says of a suite and of a step that go wrong in every way. */

import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { needs } from './support/needs.ts'

const tools = needs('Linux', 'bash', 'awk', 'grep', 'sed')
const root = fileURLToPath(new URL('../', import.meta.url))

const FILES: Readonly<Record<string, string>> = {
  'vitest.config.ts': "export default { test: { name: 'probe' } }",
  'wrong.test.ts': `
    import { beforeAll, describe, expect, test } from 'vitest'
    let [count, inputs] = [0, 0]
    test('passes', () => {})
    test.fails('fails, and must', () => expect(1).toBe(2))
    test('passes at its second attempt', () => expect(++count).toBe(2))
    test('fails with one input only', () => { if (++inputs === 1) throw new Error('Property failed after 1 tests') })
    test('fails', () => { throw new Error('one line\\nand another') })
    test.skip('is skipped', () => {})
    test.todo('is to do')
    describe('without its server', () => {
      beforeAll(() => { throw new Error('no server') })
      test('does not begin', () => {})
    })`,
  'broken.test.ts': `import './not-there.ts'`,
  'stray.test.ts': `
    import { test } from 'vitest'
    test('ends before its error', () => {
      setTimeout(() => { throw new TypeError('too late') })
      return new Promise((resolve) => setTimeout(resolve, 50))
    })`,
}

test('names what failed, what did not run, and what passed only when it ran once more', {
  ...tools,
  timeout: 30_000,
}, () => {
  const steps = 'retried_tests probe; step fine seq 9; step broken sh -c "echo one; echo Error: two >&2; exit 3"'
  const { lines, status } = run(steps)

  expect(lines.slice(-9)).toEqual([
    'FLAKY: probe: wrong.test.ts > passes at its second attempt: AssertionError: expected 1 to be 2 // Object.is equality',
    'FAILED: broken (exit status 3): Error: two',
    expect.stringMatching(/^FAILED: probe: broken\.test\.ts: Error: .*not-there\.ts/),
    'FAILED: probe: wrong.test.ts > without its server: Error: no server',
    'FAILED: probe: wrong.test.ts > fails with one input only: Error: Property failed after 1 tests',
    'FAILED: probe: wrong.test.ts > fails: Error: one line',
    'FAILED: probe: wrong.test.ts: 3 tests skipped, to do, or not begun',
    'FAILED: probe: outside of a test: TypeError: too late',
    '4 passed, 7 failed',
  ])
  expect(status).toBe(1)
  const passed = expect.stringMatching(/^── fine: passed after \d+ s$/)
  expect(lines).toEqual(expect.arrayContaining(['   and another', passed, '   9', '   one']))
  expect(lines).not.toContain('   5') // Of what passes, the last lines are enough.
})

test('passes when nothing failed', tools, () => {
  const { lines, status } = run(
    'note probe "PASSED: 3"; note probe "FLAKY: a test"; note other "PASSED: 2"; step fine true',
  )

  expect(lines.slice(-2)).toEqual(['FLAKY: a test', '5 passed, 0 failed'])
  expect(status).toBe(0)
})

function run(steps: string): { readonly lines: readonly string[]; readonly status: number | null } {
  mkdirSync(join(root, '.cache'), { recursive: true })
  const folder = mkdtempSync(join(root, '.cache/gate-'))
  onTestFinished(() => rm(folder, { recursive: true, maxRetries: 9 }))
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text)
  const script = `set -u -o pipefail; exec 2>&1; export NO_COLOR=1; . ${root}.ci/steps; ${steps}; finish`
  const { stdout, status } = spawnSync('bash', ['-c', script], { cwd: folder, encoding: 'utf8' })
  return { lines: stdout.trimEnd().split('\n'), status }
}
