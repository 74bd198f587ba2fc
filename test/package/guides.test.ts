/** The guides, followed word for word with the packed tarball. */

import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, test } from 'vitest'
import { FOLLOWED } from '../docs/blocks.ts'
import { follow } from '../docs/follow.ts'
import { needs } from '../support/needs.ts'
import { pack } from './project.ts'

let folder: string
let tarball: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hookline-packed-'))
  tarball = join(folder, (await pack(folder)).filename)
})

afterAll(() => rm(folder, { recursive: true }))

test.each(FOLLOWED)('a reader follows %s', { ...needs('bash', 'curl', 'openssl'), timeout: 240_000 }, async (guide) => {
  await follow(guide, await readFile(new URL(`../../${guide}`, import.meta.url), 'utf8'), tarball)
})
