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
const ELSEWHERE = ['command', 'followed'] // In tools/command/test/examples.test.ts and test/package/guides.test.ts.
const blocks = all.filter((block) => !ELSEWHERE.includes(kindOf(block)))
const harness = createHarness([...blocks, ...wrong.map(([, block]) => block)])

afterAll(() => harness.close())

/** Pages that explain and show no code. */
const WITHOUT_BLOCKS = ['architecture', 'checks', 'compare', 'index', 'security'].map((name) => `docs/${name}.md`)

test('the README, the skill and every guide that shows code has blocks', () => {
  const withBlocks = new Set(all.map(({ place }) => place.split(':')[0]))

  expect([...withBlocks].sort()).toEqual(pages.filter((page) => !WITHOUT_BLOCKS.includes(page)).sort())
})

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
  test('are found wherever they stand', () => {
    const markdown = 'a\n```ts\none\n```\n\n- item\n\n  ```json\n  {}\n  ```\n\n````sh\n```\n````\n'

    expect(extractBlocks('a.md', markdown)).toEqual([
      { place: 'a.md:2', language: 'ts', code: 'one\n' },
      { place: 'a.md:8', language: 'json', code: '{}\n' },
      { place: 'a.md:12', language: 'sh', code: '```\n' },
    ])
  })

  test('may have the name of their file, for other blocks to import', () => {
    const [named] = extractBlocks('a.md', '```ts [queue.ts]\none\n```\n')
    expect(named).toEqual({ place: 'a.md:1', language: 'ts', file: 'queue.ts', code: 'one\n' })
    expect(fileName(named as Block)).toBe('queue.ts')
  })

  test('become files that are not one another', () => {
    const places = ['docs/a.md:1', 'docs/a.md:11', 'README.md:1']
    expect(new Set(places.map((place) => fileName({ place, language: 'ts', code: '' }))).size).toBe(3)
  })

  test('that are a diff change one place of a text', () => {
    expect(applyDiff('one\n\ntwo\nthree\n', ' one\n\n-two\n+2\n')).toBe('one\n\n2\nthree\n')
    expect(() => applyDiff('one\none\n', '-one\n+2\n')).toThrow('the diff fits 2 places')
    expect(() => applyDiff('one\n', '-two\n+2\n')).toThrow('the diff fits 0 places')
  })

  test('must be closed, and in a language that is tested', () => {
    expect(() => extractBlocks('a.md', '```ts\none\n')).toThrow('a.md:1: this block is not closed')
    for (const language of ['python', '']) {
      expect(() => kindOf({ place: 'a.md:1', language, code: '' })).toThrow(`no test knows blocks in '${language}'`)
    }
  })

  test('that run the command are for the command', () => {
    expect(kindOf({ place: 'a.md:1', language: 'sh', code: 'npx hookline --help' })).toBe('command')
  })

  test('that show commands, output or a diff in a guide are followed, and shown nowhere else', () => {
    for (const language of ['sh', 'text', 'diff']) {
      expect(kindOf({ place: 'README.md:1', language, code: 'npx hookline --help' })).toBe('followed')
    }
    expect(() => kindOf({ place: 'a.md:1', language: 'text', code: '' })).toThrow("no test knows blocks in 'text'")
  })
})
