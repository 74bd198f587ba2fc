/** The tables of errors in the README and the guide, held against the one in the code. */

import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const statuses = new Map(
  [...read('src/protocol/error.ts').matchAll(/^ {2}(\w+): (\d{3}),$/gm)].map(([, code = '', status]) => [code, status]),
)

test('the table in the code is found', () => {
  expect(statuses.size).toBeGreaterThan(15)
  expect(statuses.get('signature_mismatch')).toBe('401')
})

for (const page of ['README.md', 'docs/errors.md']) {
  test(`${page} lists every code with its status, once`, () => {
    const rows = [...read(page).matchAll(/^\| (\d{3}) \| ((?:`\w+`(?:, )?)+) \|/gm)]
    const listed = rows.flatMap(([, status, codes = '']) =>
      [...codes.matchAll(/`(\w+)`/g)].map(([, code = '']): [string, string | undefined] => [code, status]),
    )

    expect(listed.sort()).toEqual([...statuses].sort())
  })
}

function read(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
}
