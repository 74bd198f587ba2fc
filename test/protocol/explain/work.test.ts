/** What an explanation does at most: its work is counted in bytes that are digested or written, and bounded, whatever the body is. */

import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { layOut } from '../../../src/protocol/explain/json-text.ts'
import { search } from '../../../src/protocol/explain/search.ts'
import { readSignature } from '../../../src/protocol/explain/signature-forms.ts'
import { sign } from '../../../src/protocol/signature.ts'

const { readings } = readSignature(sign('another body', 'another secret'))

const bodyOf = (item: unknown, bytes: number): Buffer => {
  const { length } = JSON.stringify(item)
  return Buffer.from(JSON.stringify({ items: Array(Math.ceil(bytes / (length + 1))).fill(item) }))
}
const MESSAGE = { id: 'product-1', name: 'Café <b>', price: 39.5, tags: ['a', 'b'] }

const SHAPES: readonly [name: string, make: (bytes: number) => Buffer][] = [
  ['messages', (bytes) => bodyOf(MESSAGE, bytes)],
  ['empty lists', (bytes) => bodyOf([], bytes)],
  ['one string', (bytes) => bodyOf('x'.repeat(bytes), bytes)],
  ['random bytes', randomBytes],
  ['white space', (bytes) => Buffer.from(JSON.stringify(' '.repeat(bytes)))],
  [
    'short members',
    (bytes) => Buffer.from(`{${Array.from({ length: bytes / 12 }, (_, at) => `"k${(at * 7_919) % bytes}":1`)}}`),
  ],
  ['lists nested deep', (bytes) => Buffer.from(`${'['.repeat(490)}${'1,'.repeat(bytes / 2)}1${']'.repeat(490)}`)],
]

it.each(SHAPES)('%s: a body of 1 MB costs no more than the bound', (_name, make) => {
  const body = make(1_000_000)
  const started = process.cpuUsage()
  const result = search(body, 'secret', readings, 40_000_000)
  const { user, system } = process.cpuUsage(started)
  expect(result).toMatchObject({ causes: undefined, complete: false })
  expect(user + system).toBeLessThan(2_000_000) // A tenth of a second on a quiet machine, several times that with coverage.
})

it.each(SHAPES)('%s: a body of 1 KB has everything tried, for what 4 000 digests of 1 KB cost', (_name, make) => {
  const body = make(1_000)
  const { complete, work } = search(body, 'secret', readings)
  expect(complete).toBe(true)
  expect(work).toBeLessThan(4_000 * body.length)
})

it('a list of all hashes, with a timestamp, ends at the bound', () => {
  const parts = [32, 40, 56, 64, 96, 128].map((digits) => 'ab'.repeat(digits / 2))
  const { readings: all } = readSignature(['t=1492774577', ...parts].join(','))
  expect(search(bodyOf(MESSAGE, 65), 'secret', all, 1_000_000)).toMatchObject({ complete: false })
})

it('a form that is longer than its limit is not written', () => {
  const indented = '[\n  [\n    1\n  ]\n]'
  expect(layOut('[[1]]', 'indented', indented.length)).toBe(indented)
  expect(layOut('[[1]]', 'indented', indented.length - 1)).toBeUndefined()
})
