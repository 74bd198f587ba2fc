/** What an explanation costs at most: the work is bounded, whatever the body is. Prints ratios; the bounds are loose. */

import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { explainSignature } from '../../../src/message/explain/explain-signature.ts'
import { sign } from '../../../src/message/signature.ts'

/** The processor time of a call, in milliseconds. */
function cost(run: () => void): number {
  const before = process.cpuUsage()
  run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

function explain(body: Buffer): void {
  expect(explainSignature(body, sign(body, 'another secret'), 'secret').verdict).toBe('unexplained')
}

const bodyOf = (item: unknown, bytes: number): Buffer => {
  const { length } = JSON.stringify(item)
  return Buffer.from(JSON.stringify({ items: Array(Math.ceil(bytes / (length + 1))).fill(item) }))
}

it.each<[string, (bytes: number) => Buffer]>([
  ['messages', (bytes) => bodyOf({ id: 'product-1', name: 'Café <b>', price: 39.5, tags: ['a', 'b'] }, bytes)],
  ['empty lists', (bytes) => bodyOf([], bytes)],
  ['one string', (bytes) => bodyOf('x'.repeat(bytes), bytes)],
  ['random bytes', randomBytes],
])('%s: 4 MB take no more than four times what 500 KB take', (name, make) => {
  const [small, large] = [make(500_000), make(4_000_000)]
  explain(small) // Compiles.
  const hashing = cost(() => {
    for (let count = 0; count < 100; count += 1) sign(small, 'secret')
  })
  const [ofSmall, ofLarge] = [cost(() => explain(small)), cost(() => explain(large))]
  const ratios = [ofSmall / (hashing / 100), ofLarge / ofSmall].map((ratio) => ratio.toFixed(1))
  process.stdout.write(`${name}: 500 KB cost ${ratios[0]} times one signature of it, 4 MB ${ratios[1]} times that\n`)
  expect(ofLarge).toBeLessThan(4 * ofSmall)
})
