/** The lowest and the highest releases of BullMQ and ioredis that package.json admits. A global set-up: it installs those of its project. */

import { execSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { TestProject } from 'vitest/node'

/** pg-boss has one release that is installable and new enough, which `npm test` runs. */
export const RELEASES = [
  ['bullmq@6.0.0', 'ioredis@5.4.0'],
  ['bullmq@6.7.0', 'ioredis@6.0.0'],
].map((packages) => ({
  name: `releases (${packages.join(', ')})`,
  modules: join(import.meta.dirname, '../../.cache/engines', packages.join(','), 'node_modules'),
}))

export default function setup({ name }: TestProject): void {
  const { modules } = RELEASES.find((release) => release.name === name) as (typeof RELEASES)[0]
  if (existsSync(join(modules, '.package-lock.json'))) return
  const folder = join(modules, '..')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "private": true }')
  const packages = basename(folder).replaceAll(',', ' ')
  execSync(`npm install --no-audit --no-fund --ignore-scripts --no-save ${packages}`, { cwd: folder })
}
