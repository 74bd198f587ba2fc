/** Every link of the README and the guides that stays in the repository leads to a file, and to a heading of it. */

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const root = new URL('../../', import.meta.url)
const guides = readdirSync(new URL('docs/', root)).filter((name) => name.endsWith('.md'))

for (const page of ['README.md', ...guides.map((name) => `docs/${name}`)]) {
  const targets = [...read(new URL(page, root)).matchAll(/\]\((?!https?:)([^)]+)\)/g)].map(([, target = '']) => target)

  for (const target of new Set(targets)) {
    test(`${page} → ${target}`, () => {
      const url = new URL(target, new URL(page, root))
      const { hash } = url
      url.hash = ''

      expect(existsSync(url), 'no such file').toBe(true)
      if (hash !== '') expect(anchors(read(url))).toContain(hash.slice(1))
    })
  }
}

function read(url: URL): string {
  return readFileSync(url, 'utf8')
}

function anchors(markdown: string): string[] {
  return [...markdown.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .trim()
      .replaceAll(' ', '-'),
  )
}
