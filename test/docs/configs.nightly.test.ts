/** Every configuration that the guides show, held against the program or the schema that reads it. */

import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { needs } from '../support/needs.ts'
import { type Block, extractBlocks, kindOf, programsOf } from './blocks.ts'
import { checkConfig } from './configs.ts'

const docs = new URL('../../docs/', import.meta.url)
const pages = readdirSync(docs).filter((name) => name.endsWith('.md'))
const blocks = pages
  .flatMap((page) => extractBlocks(`docs/${page}`, readFileSync(new URL(page, docs), 'utf8')))
  .filter((block) => kindOf(block) === 'config')

for (const block of blocks) {
  test(`${block.place} (${block.language})`, optionsOf(block), () => {
    expect(checkConfig(block)).toEqual([])
  })
}

const WRONG: readonly [string, language: string, file: string | undefined, code: string, RegExp][] = [
  ['a configuration without a name', 'toml', undefined, 'app = "receiver"', /name of its file/],
  ['an instruction that does not exist', 'dockerfile', 'Dockerfile', 'FROM node\nCOPPY a b', /COPPY/],
  ['YAML of no known form', 'yaml', 'a.yaml', 'a: 1', /no test knows this form/],
  ['a key that Compose does not know', 'yaml', 'a.yaml', 'services: { a: { imagee: b } }', /additional properties/],
  [
    'a field that Kubernetes does not know',
    'yaml',
    'a.yaml',
    'apiVersion: v1\nkind: Service\nspec: { ports: [{ port: 80, targetPrt: http }] }',
    /targetPrt/,
  ],
  ['TOML that does not parse', 'toml', 'fly.toml', 'app = ', /TOML/],
  ['a unit that is not hardened', 'ini', 'wrong.service', '[Service]\nExecStart=/usr/bin/node a.mjs', /UNSAFE/],
  ['a directive that nginx does not know', 'nginx', 'wrong.conf', 'server { lissten 80; }', /lissten/],
]
for (const [name, language, file, code, fault] of WRONG) {
  const block: Block = { place: 'wrong.md:1', language, ...(file !== undefined && { file }), code: `${code}\n` }
  test(`${name} is refused`, optionsOf(block), () => {
    expect(checkConfig(block).join('\n')).toMatch(fault)
  })
}

function optionsOf(block: Block) {
  return { ...needs(...programsOf(block)), timeout: 60_000 }
}
