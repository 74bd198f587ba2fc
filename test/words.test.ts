/** Plain words: what docs, comments, errors and file sizes must not hold. */

import { globSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
const sources = globSync(['src/**/*.{ts,tsx}', 'adapters/**/*.ts'], { cwd: root })
const pages = globSync(['*.md', 'docs/*.md', 'bench/*.md', 'examples/**/*.ts'], { cwd: root })

const WORDS = /there is none|\bsomebody\b|\bnobody\b|\bsays no\b|what came of|as it should|\bpatience\b|\btold\b/gi

describe('plain words', () => {
  it.each([...sources, ...pages].sort())('%s', (path) => {
    expect(readFileSync(`${root}${path}`, 'utf8').match(WORDS) ?? []).toEqual([])
  })
})

describe('sizes that a reader can hold', () => {
  it('no file of the sources has more than 200 lines', () => {
    const lengths = sources.map((path) => ({
      path,
      lines: readFileSync(`${root}${path}`, 'utf8').split('\n').length - 1,
    }))
    expect(lengths.filter(({ lines }) => lines > 200)).toEqual([])
  })

  it('no folder of the sources has more than 15 files', () => {
    const folders = Object.groupBy(sources, (path) => dirname(path))
    const sizes = Object.entries(folders).map(([folder, files = []]) => ({ folder, files: files.length }))
    expect(sizes.filter(({ files }) => files > 15)).toEqual([])
  })
})
