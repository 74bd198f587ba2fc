/** Each fault can still be put into the sources: `npm run mutate` takes too long to find that out often. */

import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { client } from './client.ts'
import { outbound } from './outbound.ts'

it.each([...outbound, ...client])('$fault', async ({ file, from, to }) => {
  const source = await readFile(new URL(`../../${file}`, import.meta.url), 'utf8')
  expect(source.split(from)).toHaveLength(2)
  expect(to).not.toBe(from)
})
