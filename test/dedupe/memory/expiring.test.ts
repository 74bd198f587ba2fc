import { expect, it } from 'vitest'
import { createExpiring } from '../../../src/dedupe/memory/expiring.ts'

it('says which was added first of those that are left', () => {
  const keys = createExpiring()
  expect(keys.oldest()).toBeUndefined()
  const [a, b] = [keys.add('a', 1), keys.add('b', 1)]
  expect(keys.oldest()).toBe(a)
  const again = keys.add('a', 2)
  expect(keys.oldest()).toBe(b)
  keys.remove(b)
  expect(keys.oldest()).toBe(again)
  keys.remove(again)
  expect([keys.oldest(), keys.size]).toEqual([undefined, 0])
  const c = keys.add('c', 3)
  expect(keys.oldest()).toBe(c)
})

it('leaves the newer entry of a key alone', () => {
  const keys = createExpiring()
  const older = keys.add('a', 1)
  const newer = keys.add('a', 2)
  keys.remove(older)
  expect([keys.get('a', 1), keys.get('a', 2)]).toEqual([newer, undefined])
})

it('puts a key that is added again behind the others', () => {
  const keys = createExpiring()
  keys.add('a', 1)
  const b = keys.add('b', 1)
  keys.add('a', 2)
  expect(keys.oldest()).toBe(b)
})
