import { expect, test } from 'vitest'
import { requireNode } from '../../src/kit/runtime.ts'

const { versions } = process

test('sending says which Node it needs', () => {
  expect(() => requireNode({ ...versions, node: '22.9.0' })).toThrow('Sending needs Node 22.19 or newer. Got 22.9.0.')
  expect(() => requireNode({ ...versions, node: '22.19.0' })).not.toThrow()
})
