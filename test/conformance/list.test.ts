/** Each row of docs/specification.md names the test that proves it. */

import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const root = new URL('../../', import.meta.url)
const page = read('docs/specification.md')
const rows = page.split(/^### /m).flatMap((section) =>
  [...section.matchAll(/^\| (.+?) \| (`\S+\.test\.ts` · .+) \|$/gm)].map(([, rule, cell = '']) => ({
    rule: `${section.split('\n', 1)} · ${rule}`,
    tests: cell.split('<br>').map((text) => text.replace('`', 'test/').split('` · ') as [path: string, title: string]),
  })),
)

test('both parts have their rows, each once', () => {
  const listed = page.split('## Outbound event delivery')[1]?.match(/^\| (?!rule |-)/gm) ?? []
  expect(rows.length).toBeGreaterThan(60)
  expect(rows).toHaveLength(listed.length)
  expect(new Set(rows.map(({ rule }) => rule)).size).toBe(rows.length)
})

test('the test of each row exists', () => {
  const missing = rows
    .flatMap(({ tests }) => tests)
    .filter(([path, title]) => {
      const source = existsSync(new URL(path, root)) ? read(path) : ''
      return !["'", '"', '`'].some((quote) => source.includes(`${quote}${title}${quote}`))
    })

  expect(missing).toEqual([])
})

function read(path: string): string {
  return readFileSync(new URL(path, root), 'utf8')
}
