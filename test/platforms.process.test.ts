/** The names and line ends of the files of the repository, which every system has to take. */

import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { needs } from './support/needs.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

describe('the files of the repository', needs('git'), () => {
  /** The line ends that git has of each, and its attributes. */
  function listFiles() {
    const lines = execFileSync('git', ['ls-files', '--eol', '-z'], { cwd: root, encoding: 'utf8' }).split('\0')
    return lines.filter(Boolean).map((line) => {
      const [facts = '', path = ''] = line.split('\t')
      return { facts, path }
    })
  }

  it('have names that every file system takes', () => {
    const paths = listFiles().map(({ path }) => path)
    expect(paths.length).toBeGreaterThan(500)
    expect(paths.filter((path) => path.split('/').some(isRefusedByWindows))).toEqual([])
    expect(paths.filter((path) => path.length > 150)).toEqual([]) // Windows takes 260, with that of the clone.
    const folded = Map.groupBy(paths, (path) => path.toLowerCase().normalize())
    expect([...folded.values()].filter(({ length }) => length > 1)).toEqual([])
  })

  it('have line ends that no checkout changes', () => {
    const changed = listFiles().filter(
      ({ facts }) => !/^i\/(lf|none) .*text=auto eol=lf|^i\/-text |attr\/-text/.test(facts),
    )
    expect(changed).toEqual([])
  })

  function isRefusedByWindows(name: string): boolean {
    return /[<>:"\\|?*\p{Cc}]|[. ]$|^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/iu.test(name)
  }

  it.each(['a:b.ts', 'what?.md', 'aux.ts', 'NUL', 'dot.', 'a\\b'])('would not be named %j', (name) => {
    expect(isRefusedByWindows(name)).toBe(true)
  })
})
