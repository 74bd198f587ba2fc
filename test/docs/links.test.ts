/** Every link of the pages: within the repository it leads to a file, and to a heading of it; outside it has one form. */

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { anchorsOf, targetsOf } from '../../docs/.vitepress/links.ts'

const root = new URL('../../', import.meta.url)
const guides = ['', 'reference/'].flatMap((folder) =>
  readdirSync(new URL(`docs/${folder}`, root)).map((name) => `${folder}${name}`),
)
const PAGES = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'bench/README.md',
  'bench/METHOD.md',
  'skills/hookline/SKILL.md',
  ...guides.filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`),
]
const links = PAGES.flatMap((page) => targetsOf(read(new URL(page, root))).map((target) => ({ page, target })))
const [external = [], internal = []] = [true, false].map((is) =>
  links.filter(({ target }) => /^[a-z]+:/.test(target) === is),
)

test('a link within the repository leads to a file, and to a heading of it', () => {
  const dead = internal.filter(({ page, target }) => !leadsSomewhere(page, target))
  expect(internal.length).toBeGreaterThan(300)
  expect(dead).toEqual([])
})

test('links to others are https, to a host with a domain', () => {
  expect(external).not.toEqual([])
  const wrong = external.filter(({ target }) => !/^https:\/\/([a-z\d-]+\.)+[a-z]{2,}(\/|$)/.test(target))
  expect(wrong).toEqual([])
})

function leadsSomewhere(page: string, target: string): boolean {
  const url = new URL(target, new URL(page, root))
  const { hash } = url
  url.hash = ''
  return existsSync(url) && (hash === '' || anchorsOf(read(url)).includes(hash.slice(1)))
}

function read(url: URL): string {
  return readFileSync(url, 'utf8')
}
