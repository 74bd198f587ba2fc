import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createTimeHeap } from '../../../src/queues/memory/time-heap.ts'

describe('a heap of times', () => {
  it('that is empty has nothing', () => {
    const heap = createTimeHeap()
    expect([heap.size, heap.nextAt(), heap.pop()]).toEqual([0, undefined, undefined])
  })

  it('gives what a stable sort gives, whatever goes in and out in between', () => {
    const isOdd = ({ at }: { readonly at: number }) => at % 2 !== 0
    const end = fc.constantFrom('pop' as const, 'filter' as const)
    const step = fc.oneof({ weight: 3, arbitrary: fc.integer({ min: -5, max: 20 }) }, end)
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const heap = createTimeHeap<{ readonly at: number }>()
        let model: { readonly at: number }[] = []
        for (const step of steps) {
          if (step === 'pop') {
            expect(heap.pop()).toBe(model.shift())
          } else if (step === 'filter') {
            heap.filter(isOdd)
            model = model.filter(isOdd)
          } else {
            const item = { at: step }
            heap.push(item, step)
            model = [...model, item].sort((a, b) => a.at - b.at)
          }
          expect(heap.size).toBe(model.length)
          expect(heap.nextAt()).toBe(model[0]?.at)
        }
        while (heap.size > 0) expect(heap.pop()).toBe(model.shift())
        expect(model).toEqual([])
      }),
    )
  })
})
