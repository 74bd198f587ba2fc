/** A reporter of vitest: its last lines say which tests were left out on this machine, how to run them, and how long the run took. */

import type { Reporter, TestModule } from 'vitest/node'

const NEEDS = [
  'Linux',
  'POSIX',
  'awk',
  'bash',
  'curl',
  'git',
  'grep',
  'nginx',
  'openssl',
  'php',
  'python3',
  'ruby',
  'runuser',
  'sed',
  'systemd-analyze',
  'redis-server',
  'initdb',
  'Redis',
  'PostgreSQL',
  'root',
] as const

export const TAGS = NEEDS.map((name) => ({ name, description: `Left out: needs ${name}.` }))

export type Need = (typeof NEEDS)[number]

export class LastLinesReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const skipped = modules.flatMap((module) => [...module.children.allTests('skipped')])
    const leftOut = skipped.filter(({ tags }) => tags.some(isNeed))
    const missing = new Set(leftOut.flatMap(({ tags }) => tags.filter(isNeed)))
    if (leftOut.length > 0) {
      console.log(`Left out: ${leftOut.length} tests, which need ${[...missing].join(', ')}.`)
      console.log('Run everything on Linux with: bash .ci/run')
    }
    console.log(`Took ${Math.round(performance.now() / 1_000)} s.`)
  }
}

function isNeed(tag: string): boolean {
  return (NEEDS as readonly string[]).includes(tag)
}
