import { once } from 'node:events'
import { copyFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ClaimedJob, Outcome, Queue } from '../../../src/queues/queue.ts'
import { sqliteQueue } from '../../../src/queues/sqlite/index.ts'
import { manualClock } from '../../../src/testing/manual-clock.ts'
import { sqliteQueueHere } from '../../support/sqlite.ts'
import { until } from '../../support/until.ts'
import { bodiesOf, hurryTime, newFile, start, work } from './set-up.ts'

// A process of release 0.1 wrote it by a clock that began at START, and was killed while it held two jobs.
const FIXTURE = fileURLToPath(new URL('fixtures/0.1/queue.sqlite', import.meta.url))
const START = Date.parse('2026-01-15T12:00:00Z')
const LATER = Date.parse('2026-01-16T00:00:00Z')
const idOf = (number: number) => `00000000-0000-4000-8000-${`${number}`.padStart(12, '0')}`
const text = (bytes: Uint8Array | undefined) => bytes && `${Buffer.from(bytes)}`

function setUp() {
  const path = newFile()
  copyFileSync(FIXTURE, path)
  const clock = manualClock(START + 60_000)
  function open(name: string): Queue {
    const queue = sqliteQueueHere({ path, name, clock })
    onTestFinished(async () => void (await queue.close({ graceMs: 0 })))
    return queue
  }
  return { path, clock, open }
}

/** A connection as another process has it. */
function connect(path: string): DatabaseSync {
  const database = new DatabaseSync(path)
  onTestFinished(() => (database.isOpen ? database.close() : undefined))
  return database
}

function summaryOf({ id, body, claimCount, firstAt, retryState }: ClaimedJob) {
  return [id, text(body), claimCount, firstAt.getTime() - START, text(retryState)]
}

