/** The tables of errors in the guides, held against the one in the code. */

import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const statuses = new Map(
  [...read('src/protocol/error-codes.ts').matchAll(/^ {2}(\w+): (\d{3}),$/gm)].map(([, code = '', status]) => [
    code,
    status,
  ]),
)

test('the table in the code is found', () => {
  expect(statuses.size).toBeGreaterThan(15)
  expect(statuses.get('signature_mismatch')).toBe('401')
})

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

const pages: Readonly<Record<string, (code: string) => boolean>> = {
  'docs/collector.md': (code) => !RECEIVING.test(code) && !REPORTED.includes(code),
  'docs/errors.md': (code) => !COLLECTING.includes(code) && !REPORTED.includes(code),
}

test.each(Object.entries(pages))('%s lists every code that is its own with its status, once', (page, isItsOwn) => {
  const rows = [...read(page).matchAll(/^\| (\d{3}) \| ((?:`\w+`(?:, )?)+) \|/gm)]
  const listed = rows.flatMap(([, status, codes = '']) =>
    [...codes.matchAll(/`(\w+)`/g)].map(([, code = '']): [string, string | undefined] => [code, status]),
  )

  expect(listed.sort()).toEqual([...statuses].filter(([code]) => isItsOwn(code)).sort())
})

test('docs/signatures.md lists every cause of a signature that does not match, once', () => {
  const codes = [...read('src/protocol/explain/causes.ts').matchAll(/^ {2}(\w+):/gm)].map(([, code]) => code)
  const rows = [...read('docs/signatures.md').matchAll(/^\| ((?:`\w+`(?:, )?)+) \|/gm)].map(([, listed = '']) => listed)
  const listed = rows.flatMap((row) => [...row.matchAll(/`(\w+)`/g)].map(([, code = '']) => code))
  const verdicts = ['matches', 'explained', 'unexplained']

  expect(codes.length).toBeGreaterThan(40)
  expect(listed.sort()).toEqual([...codes, ...verdicts].sort())
})

function read(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
}
