/** What the command costs whoever does not use it, and how long it takes to start. */

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { requireNode, UsageError } from '../src/terminal.ts'
import { bin, hookline } from './command.ts'

it('adds no package to those that installing hookline brings', () => {
  const manifest = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))
  expect(Object.keys(manifest.dependencies)).toEqual(['debug', 'fastify-plugin', 'raw-body', 'undici'])
  expect(manifest.optionalDependencies).toBeUndefined()
})

it('prints its help soon', async () => {
  const [none, help]: [number[], number[]] = [[], []]
  for (let turn = 0; turn < 7; turn += 1) {
    none.push(time(['-e', '0']))
    help.push(time([bin, '--help']))
  }
  const more = Math.min(...help) - Math.min(...none)
  console.log(`hookline --help takes ${more.toFixed(0)} ms more than node -e 0.`)
  expect(more).toBeLessThan(4 * 150) // 150 on a quiet machine.
})

it.each([['check'], ['queue'], ['send']])('hookline help %s prints what --help prints', async (command) => {
  const [help, asked] = [
    await hookline([...command.split(' '), '--help']),
    await hookline(['help', ...command.split(' ')]),
  ]
  expect(asked).toEqual(help)
  expect(help.stdout).toContain('Examples:')
})

it('needs a Node that is not older than the package asks for', () => {
  const [major = '', minor = ''] = process.versions.node.split('.')
  expect(() => requireNode(process.versions.node)).not.toThrow()
  expect(() => requireNode('9.99')).not.toThrow()
  for (const newer of [`${major}.${Number(minor) + 1}`, '100.0']) {
    expect(() => requireNode(newer)).toThrow(UsageError)
    expect(() => requireNode(newer)).toThrow(`needs Node ${newer} or newer. Got ${process.versions.node}.`)
  }
})

function time(args: readonly string[]): number {
  const started = performance.now()
  execFileSync(process.execPath, args)
  return performance.now() - started
}
