import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createTimeHeap } from '../../../src/store/memory/time-heap.ts'

it('a heap gives items by their time and then by their order, also after some of them were removed', () => {
  const times = fc.array(fc.record({ at: fc.nat(5), isKept: fc.boolean() }), { maxLength: 30 })

  fc.assert(
    fc.property(times, (items) => {
      const heap = createTimeHeap<(typeof items)[number]>()
      for (const item of items) heap.push(item, item.at)
      heap.filter(({ isKept }) => isKept)
      const taken = Array.from({ length: heap.size }, () => heap.pop())
      expect(taken).toEqual(items.filter(({ isKept }) => isKept).sort((one, other) => one.at - other.at))
    }),
  )
})
