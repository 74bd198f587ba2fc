/** Every code that a user may see is in the table of its guide: of errors, of signatures that do not match, of warnings. */

import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { STATUS } from '../../src/protocol/error-codes.ts'
import { warningCodes } from './names.ts'

const COLLECTING = [
  'content_encoding_invalid',
  'write_key_missing',
  'write_key_unknown',
  'call_invalid',
  'call_too_large',
  'too_many_refused',
  'queue_full',
  'queue_unavailable',
]

/** What is reported of work in the background, and never answered. */
const REPORTED = ['lease_lapsed']

const RECEIVING = /^(signature|header|secret|source|schema|handler|inbox|duplicate|dedupe|batch)_|^message_invalid$/

test.each<[string, (code: string) => boolean]>([
  ['docs/collector.md', (code) => !RECEIVING.test(code)],
  ['docs/errors.md', (code) => !COLLECTING.includes(code)],
])('%s lists every code that is its own with its status, once', (page, isItsOwn) => {
  const rows = [...read(page).matchAll(/^\| (\d{3}) \| ((?:`\w+`(?:, )?)+) \|/gm)]
  const listed = rows.flatMap(([, status, codes = '']) => codesOf(codes).map((code) => [code, Number(status)]))
  const own = Object.entries(STATUS).filter(([code]) => isItsOwn(code) && !REPORTED.includes(code))

  expect(listed.sort()).toEqual(own.sort())
})

test('docs/signatures.md lists every cause of a signature that does not match, once', () => {
  const rows = [...read('docs/signatures.md').matchAll(/^\| ((?:`\w+`(?:, )?)+) \|/gm)]
  const listed = rows.flatMap(([, codes = '']) => codesOf(codes))
  const causes = [...read('src/protocol/explain/causes.ts').matchAll(/^ {2}(\w+):/gm)].map(([, code]) => code)
  expect(listed.sort()).toEqual([...causes, 'matches', 'explained', 'unexplained'].sort())
})

test('docs/errors.md leads to the codes of collectors, and has a row for each warning of the process', () => {
  const page = read('docs/errors.md')
  const rows = [...page.matchAll(/^\| (`HOOKLINE_.+?`) \|/gm)].flatMap(([, codes = '']) => codesOf(codes))
  expect(page).toContain('](collector.md#errors)')
  expect(rows.sort()).toEqual(warningCodes())
})

function codesOf(text: string): string[] {
  return [...text.matchAll(/`(\w+)`/g)].map(([, code = '']) => code)
}

function read(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
}
