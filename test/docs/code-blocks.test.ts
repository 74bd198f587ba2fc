/** Every code block of the README and the guides, compiled and run. */

import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, expect, test } from 'vitest'
import { extractBlocks, kindOf } from './blocks.ts'
import { createHarness } from './harness.ts'

const root = new URL('../../', import.meta.url)
const guides = readdirSync(new URL('docs/', root)).filter((name) => name.endsWith('.md'))
const pages = ['README.md', ...guides.map((name) => `docs/${name}`)]
const blocks = pages.flatMap((page) => extractBlocks(page, readFileSync(new URL(page, root), 'utf8')))
const harness = createHarness(blocks)

afterAll(() => harness.close())

/** Pages that explain and show no code. */
const WITHOUT_BLOCKS = ['docs/architecture.md', 'docs/checks.md', 'docs/index.md', 'docs/security.md']

test('the README and every guide that shows code has blocks', () => {
  const withBlocks = new Set(blocks.map(({ place }) => place.split(':')[0]))

  expect([...withBlocks].sort()).toEqual(pages.filter((page) => !WITHOUT_BLOCKS.includes(page)).sort())
})

for (const block of blocks.filter((each) => kindOf(each) !== 'command')) {
  test.concurrent(`${block.place} (${block.language})`, { timeout: 120_000 }, () => harness.check(block))
}
