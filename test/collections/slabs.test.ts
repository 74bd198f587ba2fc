import fc from 'fast-check'
import { expect, it } from 'vitest'
import { MOST_ROOM, type Slab, Slabs } from '../../src/collections/slabs.ts'

it('keeps the bytes of each message until its room is given back, in memory that is used again', () => {
  const step = fc.record({ length: fc.integer({ min: 1, max: MOST_ROOM }), drops: fc.nat({ max: 3 }) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const slabs = new Slabs()
      const kept: { slab: Slab; start: number; length: number; value: number }[] = []
      for (const [index, { length, drops }] of steps.entries()) {
        const slab = slabs.open(length)
        const start = slab.used
        const value = (index % 255) + 1
        expect(start % 8).toBe(0)
        expect(slab.bytes.subarray(start, start + length).every((byte) => byte === 0)).toBe(true)
        slab.bytes.fill(value, start, start + length)
        slabs.take(slab, start + length)
        kept.push({ slab, start, length, value })
        for (const { slab } of kept.splice(0, drops)) slabs.release(slab)
      }
      for (const { slab, start, length, value } of kept) {
        expect(slab.bytes.subarray(start, start + length).every((byte) => byte === value)).toBe(true)
      }
    }),
    { numRuns: 50 },
  )
})

it('uses few pieces for messages that come and go', () => {
  const slabs = new Slabs()
  const used = new Set<Slab>()
  const kept: Slab[] = []
  for (let index = 0; index < 2_000; index += 1) {
    const slab = slabs.open(1_000)
    slabs.take(slab, slab.used + 1_000)
    used.add(slab)
    kept.push(slab)
    if (kept.length > 100) slabs.release(kept.shift() as Slab)
  }
  expect(used.size).toBeLessThanOrEqual(4)
})

it('clears the last piece, too, once no message is in it', () => {
  const slabs = new Slabs()
  const slab = slabs.open(100)
  slab.bytes.fill(1, 0, 100)
  slabs.take(slab, 100)
  slabs.release(slab)
  expect(slab.bytes.every((byte) => byte === 0)).toBe(true)
  expect(slabs.open(100)).toBe(slab)
})
