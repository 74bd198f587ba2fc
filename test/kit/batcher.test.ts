import { expect, it } from 'vitest'
import { createBatcher } from '../../src/kit/batcher.ts'

const faulty = new Error('a faulty item')

/** A batcher of numbers that weigh what they are; each batch waits until the test ends it. */
function setUp({ concurrency = 1 } = {}) {
  const sent: { items: readonly number[]; end(error?: Error): void }[] = []
  const batcher = createBatcher<number>({
    send(items) {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      sent.push({ items, end: (error) => (error === undefined ? resolve() : reject(error)) })
      return promise
    },
    weigh: (item) => item,
    maxWeight: 10,
    concurrency,
    isFaultOfItems: (error) => error === faulty,
  })
  const results: Record<number, unknown> = {}
  const add = (...items: number[]) => {
    for (const item of items) {
      const keep = (result: unknown) => Object.assign(results, { [item]: result })
      batcher.add(item).then(() => keep('sent'), keep)
    }
  }
  return { add, results, sent, batches: () => sent.map(({ items }) => items) }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

it('a batcher sends what one turn adds together, in order, and what comes meanwhile afterwards', async () => {
  const { add, sent, batches, results } = setUp()
  add(3, 1, 2)
  await turn()
  add(5, 4)
  await turn()
  expect(batches()).toEqual([[3, 1, 2]])
  sent[0]?.end()
  await turn()
  expect(batches().slice(1)).toEqual([[5, 4]])
  expect(results).toEqual({ 1: 'sent', 2: 'sent', 3: 'sent' })
})

it('a batcher fills a batch up to its weight, and sends a heavier item alone', async () => {
  const { add, sent, batches } = setUp()
  add(4, 6, 1, 11, 9)
  for (let count = 1; count <= 4; count += 1) {
    await turn()
    expect(sent).toHaveLength(count)
    sent.at(-1)?.end()
  }
  expect(batches()).toEqual([[4, 6], [1], [11], [9]])
})

it('a batcher sends several batches at a time', async () => {
  const { add, sent, batches } = setUp({ concurrency: 2 })
  add(10, 9, 8)
  await turn()
  expect(batches()).toEqual([[10], [9]])
  sent[1]?.end()
  await turn()
  expect(batches()).toEqual([[10], [9], [8]])
})

it('a batcher fails a batch whole when no item is at fault', async () => {
  const { add, sent, results } = setUp()
  const error = new Error('unreachable')
  add(1, 2)
  await turn()
  sent[0]?.end(error)
  await turn()
  expect(results).toEqual({ 1: error, 2: error })
  expect(sent).toHaveLength(1)
})

it('a batcher sends each item alone when one is at fault, and fails only that one', async () => {
  const { add, sent, batches, results } = setUp()
  add(1, 2, 3)
  await turn()
  sent[0]?.end(faulty)
  add(4)
  await turn()
  expect(batches()).toEqual([[1, 2, 3], [1], [2], [3]]) // The next batch waits for them.
  for (const { items, end } of sent.slice(1)) end(items[0] === 2 ? faulty : undefined)
  await turn()
  expect(results).toEqual({ 1: 'sent', 2: faulty, 3: 'sent' })
  sent[4]?.end(faulty)
  await turn()
  expect([results[4], sent.length]).toEqual([faulty, 5])
})
