import fc from 'fast-check'
import { expect, it } from 'vitest'
import { KeyIndex } from '../../src/collections/key-index.ts'

it('finds the latest number of a key in the ring, among keys that are alike, and none that the ring has left', () => {
  const places = 8
  const key = fc.constantFrom('a', 'b', 'c', 'the same beginning, one', 'the same beginning, two')
  fc.assert(
    fc.property(fc.array(key, { maxLength: 60 }), key, (keys, wanted) => {
      const index = new KeyIndex(places)
      for (const [number, key] of keys.entries()) index.add(number, key)
      const first = Math.max(0, keys.length - places)
      const expected = keys.lastIndexOf(wanted)
      const found = index.find(wanted, first, (number) => keys[number] === wanted)
      expect(found).toBe(expected >= first ? expected : undefined)
    }),
  )
})

it('goes on behind numbers of 32 bits', () => {
  const index = new KeyIndex(4)
  const numbers = [0, 1, 2, 3, 4, 5].map((more) => 2 ** 32 - 3 + more)
  for (const number of numbers) index.add(number, `key ${number % 2}`)
  expect(index.find('key 0', numbers[2] as number, () => true)).toBe(2 ** 32 + 2)
  expect(index.find('key 1', numbers[2] as number, (number) => number < 2 ** 32)).toBe(2 ** 32 - 1)
})
