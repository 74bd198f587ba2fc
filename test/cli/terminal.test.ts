/** What every subcommand shares: the Node that it needs. */

import { expect, it } from 'vitest'
import { requireNode, UsageError } from '../../src/cli/terminal.ts'

it('needs a Node that is not older than the package asks for', () => {
  const [major = '', minor = ''] = process.versions.node.split('.')
  expect(() => requireNode(process.versions.node)).not.toThrow()
  expect(() => requireNode('9.99')).not.toThrow()
  for (const newer of [`${major}.${Number(minor) + 1}`, '100.0']) {
    expect(() => requireNode(newer)).toThrow(UsageError)
    expect(() => requireNode(newer)).toThrow(`needs Node ${newer} or newer. Got ${process.versions.node}.`)
  }
})
