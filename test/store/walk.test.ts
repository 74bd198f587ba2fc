/** The one way to read all that is stored: how long it holds the event loop, and how much it has in memory. */

import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { memoryQueue } from '../../src/queues-memory.ts'
import { sqliteQueue } from '../../src/queues-sqlite.ts'
import type { Receiver } from '../../src/receive/receiver-types.ts'
import type { DeadLetterPage, Queue } from '../../src/store/queue-types.ts'
import { pagesOf, takePage, walk, walkLetters } from '../../src/store/walk.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { type ManualClock, manualClock } from '../../src/testing/manual-clock.ts'
import { setUpInbox } from '../support/inbox.ts'
import { readAll } from '../support/read-all.ts'
import { deliver } from '../support/receive.ts'
import { until } from '../support/until.ts'
import { newFile } from './sqlite/set-up.ts'

let spentMs = 0
const now = performance.now.bind(performance)

/** Makes time pass for walks when the test says so, and counts the turns of the event loop. */
function watchTurns() {
  let turn = 0
  spentMs += 10 // The time of a turn that a test before has begun is over.
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => now() + spentMs)
  const count = (): void => {
    turn += 1
    counting = setImmediate(count)
  }
  let counting = setImmediate(count)
  onTestFinished(() => {
    clearImmediate(counting)
    spy.mockRestore()
  })
  return {
    spend(ms: number): void {
      spentMs += ms
    },
    turn: () => turn,
  }
}

const most = (turns: readonly number[]): number =>
  Math.max(...[...Map.groupBy(turns, (turn) => turn).values()].map(({ length }) => length))

describe('a walk', () => {
  it('lets everything else run once its time of a turn is over', async () => {
    const { spend, turn } = watchTurns()
    const turns: number[] = []
    for await (const _ of walk([Array(20), Array(20)])) {
      turns.push(turn())
      spend(1)
    }
    expect(turns).toHaveLength(40)
    expect(most(turns)).toBeLessThanOrEqual(5)
  })

  it('ends at an empty page alone: one that ends early is full of bytes', async () => {
    const pages = [['a', 'b'], ['c'], ['d', 'e'], []]
    const lasts: unknown[] = []
    const list = async (_: unknown, last: string | undefined) => {
      lasts.push(last)
      return pages.shift() ?? []
    }
    const read = await readAll(walk(pagesOf<string>(list, { limit: 2, maxBytes: 1 })))
    expect(read).toEqual(['a', 'b', 'c', 'd', 'e'])
    expect(lasts).toEqual([undefined, 'b', 'c', 'e'])
  })

  it('reads pages that hold no more bytes than they may, and at least one entry', () => {
    const entries = [2, 2, 1].map((size) => ({ body: new Uint8Array(size) }))
    const sizeOf = (limit: number, maxBytes: number) => takePage(entries, { limit, maxBytes }).length
    expect([sizeOf(9, 4), sizeOf(9, 1), sizeOf(1, 9), sizeOf(9, 5)]).toEqual([2, 1, 1, 3])
  })

  it('reads each dead letter once, also when the last one of a page goes', async () => {
    const letters = Array.from({ length: 7 }, (_, index) => ({ id: `${index}` }))
    const list = async ({ after, limit }: DeadLetterPage) => {
      if (after === '2') letters.splice(2, 1) // Then the first page follows.
      const start = letters.findIndex(({ id }) => id === after) + 1
      return letters.slice(start, start + (limit ?? 0))
    }
    const read = await readAll(walkLetters(list, {}, { limit: 3, maxBytes: 1 }))
    expect(read.map(({ id }) => id)).toEqual(['0', '1', '2', '3', '4', '5', '6'])
  })
})

const MESSAGES = 10
const LARGE = 480_000

type Fate = 'wait' | 'fail' | 'keep'

