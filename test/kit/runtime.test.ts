import { expect, test } from 'vitest'
import { requireNode } from '../../src/kit/runtime.ts'

test('sending says which Node it needs', () => {
  expect(() => requireNode({ ...process.versions, node: '22.9.0' })).toThrow('22.9.0')
  expect(() => requireNode({ ...process.versions, node: '22.19.0' })).not.toThrow()
})
