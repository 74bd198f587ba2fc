import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { ArrivingBytes } from '../../src/kit/arriving-bytes.ts'

it('gives the bytes that were added, and changes none of the pieces', () => {
  const length = fc.oneof(fc.nat(20), fc.integer({ min: 2000, max: 5000 }))
  fc.assert(
    fc.property(fc.array(length, { maxLength: 60, size: 'max' }), (lengths) => {
      const parts = lengths.map((size, index) => new Uint8Array(size).fill(index))
      const whole = Buffer.concat(parts)
      const bytes = new ArrivingBytes()

      for (const part of parts) bytes.add(part)

      expect(bytes.take().equals(whole)).toBe(true)
      expect(bytes.size).toBe(whole.length)
      expect(parts.every((part, index) => part.every((byte) => byte === index % 256))).toBe(true)
    }),
  )
})

it('holds no buffer of which it needs a part', async () => {
  const length = 3_000
  const before = await held()
  const bytes = new ArrivingBytes()
  for (let count = 0; count < 100; count++) bytes.add(Buffer.alloc(65_536).subarray(0, length))
  expect((await held()) - before).toBeLessThan(4 * 100 * length + 100_000)
  expect(bytes.take()).toHaveLength(100 * length)
})

it('holds a body that arrives byte by byte in at most four times its size', async () => {
  const length = 100_000
  const before = await held()
  const bytes = new ArrivingBytes()
  for (let count = 0; count < length; count++) bytes.add(new Uint8Array(1))
  expect((await held()) - before).toBeLessThan(4 * length)
  expect(bytes.take()).toHaveLength(length)
})

/** The bytes that the process holds, without garbage. Buffers that were collected are given back in the next turn. */
async function held(): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  await new Promise(setImmediate)
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
