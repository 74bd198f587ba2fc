/** The report of a check: lines, JSON, the XML of JUnit, exit codes. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'
import { openReport, type ReportOptions, type Result } from '../src/report.ts'
import { createFolder } from './command.ts'

const out = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
vi.spyOn(process.stderr, 'write').mockReturnValue(true)
afterEach(() => {
  out.mockClear()
  process.exitCode = 0
})

const pass: Result = { id: 'one', result: 'pass', sentence: 'Sent <1>.', section: 'Errors', durationMs: 12 }
const hostile = 'Got "x" & \u001b[31m\u0000\ufffe\ud800.'
const warn: Result = { id: 'two', result: 'warn', sentence: hostile, section: 'Limits' }
const fail: Result = { id: 'three', result: 'fail', sentence: 'Got 500.', section: 'Limits' }

function report(results: readonly Result[], options: ReportOptions = {}): string {
  const { add, finish } = openReport(options, results)
  results.forEach(add)
  finish(false)
  return out.mock.calls.map(([text]) => text).join('')
}

it('each result but those that pass or are skipped has a line, with nothing that a terminal obeys', () => {
  const lines = report([pass, warn, { ...pass, result: 'skip' }])
  expect(lines.trim().split('\n')).toEqual([expect.stringContaining('Got "x" & \\u{1b}[31m\\u{0}')])
})

it.each([
  ['all pass', [pass], {}, 0],
  ['one warns', [pass, warn], {}, 0],
  ['one warns, and --strict', [pass, warn], { strict: true }, 1],
  ['one is skipped, and --strict', [pass, { ...pass, result: 'skip' }], { strict: true }, 1],
  ['one fails', [pass, fail], {}, 1],
] as const)('when %s, the exit code says so', (_name, results, options, code) => {
  report(results, options)
  expect(process.exitCode).toBe(code)
})

it('--junit writes valid XML, without the characters that XML forbids', async () => {
  const junit = join(await createFolder(), 'report.xml')
  report([pass, warn, fail, { ...fail, result: 'skip' }], { junit })

  const facts = 'name="hookline check" tests="4" failures="1" errors="0" skipped="1" time="0.012"'
  const [warned, section] = ['Got &#34;x&#34; &#38; \\u{1b}[31m\\u{0}\ufffd.', 'Outbound event delivery, Limits']
  expect(
    readFileSync(junit, 'utf8').replaceAll('<testcase classname="hookline.check" name=', '').split(/\n */),
  ).toEqual([
    ...['<?xml version="1.0" encoding="UTF-8"?>', `<testsuites ${facts}>`, `<testsuite ${facts}>`],
    `"one" time="0.012"><system-out>pass: Sent &#60;1&#62;. (Outbound event delivery, Errors)</system-out></testcase>`,
    `"two" time="0.000"><system-out>warn: ${warned} (${section})</system-out></testcase>`,
    `"three" time="0.000"><failure message="Got 500.">${section}</failure></testcase>`,
    ...['"three" time="0.000"><skipped message="Got 500."/></testcase>', '</testsuite>', '</testsuites>', ''],
  ])
  report([pass, warn], { junit, strict: true })
  expect(readFileSync(junit, 'utf8')).toContain('tests="2" failures="1"')
})
