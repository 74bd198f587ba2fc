/** Every code block of the README, the guides and the skill, compiled and run. */

import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, describe, expect, test } from 'vitest'
import { needs } from '../support/needs.ts'
import { applyDiff, type Block, extractBlocks, fileName, kindOf, programsOf } from './blocks.ts'
import { createHarness } from './harness.ts'
import { wrong } from './wrong-blocks.ts'

const root = new URL('../../', import.meta.url)
const guides = readdirSync(new URL('docs/', root)).filter((name) => name.endsWith('.md'))
const pages = ['README.md', 'skills/hookline/SKILL.md', ...guides.map((name) => `docs/${name}`)]
const all = pages.flatMap((page) => extractBlocks(page, readFileSync(new URL(page, root), 'utf8')))
/** In tools/command/test/examples.process.test.ts, test/package/guides.test.ts and configs.nightly.test.ts. */
const ELSEWHERE = ['command', 'followed', 'config']
const blocks = all.filter((block) => !ELSEWHERE.includes(kindOf(block)))
const names = new Set(all.flatMap(({ file }) => file ?? []))
const harness = createHarness([...blocks, ...wrong.map(([, block]) => block)], names)

afterAll(() => harness.close())

describe.concurrent('a block', { timeout: 120_000 }, () => {
  for (const block of blocks) {
    test(`${block.place} (${block.language})`, needs(...programsOf(block)), () => harness.check(block))
  }
})

describe.concurrent('the test of a block can fail:', { timeout: 120_000 }, () => {
  for (const [name, block, fault] of wrong) {
    test(`${name} ${fault === undefined ? 'passes' : 'fails'}`, needs(...programsOf(block)), async ({ expect }) => {
      if (fault === undefined) await harness.check(block)
      else await expect(harness.check(block)).rejects.toThrow(fault)
    })
  }
})

describe('blocks', () => {
  test('are found wherever they stand, and may have the name of their file', () => {
    const markdown = 'a\n```ts [queue.ts]\none\n```\n\n- item\n\n  ```json\n  {}\n  ```\n\n````sh\n```\n````\n'

    const found = extractBlocks('a.md', markdown)

    expect(found).toEqual([
      { place: 'a.md:2', language: 'ts', file: 'queue.ts', code: 'one\n' },
      { place: 'a.md:8', language: 'json', code: '{}\n' },
      { place: 'a.md:12', language: 'sh', code: '```\n' },
    ])
    expect(found.map(fileName)).toEqual(['queue.ts', 'a-md-8.json', 'a-md-12.sh'])
    expect(() => extractBlocks('a.md', '```ts\none\n')).toThrow('a.md:1')
  })

  test('that are a diff change one place of a text', () => {
    expect(applyDiff('one\n\ntwo\nthree\n', ' one\n\n-two\n+2\n')).toBe('one\n\n2\nthree\n')
    expect(() => applyDiff('one\none\n', '-one\n+2\n')).toThrow('2 places')
    expect(() => applyDiff('one\n', '-two\n+2\n')).toThrow('0 places')
  })

  test('are tested by their language: one that no test knows is an error', () => {
    const kind = (language: string, place = 'a.md:1') =>
      kindOf({ place, language, code: 'npx hookline --help' } satisfies Block)

    expect([kind('sh'), kind('sh', 'README.md:1'), kind('diff', 'README.md:1')]).toEqual([
      'command',
      'followed',
      'followed',
    ])
    for (const language of ['python', '', 'text']) expect(() => kind(language)).toThrow(`'${language}'`)
  })
})
