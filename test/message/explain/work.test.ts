/** What an explanation does at most: its work is counted in bytes that are digested or written, and bounded, whatever the body is. */

import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { MAX_WORK, search } from '../../../src/message/explain/search.ts'
import { readSignature } from '../../../src/message/explain/signature-forms.ts'
import { sign } from '../../../src/message/signature.ts'

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
  ['lists nested deep', (bytes) => Buffer.from(`${'['.repeat(490)}${'1,'.repeat(bytes / 2)}1${']'.repeat(490)}`)],
]

it.each(SHAPES)('%s: a body of 1 MB costs no more than the bound', (_name, make) => {
  const body = make(1_000_000)
  const { causes, complete, work } = search(body, 'secret', readings)
  expect({ causes, complete }).toEqual({ causes: undefined, complete: false })
  expect(work).toBeLessThan(MAX_WORK + 50 * (body.length + 3_000))
})

it.each(SHAPES)('%s: a body of 1 KB has every pair tried, for what 25 000 digests of 1 KB cost', (_name, make) => {
  const body = make(1_000)
  const { complete, work } = search(body, 'secret', readings)
  expect(complete).toBe(true)
  expect(work).toBeLessThan(25_000 * body.length)
})

it('a list of many signatures costs about what a few cost: each digest is computed once for all of them', () => {
  const cpuOf = (signature: string): number => {
    const start = process.cpuUsage()
    const { complete } = search(bodyOf(MESSAGE, 65), 'secret', readSignature(signature).readings)
    const { user, system } = process.cpuUsage(start)
    expect(complete).toBe(true)
    return user + system
  }
  const CPU_STEP = 16_000 // Windows counts it in steps of 15.6 ms.
  const parts = Array.from({ length: 57 }, (_, index) => index.toString(16).padStart(16, 'a'))
  cpuOf('t=1492774577,aaaaaaaaaaaaaaaa')
  const few = cpuOf('t=1492774577,aaaaaaaaaaaaaaaa')
  expect(cpuOf(['t=1492774577', ...parts].join(','))).toBeLessThan(10 * (few + CPU_STEP))
})

it('a list of all hashes, with a timestamp, ends at the bound', () => {
  const parts = [32, 40, 56, 64, 96, 128].map((digits) => 'ab'.repeat(digits / 2))
  const { readings: all } = readSignature(['t=1492774577', ...parts].join(','))
  expect(search(bodyOf(MESSAGE, 65), 'secret', all, 30_000_000)).toMatchObject({ complete: false })
})
