/** The reference, which `npm run check` compares with the types: what a reader may expect of its pages. */

import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const root = new URL('../../', import.meta.url)
const { exports } = JSON.parse(read('package.json'))
const subpaths = Object.keys(exports).filter((subpath) => subpath !== './package.json')

test('each subpath has a page, which the index lists', () => {
  const index = read('docs/reference/index.md')
  const titles = subpaths.map((subpath) => {
    const name = subpath === '.' ? 'hookline' : subpath.slice(2).replace('/', '-')
    expect(index).toContain(`](${name}.md)`)
    return read(`docs/reference/${name}.md`).split('\n')[0]
  })

  expect(titles).toEqual(subpaths.map((subpath) => `# ${subpath.replace('.', 'hookline')}`))
})

test.each([
  ['hookline.md', 'createReceiver', 46],
  ['sender.md', 'createDestination', 54],
])('%s: %s and its options fit on a screen', (page, name, most) => {
  const section = read(`docs/reference/${page}`)
    .split(/^(?=## )/m)
    .find((each) => each.startsWith(`## ${name}\n`))

  expect(section?.trim().split('\n').length).toBeLessThanOrEqual(most)
})

function read(path: string): string {
  return readFileSync(new URL(path, root), 'utf8')
}
