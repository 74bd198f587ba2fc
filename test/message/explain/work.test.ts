/** What an explanation costs at most: the work is bounded, whatever the body is. Prints ratios; the bounds are loose. */

import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { explainSignature } from '../../../src/message/explain/explain-signature.ts'
import { search } from '../../../src/message/explain/search.ts'
import { readSignature } from '../../../src/message/explain/signature-forms.ts'
import { sign } from '../../../src/message/signature.ts'

const ANOTHER = sign('another body', 'another secret')
const LIMIT = 25_000_000 // Too little for every pair of 100 KB.

/** The processor time of a call, in milliseconds. */
function cost(run: () => unknown): number {
  const before = process.cpuUsage()
  run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

const bodyOf = (item: unknown, bytes: number): Buffer => {
  const { length } = JSON.stringify(item)
  return Buffer.from(JSON.stringify({ items: Array(Math.ceil(bytes / (length + 1))).fill(item) }))
}
const MESSAGE = { id: 'product-1', name: 'Café <b>', price: 39.5, tags: ['a', 'b'] }

it.each<[string, (bytes: number) => Buffer]>([
  ['messages', (bytes) => bodyOf(MESSAGE, bytes)],
  ['empty lists', (bytes) => bodyOf([], bytes)],
  ['one string', (bytes) => bodyOf('x'.repeat(bytes), bytes)],
  ['random bytes', randomBytes],
])('%s: eight times the body take no more than four times as long, when the work is bounded', (_name, make) => {
  const { readings } = readSignature(ANOTHER)
  const [small, large] = [make(100_000), make(800_000)]
  const costOf = (body: Buffer): number => cost(() => search(body, 'secret', readings, LIMIT))
  expect(search(small, 'secret', readings, LIMIT)).toMatchObject({ causes: undefined, complete: false }) // Compiles.
  expect(costOf(large)).toBeLessThan(4 * costOf(small))
})

it('prints what 500 KB cost, next to one signature of them', { timeout: 120_000 }, () => {
  const body = bodyOf(MESSAGE, 500_000)
  const signing = cost(() => {
    for (let count = 0; count < 100; count += 1) sign(body, 'secret')
  })
  const explaining = cost(() => expect(explainSignature(body, ANOTHER, 'secret').verdict).toBe('unexplained'))
  process.stdout.write(
    `an explanation of 500 KB costs ${Math.round((100 * explaining) / signing)} signatures of them\n`,
  )
  expect(explaining).toBeLessThan(4_000)
})

it.each<[string, string, string]>([
  ['white space', JSON.stringify(' '.repeat(20_000)), JSON.stringify('x'.repeat(20_000))],
  ['lists nested 490 deep', `${'['.repeat(490)}${'1,'.repeat(10_000)}1${']'.repeat(490)}`, `[${'1,'.repeat(10_490)}1]`],
])('%s take no more than six times what as much plain JSON takes', (_name, odd, plain) => {
  const costOf = (text: string): number => cost(() => explainSignature(Buffer.from(text), ANOTHER, 'secret'))
  costOf(plain) // Compiles.
  expect(costOf(odd)).toBeLessThan(6 * costOf(plain))
})
