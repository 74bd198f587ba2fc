/** A reporter of vitest: its last line says which tests were left out on this machine, and how to run them. */

import type { Reporter, TestModule } from 'vitest/node'

const NEEDS = [
  'Linux',
  'POSIX',
  'awk',
  'bash',
  'bwrap',
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
  'strace',
  'systemd-analyze',
  'util-linux',
  'redis-server',
  'initdb',
  'Redis',
  'PostgreSQL',
  'root',
] as const

export const TAGS: { name: string; description: string }[] = NEEDS.map((name) => ({
  name,
  description: `Left out: needs ${name}.`,
}))

export type Need = (typeof NEEDS)[number]

export class LeftOutReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const skipped = modules.flatMap((module) => [...module.children.allTests('skipped')])
    const leftOut = skipped.filter(({ tags }) => tags.some(isNeed))
    if (leftOut.length === 0) return
    const missing = new Set(leftOut.flatMap(({ tags }) => tags.filter(isNeed)))
    console.log(
      `Left out: ${leftOut.length} tests, which need ${[...missing].join(', ')}. Run everything on Linux with: bash .ci/run`,
    )
  }
}

function isNeed(tag: string): boolean {
  return (NEEDS as readonly string[]).includes(tag)
}
