/** What an explanation does at most: its work is counted in bytes that are digested or written, and bounded, whatever the body is. */

import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { search } from '../../../src/protocol/explain/search.ts'
import { readSignature } from '../../../src/protocol/explain/signature-forms.ts'
import { sign } from '../../../src/protocol/signature.ts'

const MAX_WORK = 40_000_000

/** How many times as long it may take here. Counting what is covered makes the code several times as slow. */
const ROOM = process.env.COVERAGE === 'true' ? 20 : 4
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

it.each([200_000, 1_000_000].flatMap((bytes) => SHAPES.map(([name, make]) => [name, bytes, make] as const)))(
  '%s: a body of %i bytes costs no more than the bound',
  (_name, bytes, make) => {
    const body = make(bytes)
    const started = process.cpuUsage()
    const { causes, complete } = search(body, 'secret', readings, MAX_WORK)
    const { user, system } = process.cpuUsage(started)
    expect({ causes, complete }).toEqual({ causes: undefined, complete: false })
    expect(user + system).toBeLessThan(ROOM * 100_000) // A tenth of a second on a quiet machine.
  },
)

it.each(SHAPES)('%s: a body of 1 KB has everything tried, for what 4 000 digests of 1 KB cost', (_name, make) => {
  const body = make(1_000)
  const { complete, work } = search(body, 'secret', readings)
  expect(complete).toBe(true)
  expect(work).toBeLessThan(4_000 * body.length)
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
  expect(search(bodyOf(MESSAGE, 65), 'secret', all, 1_000_000)).toMatchObject({ complete: false })
})
