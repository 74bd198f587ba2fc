import { expect, test } from 'vitest'
import { requireNode } from '../../src/kit/runtime.ts'

const { versions } = process

test('sending says which Node it needs', () => {
  expect(() => requireNode({ ...versions, node: '22.9.0' })).toThrow('Sending needs Node 22.19 or newer. Got 22.9.0.')
  expect(() => requireNode({ ...versions, node: '22.19.0' })).not.toThrow()
})

test('Bun may say an older Node', () => {
  expect(() => requireNode({ ...versions, node: '22.9.0', bun: '1.3.0' })).not.toThrow()
})
