import { expect, it } from 'vitest'
import { createExpiring } from '../../../src/dedupe/memory/expiring.ts'

it('puts a key that is added again behind the others', () => {
  const keys = createExpiring()
  keys.add('a', 1)
  const b = keys.add('b', 1)
  keys.add('a', 2)
  expect(keys.oldest()).toBe(b)
})