describe('a file of release 0.1', () => {
  it('keeps what waits, now and later, of each queue', async () => {
    const { open, clock } = setUp()
    const [orders, users] = [open('orders'), open('users')]
    expect(await orders.counts()).toMatchObject({ waiting: 4, active: 0, deadLetters: 2 })
    expect(await users.counts()).toMatchObject({
      waiting: 3,
      active: 0,
      deadLetters: 0,
      oldestDueAt: new Date(START + 3000),
    })
    const seen = work(users)
    await users.drain()
    expect(bodiesOf(seen)).toEqual(['waiting a', 'waiting b \u0000'])
    await clock.advance(LATER + 1000 - clock.now())
    await users.drain()
    expect(bodiesOf(seen)).toEqual(['waiting a', 'waiting b \u0000', 'later too'])
  })

  it('gives back what its process had claimed, and keeps counts, first times and retry states', async () => {
    const { open, clock } = setUp()
    const queue = open('orders')
    const outcomes: Outcome[] = []
    const seen = work(queue, () => outcomes.shift() ?? { complete: true }, 1)
    await queue.drain()
    expect(seen.map(summaryOf)).toEqual([
      [idOf(5), 'claimed', 2, 1000, undefined],
      [idOf(6), 'claimed twice', 3, 1000, 'second'],
    ])
    await clock.advance(LATER - clock.now())
    await queue.drain()
    expect(seen.slice(2).map(summaryOf)).toEqual([
      [idOf(2), 'retried', 2, 1000, 'retry state \u0000'],
      [idOf(7), 'later', 1, LATER - START, undefined],
    ])
    expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, deadLetters: 2 })
  })

  it('keeps its dead letters, which can be redriven and dropped', async () => {
    const { open } = setUp()
    const queue = open('orders')
    const failedAt = new Date(START + 1000)
    const letters = await queue.deadLetters()
    expect(
      letters.map((letter) => ({ ...letter, body: text(letter.body), retryState: text(letter.retryState) })),
    ).toEqual([
      { id: idOf(3), body: 'failed', reason: 'it failed', retryState: undefined, failedAt },
      { id: idOf(4), body: 'failed with state', reason: 'it failed \u0000 too', retryState: 'dead state', failedAt },
    ])
    expect(await queue.drop([idOf(3)])).toBe(1)
    expect(await queue.redrive('all')).toBe(1)
    const seen = work(queue)
    await queue.drain()
    expect(seen.filter(({ id }) => id === idOf(4))).toMatchObject([{ claimCount: 1, retryState: undefined }])
  })

  it('knows its ids: of what waits, of dead letters, and of complete jobs for the dedupe window', async () => {
    const { open, clock } = setUp()
    const queue = open('orders')
    const push = () =>
      queue.push([1, 2, 3, 4, 5, 6, 7].map((number) => ({ id: idOf(number), body: Buffer.from('new') })))
    await push()
    expect(await queue.counts()).toMatchObject({ waiting: 4, deadLetters: 2 })
    await clock.advance(START + 1000 + 24 * 60 * 60_000 - clock.now() - 1)
    await push()
    expect(await queue.counts()).toMatchObject({ waiting: 4 })
    await clock.advance(1)
    await push()
    expect(await queue.counts()).toMatchObject({ waiting: 5 })
  })

  it('becomes the same file as a new one', async () => {
    const { path, open } = setUp()
    await open('orders').counts()
    const fresh = newFile()
    await sqliteQueueHere({ path: fresh }).close({ graceMs: 0 })
    const columnsOf = (file: string) =>
      connect(file)
        .prepare(`
          SELECT t.name AS tableName, c.name AS columnName, c.type, c."notnull" FROM sqlite_schema t, pragma_table_info(t.name) c
          WHERE t.name LIKE 'hookline%' ORDER BY t.name, c.name`)
        .all()
    expect(columnsOf(path)).toEqual(columnsOf(fresh))
  })

  it('is refused while a process has it open, before anything has changed; taken when that has ended', async () => {
    const { path, open } = setUp()
    const old = connect(path) // As a process of 0.1 that is idle.
    const dump = () => old.prepare('SELECT name, sql FROM sqlite_schema ORDER BY name').all()
    const before = dump()
    hurryTime()
    expect(() => sqliteQueue({ path, name: 'orders' })).toThrow(
      expect.objectContaining({
        code: 'queue_unavailable',
        message: `Queue orders cannot use ${path}: a process of Hookline 0.1 has it open. Got tables of 0.1 and 'database is locked'. Stop all processes of 0.1, and open it again.`,
      }),
    )
    expect(dump()).toEqual(before)
    old.close()
    expect(await open('orders').counts()).toMatchObject({ waiting: 4 })
  })

  it('is taken when its process was killed, whatever its leases say', async () => {
    const { path, open } = setUp()
    const database = new DatabaseSync(path)
    database.exec(`UPDATE hookline_queue_owners SET until = ${Date.now() + 30_000}`)
    database.close()
    expect(await open('orders').counts()).toMatchObject({ waiting: 4 })
  })

  it('is opened by several processes that waited for another one: they do not wait for each other then', async () => {
    const { path } = setUp()
    const old = connect(path)
    old.prepare('SELECT name FROM sqlite_schema').all()
    const programs = Array.from({ length: 3 }, () => start(path, 'close', 'tell'))
    await until(() => programs.every(({ lines }) => lines.includes('waits')))
    old.close()
    for (const { child } of programs) child.stdin?.write('go\n')
    await Promise.all(programs.map(({ child }) => once(child, 'close')))
    expect(programs.map(({ lines }) => lines.at(-1))).toEqual(Array(3).fill('closed'))
  }, 30_000)

  it('is opened by several processes at once: one of them brings it up to date', async () => {
    const { path } = setUp()
    const programs = Array.from({ length: 4 }, () => start(path, 'close'))
    for (const { child } of programs) child.stdin?.write('go\n')
    // Not exit: what they printed may not have been read then.
    await Promise.all(programs.map(({ child }) => once(child, 'close')))
    expect(programs.map(({ lines }) => lines.at(-1))).toEqual(Array(4).fill('closed'))
  }, 30_000)
})
