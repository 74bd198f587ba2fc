import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createFifo } from '../../src/kit/fifo.ts'

it('returns what an array returns, in any order of push, shift and filter', () => {
  const isOdd = (value: number) => value % 2 === 1
  const step = fc.oneof({ weight: 3, arbitrary: fc.nat() }, fc.constantFrom('shift' as const, 'filter' as const))
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const fifo = createFifo<number>()
      let model: number[] = []
      for (const step of steps) {
        if (step === 'shift') {
          expect(fifo.shift()).toBe(model.shift())
        } else if (step === 'filter') {
          fifo.filter(isOdd)
          model = model.filter(isOdd)
        } else {
          fifo.push(step)
          model.push(step)
        }
        expect([fifo.size, fifo.peek()]).toEqual([model.length, model[0]])
      }
    }),
  )
})