/** Messages that are large, and whose parsing takes as long as a walk has in one turn. Notes what is asked of the engine. */
async function storeLarge(createEngine: (clock: ManualClock) => Queue, fate: Fate) {
  const pages: number[] = []
  const noted =
    <Page extends readonly { readonly body: Uint8Array }[], Args extends unknown[]>(
      list: (...args: Args) => Promise<Page>,
    ) =>
    async (...args: Args): Promise<Page> => {
      const page = await list(...args)
      pages.push(page.reduce((sum, { body }) => sum + body.byteLength, 0))
      return page
    }
  const clock = manualClock()
  const engine = createEngine(clock)
  const { list } = engine.log as NonNullable<Queue['log']>
  const queue: Queue = { ...engine, deadLetters: noted(engine.deadLetters), log: { list: noted(list) } }
  const set = setUpInbox({ queue, retries: [], history: { maxAgeMs: 1e9 } }, { limit: 600_000, clock })
  const { receiver } = set
  for (let index = 0; index < MESSAGES; index += 1) {
    const large = { ...fixtures.track, event: 'Sold', properties: { text: 'x'.repeat(LARGE) } }
    await deliver(receiver, { ...large, messageId: `${index}`, userId: `user-${index % 3}` })
  }
  receiver.on('track', () => {
    if (fate === 'fail') throw new Error('no')
  })
  if (fate !== 'wait') receiver.start()
  await until(async () => {
    await clock.advance(1_000)
    const { waiting, active } = await queue.counts()
    return waiting + active === (fate === 'wait' ? MESSAGES : 0)
  })
  void queue.pause() // What is redriven or replayed waits.
  const { spend, turn } = watchTurns()
  const parsed: number[] = []
  const parse = JSON.parse
  vi.spyOn(JSON, 'parse').mockImplementation((...args) => {
    if (args[0].length > LARGE) {
      parsed.push(turn())
      spend(5)
    }
    return parse(...args)
  })
  onTestFinished(async () => {
    vi.mocked(JSON.parse).mockRestore()
    await receiver.close({ graceMs: 0 })
  })
  return { ...set, pages, parsed }
}

const [userId, dryRun, some, all] = ['user-1', true, { length: 3 }, { length: MESSAGES }] as const
const OPERATIONS: readonly [what: string, Fate, (of: Receiver) => Promise<unknown>, result: object | number][] = [
  ['forgets a user who waits', 'wait', (of) => of.forget(userId), { deleted: 3, active: 0 }],
  ['forgets a user who failed', 'fail', (of) => of.forget(userId), { deleted: 3, active: 0 }],
  ['forgets a user of the history', 'keep', (of) => of.forget(userId), { deleted: 3, active: 0 }],
  ['lists dead letters', 'fail', (of) => of.deadLetters(), all],
  ['lists some', 'fail', (of) => of.deadLetters({ userId }), some],
  ['counts dead letters', 'fail', (of) => of.redrive({ type: 'track' }, { dryRun }), { count: MESSAGES }],
  ['redrives some', 'fail', (of) => of.redrive({ userId, reason: 'handler_failed' }), 3],
  ['drops some', 'fail', (of) => of.drop({ userId, type: 'track' }), 3],
  ['lists the history', 'keep', (of) => readAll(of.history()), all],
  ['lists some of it', 'keep', (of) => readAll(of.history({ event: 'Sold' })), all],
  ['counts a replay', 'keep', (of) => of.replay({ dryRun, type: 'track' }), { count: MESSAGES }],
  ['replays', 'keep', (of) => of.replay({ userId }), { count: 3 }],
]

const inMemory = (clock: ManualClock) => memoryQueue({ name: 'inbox', clock })
const inFile = (clock: ManualClock) => sqliteQueue({ path: newFile(), clock })

describe('an inbox with large messages', () => {
  it.each([
    ...OPERATIONS.map(([what, ...rest]) => [`in memory ${what}`, inMemory, ...rest] as const),
    ...OPERATIONS.slice(0, 3).map(([what, ...rest]) => [`in a SQLite file ${what}`, inFile, ...rest] as const),
  ])(
    '%s: one message is parsed in a turn, and a page has 4 MB at most',
    async (_what, createEngine, fate, run, result) => {
      const { receiver, pages, parsed } = await storeLarge(createEngine, fate)
      const found = await run(receiver)
      expect({ found }).toMatchObject({ found: result })
      expect(parsed.length).toBeGreaterThan(0)
      expect(most(parsed)).toBe(1)
      expect(Math.max(0, ...pages)).toBeLessThanOrEqual(4 * 1024 * 1024)
    },
  )

  it.each<[string, Fate, (receiver: Receiver) => Promise<unknown>]>([
    ['dead letter', 'fail', (receiver) => receiver.deadLetters({ limit: 1 })],
    ['handled message', 'keep', (receiver) => readAll(receiver.history({ limit: 1 }))],
  ])('asks its engine for no more than one %s when that is the limit', async (_what, fate, run) => {
    const { receiver, pages } = await storeLarge(inMemory, fate)
    await run(receiver)
    expect(pages).toEqual([expect.any(Number)])
    expect(pages[0]).toBeLessThan(2 * LARGE)
  })
})
