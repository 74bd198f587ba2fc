/** The tests of the engines' queues, on the lowest and the highest release of each that package.json admits. */

import { execSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { TAGS } from './test/support/left-out.ts'

/** pg-boss has one release that is installable and new enough, which `npm test` runs. */
const RELEASES = [
  { bullmq: '6.0.0', ioredis: '5.2.6' },
  { bullmq: '6.7.0', ioredis: '6.0.0' },
] as const

export default defineConfig({
  test: {
    projects: RELEASES.map(({ bullmq, ioredis }) => {
      const modules = install({ bullmq, ioredis })
      return {
        resolve: { alias: { bullmq: join(modules, 'bullmq'), ioredis: join(modules, 'ioredis') } },
        test: {
          name: `bullmq ${bullmq}, ioredis ${ioredis}`,
          include: ['test/queues/bullmq/*.test.ts'],
          globalSetup: ['test/support/servers.ts'],
          tags: TAGS,
        },
      }
    }),
  },
})

/** Installs packages below `.cache/`, once. Returns their `node_modules`. */
function install(packages: Readonly<Record<string, string>>): string {
  const names = Object.entries(packages).map(([name, version]) => `${name}@${version}`)
  const folder = join(import.meta.dirname, '.cache/engines', names.join(','))
  const modules = join(folder, 'node_modules')
  if (existsSync(join(modules, '.package-lock.json'))) return modules
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "private": true }')
  execSync(`npm install --no-audit --no-fund --ignore-scripts --no-save ${names.join(' ')}`, { cwd: folder })
  return modules
}
