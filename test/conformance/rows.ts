/** The rows of docs/conformance.md: the names of the tests that hold them. */

import { readFileSync } from 'node:fs'

/** Reads the page: each section's heading with each of its items. */
export function readRows(): readonly string[] {
  const page = readFileSync(new URL('../../docs/conformance.md', import.meta.url), 'utf8')
  return page
    .split(/^#+ /m)
    .flatMap((section) => [...section.matchAll(/^- (.*)$/gm)].map(([, row]) => `${section.split('\n', 1)} · ${row}`))
}
