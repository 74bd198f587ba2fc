/** What serialisers of other languages sign, written and signed by these languages themselves. */

import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect } from 'vitest'
import { needs } from '../../support/needs.ts'
import { BODIES, SECRET, writersContract } from './writers/bodies.ts'

function run(command: string, file: string): string {
  const path = fileURLToPath(new URL(`writers/${file}`, import.meta.url))
  const input = Object.values(BODIES).map((body) => `${Buffer.from(body).toString('base64')}\n`)
  const { stdout, stderr, status } = spawnSync(command, [path, SECRET], { input: input.join(''), encoding: 'utf8' })
  expect([stderr, status]).toEqual(['', 0])
  return stdout
}

for (const [language, command, file] of [
  ['Python', 'python3', 'python.py'],
  ['PHP', 'php', 'php.php'],
  ['Ruby', 'ruby', 'ruby.rb'],
] as const) {
  describe(`${language}, run here`, needs(command), () => writersContract(language, () => run(command, file)))
}
