import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createSlots } from '../../src/kit/slots.ts'

test('slots hold what was added and not removed, in no more places than were needed at once', () => {
  fc.assert(
    fc.property(fc.array(fc.record({ isRemoval: fc.boolean(), which: fc.nat() }), { maxLength: 200 }), (steps) => {
      const slots = createSlots<number>()
      const placeOf = new Map<number, number>()
      let most = 0
      for (const [item, { isRemoval, which }] of steps.entries()) {
        const gone = [...placeOf.keys()][which % placeOf.size]
        if (!isRemoval) {
          placeOf.set(item, slots.add(item))
        } else if (gone !== undefined) {
          slots.remove(placeOf.get(gone) as number)
          placeOf.delete(gone)
        }
        most = Math.max(most, placeOf.size)
        expect(slots.size).toBe(placeOf.size)
        expect(new Set(slots.list())).toEqual(new Set(placeOf.keys()))
        expect(Math.max(-1, ...placeOf.values())).toBeLessThan(most)
      }
    }),
  )
})
