/** docs/conformance.md and the tests of this folder name the same rows, in both directions. */

import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { readRows } from './rows.ts'

const folder = new URL('./', import.meta.url)
const tested = readdirSync(folder)
  .filter((name) => name.endsWith('.test.ts'))
  .flatMap((name) => [...read(new URL(name, folder)).matchAll(/^test\(\s*'((?:Outbound|Client) · [^']+)'/gm)])
  .map(([, name = '']) => name)
const listed = readRows()

test('both name something, and nothing twice', () => {
  expect(tested.length).toBeGreaterThan(90)
  expect(new Set(tested).size).toBe(tested.length)
  expect(new Set(listed).size).toBe(listed.length)
})

test('every row of the list has its test, and every test its row', () => {
  expect([...listed].sort()).toEqual([...tested].sort())
})

test('no row is skipped or left to do', () => {
  for (const name of readdirSync(folder)) {
    if (name !== 'list.test.ts')
      expect(read(new URL(name, folder))).not.toMatch(/\b(test|it|describe)\.(skip|todo|only|fails|runIf|skipIf)/)
  }
})

function read(url: URL): string {
  return readFileSync(url, 'utf8')
}
