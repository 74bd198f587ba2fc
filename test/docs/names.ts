/** Names in the sources that users rely on, found by how the sources write them. */

import { readdirSync, readFileSync } from 'node:fs'

const sources = ['src', 'adapters', 'tools'].flatMap((folder) => {
  const root = new URL(`../../${folder}/`, import.meta.url)
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((path) => /^(?!\w+[\\/]test).*\.ts$/.test(path))
    .map((path) => ({ path, text: readFileSync(new URL(path, root), 'utf8') }))
})

/** What the first group of a pattern finds in the files of a part of `src` or `tools`, such as `command`: each once, sorted. Default: everywhere, adapters included. */
export function find(pattern: RegExp, part?: string): string[] {
  const isOfPart = (path: string): boolean => part === undefined || path.split(/[./\\]/)[0] === part
  const texts = sources.filter(({ path }) => isOfPart(path)).map(({ text }) => text)
  const found = texts.flatMap((text) => [...text.matchAll(pattern)].map(([, name = '']) => name))
  return [...new Set(found)].sort()
}

/** Codes of errors that stay inside: whoever catches them reads no code. */
const INSIDE = ['HOOKLINE_PRIVATE_ADDRESS', 'HOOKLINE_RESPONSE_TOO_LONG']

/** The codes of process warnings. */
export function warningCodes(): string[] {
  return find(/'(HOOKLINE_[A-Z_]+)'/g).filter((code) => !INSIDE.includes(code))
}
