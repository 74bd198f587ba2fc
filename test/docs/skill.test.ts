/** The skill has the form of https://agentskills.io/specification. */

import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

const NAME = 'hookline'
const text = readFileSync(new URL(`../../skills/${NAME}/SKILL.md`, import.meta.url), 'utf8')

test('its front matter has the name of its folder, and says what it does and when to use it', () => {
  const [, frontMatter = ''] = /^---\n([\s\S]*?)\n---\n/.exec(text) ?? []
  const { name, description } = parse(frontMatter)
  expect(name).toBe(NAME)
  expect(description).toMatch(/\bUse when\b/)
  expect(description.length).toBeLessThanOrEqual(1_024)
})
