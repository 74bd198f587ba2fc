import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createFifo } from '../../src/collections/fifo.ts'

it('returns what an array returns, in any order of push and shift', () => {
  const step = fc.oneof({ weight: 2, arbitrary: fc.nat() }, fc.constant('shift' as const))
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const fifo = createFifo<number>()
      const model: number[] = []
      for (const step of steps) {
        if (step === 'shift') {
          expect(fifo.shift()).toBe(model.shift())
        } else {
          fifo.push(step)
          model.push(step)
        }
        expect([fifo.size, fifo.peek()]).toEqual([model.length, model[0]])
      }
    }),
  )
})
