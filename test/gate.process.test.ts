/** The end of `.ci/run`: what it says of a suite and of a step that go wrong in every way. */

import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished, test } from 'vitest'
import { needs } from './support/needs.ts'

const tools = needs('Linux', 'bash', 'awk', 'grep', 'sed')
const root = fileURLToPath(new URL('../', import.meta.url))

const FILES: Readonly<Record<string, string>> = {
  'vitest.config.ts': "export default { test: { name: 'probe' } }",
  'wrong.test.ts': `
    import { beforeAll, describe, expect, test } from 'vitest'
    let count = 0
    test('passes', () => {})
    test.fails('fails, and must', () => expect(1).toBe(2))
    test('passes at its second attempt', () => expect(++count).toBe(2))
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

test('names what failed, what did not run, what took too long, and what passed only when it ran once more', {
  ...tools,
  timeout: 60_000,
}, () => {
  const steps = [
    'tests probe 60',
    'step fine 60 seq 9',
    'step broken 60 sh -c "echo one; echo Error: two >&2; exit 3"',
    'step slow 1 sleep 60',
  ]

  const { lines, status } = run(steps.join('; '))

  expect(lines.slice(-9)).toEqual([
    'FAILED: broken (exit status 3): Error: two',
    expect.stringMatching(/^FAILED: only at its second attempt passed probe: wrong\.test\.ts > passes at its second/),
    expect.stringMatching(/^FAILED: probe: broken\.test\.ts: Error: .*not-there\.ts/),
    'FAILED: probe: wrong.test.ts > without its server: Error: no server',
    'FAILED: probe: wrong.test.ts > fails: Error: one line',
    'FAILED: probe: wrong.test.ts: 3 tests skipped, to do, or not begun',
    'FAILED: probe: outside of a test: TypeError: too late',
    'FAILED: slow: it did not end in its time',
    '4 passed, 8 failed',
  ])
  expect(status).toBe(1)
  const passed = expect.stringMatching(/^── fine: passed after \d+ s$/)
  expect(lines).toEqual(expect.arrayContaining(['   and another', passed, '── fine: at most 60 s', '   9', '   one']))
  expect(lines).not.toContain('   5') // The last lines of what passes are enough.
})

describe('a test that passes at its second attempt only', tools, () => {
  const fromNow = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10)

  it.each([
    ['passes while it is named, with a day and a reason', `${fromNow(-13)} | a test | a reason`, 'FLAKY: a test'],
    ['fails it two weeks later', `${fromNow(-15)} | a test | a reason`, 'FAILED: only'],
    ['fails it without a reason', `${fromNow(0)} | a test`, 'FAILED: only'],
    ['fails it under another name', `${fromNow(0)} | another test | a reason`, 'FAILED: only'],
  ])('%s', (_rule, known, said) => {
    const { lines, status } = run(
      `echo "${known}" > known; flaky=known; note probe "PASSED: 3"; note probe "FLAKY: a test"; note other "PASSED: 2"; step fine 60 true`,
    )

    expect(lines.at(-2)).toMatch(said)
    expect(status).toBe(said.startsWith('FLAKY') ? 0 : 1)
  })
})

test('fails when nothing ran', tools, () => {
  const { lines, status } = run('step fine 60 true')
  expect(lines.at(-1)).toBe('0 passed, 0 failed')
  expect(status).toBe(1)
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
