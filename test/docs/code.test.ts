/** Every code block of the README, the guides and the skill, compiled and run. */

import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, describe, test } from 'vitest'
import { needs } from '../support/needs.ts'
import { type Block, extractBlocks, kindOf, programsOf } from './blocks.ts'
import { createHarness } from './harness.ts'

const root = new URL('../../', import.meta.url)
const guides = readdirSync(new URL('docs/', root)).filter((name) => name.endsWith('.md'))
const pages = ['README.md', 'skills/hookline/SKILL.md', ...guides.map((name) => `docs/${name}`)]
const all = pages.flatMap((page) => extractBlocks(page, readFileSync(new URL(page, root), 'utf8')))
/** In tools/command/test/examples.process.test.ts, test/package/guides.test.ts and deploy.nightly.test.ts. */
const ELSEWHERE = ['command', 'followed', 'config']
const blocks = all.filter((block) => !ELSEWHERE.includes(kindOf(block)))

const wrong: readonly (readonly [string, Block, RegExp])[] = [
  ['verifies nothing', blockOf('export const handler = async () => ({ statusCode: 200 })'), /wrong statuses/],
  ['has a wrong type', blockOf("import { sign } from 'hookline'\nsign(1, 2)"), /type 'number'/],
]
const harness = createHarness([...blocks, ...wrong.map(([, block]) => block)])

afterAll(() => harness.close())

describe.concurrent('a block', { timeout: 120_000 }, () => {
  for (const block of blocks) {
    test(`${block.place} (${block.language})`, needs(...programsOf(block)), () => harness.check(block))
  }

  test.for(wrong)('that %s is refused', async ([, block, fault], { expect }) => {
    await expect(harness.check(block)).rejects.toThrow(fault)
  })
})

function blockOf(code: string): Block {
  return { place: `wrong.md:${code.length}`, language: 'ts', code }
}
