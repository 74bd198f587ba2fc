/** The parts of `hookline send` that need no process: lines, edits, counts. */

import { Readable } from 'node:stream'
import { InvalidArgumentError } from 'commander'
import fc from 'fast-check'
import { fixtures } from 'hookline/testing'
import { expect, it } from 'vitest'
import { readForm } from '../../src/arguments.ts'
import { splitLines } from '../../src/lines.ts'
import { addEdit, applyEdit, prepare } from '../../src/send/prepare.ts'
import { createStatistics } from '../../src/send/report.ts'

const LIMIT = 10

async function split(chunks: readonly string[]) {
  const lines = []
  for await (const line of splitLines(Readable.from(chunks.map((chunk) => Buffer.from(chunk))), LIMIT)) lines.push(line)
  return lines
}

it('lines are the same however the stream is cut', async () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'é', '\ufeff', '\r', '\n'), maxLength: 30 })
  const chunks = fc.array(text, { maxLength: 30 })
  const property = fc.asyncProperty(chunks, async (chunks) => {
    const text = chunks.join('')
    const isLong = (line: string) => Buffer.byteLength(line) > LIMIT
    const read = (line: string, index: number) => line.replace(index === 0 ? /^\ufeff|\r$/g : /\r$/, '')
    const expected = text.split('\n').map((line, index) => (isLong(line) ? undefined : read(line, index)))
    if (text === '' || text.endsWith('\n')) expected.pop()
    const lines = await split(chunks)
    expect(lines.map(({ bytes }) => bytes?.toString())).toEqual(expected)
    expect(lines.map(({ number }) => number)).toEqual(expected.map((_, index) => index + 1))
    expect(lines.at(-1)?.end ?? 0).toBe(Buffer.byteLength(text))
  })
  await fc.assert(property, { numRuns: 50 })
})

const apply = (message: object, ...texts: string[]) => {
  const edits = texts.reduce<ReturnType<typeof addEdit>>((all, text) => addEdit(text, all), [])
  for (const edit of edits) applyEdit(message as Record<string, unknown>, edit)
  return message
}

it.each([
  ['total="12"', { total: '12' }],
  ['name=Ada Lovelace', { name: 'Ada Lovelace' }],
  ['query=a=b', { query: 'a=b' }],
  ['properties.list=[1,2]', { properties: { list: [1, 2] } }],
  ['traits.Employee Count=3', { traits: { 'Employee Count': 3 } }],
  ['constructor.name=x', { constructor: { name: 'x' } }],
])('--set %s changes the field that it names', (text, expected) => {
  expect(apply({}, text)).toEqual(expected)
})

it('--set keeps the other fields, and reaches into lists', () => {
  const message = { properties: { total: 1, products: [{ price: 1 }] } }
  expect(apply(message, 'properties.products.0.price=2', 'properties.products.1.price=3')).toEqual({
    properties: { total: 1, products: [{ price: 2 }, { price: 3 }] },
  })
})

it.each(['total', '=12', 'a..b=1', '.a=1', '__proto__.x=1'])('--set refuses %s', (text) => {
  expect(() => addEdit(text)).toThrow(InvalidArgumentError)
})

it.each([
  ['event.name=y', '--set event.name: the field event '],
  ['list.5=2', '--set list.5: list '],
  ['list.length=9', '--set list.length: list '],
])('--set refuses %s of something that holds no such field', (text, named) => {
  expect(() => apply({ event: 'x', list: [1] }, text)).toThrow(named)
})

it('a copy of a batch has an identity for each of its messages', () => {
  const messages = [fixtures.track, fixtures.page].map((each) => ({ ...each, messageId: 'm' }))
  const batch = Buffer.from(JSON.stringify(messages))
  const { bytes } = prepare(batch, { edits: [], isCopy: true, form: readForm({ as: 'customer.io' }) })
  const ids = JSON.parse(bytes.toString()).map(({ messageId }: { messageId: string }) => messageId)
  expect(new Set(['m', ...ids]).size).toBe(3)
})

it('statistics tell the rate, the latency of answers, and what failed how often', () => {
  let now = 0
  const statistics = createStatistics(() => now)

  for (let ms = 1; ms <= 100; ms += 1) statistics.add({ ok: true, status: 200, durationMs: ms })
  statistics.add({ ok: false, error: 'timeout', durationMs: 5_000, reason: 'the first' })
  for (let count = 0; count < 2; count += 1) statistics.add({ ok: false, status: 401, durationMs: 1 })
  now = 2_000

  expect(statistics.describe()).toMatch(/^103 sent, 3 .* 52\/s, .*p50 49 ms, p95 95 ms, p99 99 ms, .*100 ms$/)
  expect(statistics.failures()).toMatchObject([
    { kind: '401', count: 2 },
    { kind: 'timeout', count: 1, first: { reason: 'the first' } },
  ])
})
