/** What each subcommand has in common: help, the Node it needs, and no package more than hookline brings. */

import { expect, it } from 'vitest'
import manifest from '../../../package.json' with { type: 'json' }
import { requireNode, UsageError } from '../src/terminal.ts'
import { hookline } from './command.ts'

it('the command adds no package to those that installing hookline brings', () => {
  expect(Object.keys(manifest.dependencies)).toEqual(['debug', 'fastify-plugin', 'raw-body', 'undici'])
  expect(manifest).not.toHaveProperty('optionalDependencies')
})

it.each(['check', 'queue', 'send'])('hookline help %s prints what --help prints', async (command) => {
  const help = await hookline([command, '--help'])
  expect(await hookline(['help', command])).toEqual(help)
  expect(help).toMatchObject({ code: 0, stdout: expect.stringContaining('Examples:') })
})

it('a Node that is older than the package asks for is wrong usage', () => {
  const { node } = process.versions
  const [major = '', minor = ''] = node.split('.')

  for (const older of [node, '9.99']) expect(() => requireNode(older)).not.toThrow()
  for (const newer of [`${major}.${Number(minor) + 1}`, '100.0']) {
    expect(() => requireNode(newer)).toThrow(UsageError)
    expect(() => requireNode(newer)).toThrow(new RegExp(`${newer} .*${node}`))
  }
})
