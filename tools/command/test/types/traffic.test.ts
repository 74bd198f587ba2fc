/** Messages of each kind of source, and what is said of one that holds none. */

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sqliteQueue } from 'hookline/queues/sqlite'
import { fixtures } from 'hookline/testing'
import { afterAll, expect, it, onTestFinished } from 'vitest'
import { createStore } from '../../src/request-store.ts'
import { UsageError } from '../../src/terminal.ts'
import { createFolder, expectUsage, hookline } from '../command.ts'
import { createEmptyQueue, handle } from '../inbox.ts'
import { keptRequest } from '../kept-request.ts'
import { readTraffic } from './read-traffic.ts'

const folder = await createFolder(afterAll)

let files = 0
const newPath = () => join(folder, `${files++}.txt`) // No name says what a file holds.

async function write(text: string | Uint8Array): Promise<string> {
  const path = newPath()
  await writeFile(path, text)
  return path
}

const track = (event: string, others: object = {}) => ({ type: 'track', userId: 'u1', event, ...others })
const line = (event: string, others: object = {}) => JSON.stringify(track(event, others))

it('lines hold a message each, and when it was sent', async () => {
  const timestamps = ['2026-01-15T09:30:00.000Z', '2026-01-15', 'yesterday']
  const lines = timestamps.map((timestamp) => line('A', { timestamp }))
  const path = await write(`\ufeff${lines.join('\r\n')}\n\n \n${line('B')}`)
  const { events, seen, skipped } = (await readTraffic(path)) ?? {}
  expect([events, skipped]).toEqual([['A', 'A', 'A', 'B'], {}])
  const times = [Date.UTC(2026, 0, 15, 9, 30), Date.UTC(2026, 0, 15), undefined, undefined]
  expect(seen?.map(({ at }) => at)).toEqual(times)
})

it('lines that are no message are counted by reason, and never quoted', async () => {
  const lines = [
    ...['ada@example.com, no JSON', '{"broken": ', Buffer.from([0x22, 0xff, 0x22]).toString('latin1')],
    ...['"ada@example.com"', '{"type":"ada@example.com"}', '{"type":"track","userId":"u1"}'],
    ...[`"${'x'.repeat(5_000_000)}"`, line('A'), `[${line('B')},3,${line('C')}]`],
  ]
  const { events, skipped = {} } = (await readTraffic(await write(Buffer.from(lines.join('\n'), 'latin1')))) ?? {}
  expect(events).toEqual(['A', 'B', 'C'])
  expect(Object.values(skipped).sort()).toEqual([1, 1, 1, 1, 2, 2])
  expect(Object.keys(skipped).join()).not.toContain('ada')
})

it('lines come from stdin', async () => {
  const { stdout } = await hookline(['types', '-'], { input: `${line('A')}\n${line('B')}\n` })
  expect(stdout).toMatch(/ A: .*\n.* B: /s)
  expectUsage(await hookline(['types', '-'], { input: '\n' }), 'stdin')
})

it('a file of JSON holds one message, or an array of them, on many lines', async () => {
  const read = async (value: unknown) => readTraffic(await write(JSON.stringify(value, null, 2)))
  expect(await read(track('A'))).toMatchObject({ events: ['A'] })
  const several = await read([track('A'), { type: 'track' }, track('B')])
  expect(several?.events).toEqual(['A', 'B'])
  expect(Object.entries(several?.skipped ?? {})).toEqual([[expect.stringContaining('`userId`'), 1]])
})

it.each([
  ['a plan', '{"events": [\n{"type": "track", "event": "A"}\n]}'],
  ['a plan on one line', '{"type":"track","event":"A","schema":{}}'],
  ['a plan with an example of a message on a line', `{"examples": [\n${line('A')}\n]}`],
  ['YAML', 'events:\n  - name: A\n'],
  ['text', 'a\n'.repeat(200)],
  ['an empty array', '[]'],
])('%s is no traffic', async (_what, text) => {
  expect(await readTraffic(await write(text))).toBeUndefined()
})

it('the store of listen holds requests: those whose signature does not match are left out', async () => {
  const path = newPath()
  const store = createStore(path)
  onTestFinished(() => store.close())
  const requests = [
    { body: line('A', { timestamp: '2026-01-15' }) },
    { body: line('B'), verification: 'mismatched' as const },
    { body: `[${line('C')},${line('D')}]`, verification: 'unchecked' as const },
    { body: line('E').slice(0, 9), isComplete: false, verification: 'unchecked' as const },
    { body: '' },
  ]
  for (const [at, { body, ...others }] of requests.entries()) {
    store.append(keptRequest(`00000000000${at}`, { body: Buffer.from(body), receivedAt: at, ...others }))
  }

  const { events, seen, skipped } = (await readTraffic(path)) ?? {}

  expect(events).toEqual(['A', 'C', 'D'])
  expect(seen?.map(({ at }) => at)).toEqual([0, 2, 2])
  expect(Object.values(skipped ?? {})).toEqual([1, 1, 1])
})

it('the history of inboxes holds messages, and those of other forms are left out', async () => {
  const path = newPath()
  const custom = { custom: 'ada@example.com' }
  const old = track('A', { timestamp: '2020-01-15' })
  await handle(sqliteQueue({ path, name: 'one' }), [old, fixtures.identify, custom])
  await handle(sqliteQueue({ path, name: 'two' }), [track('B')])

  const { events, seen = [], skipped } = (await readTraffic(path)) ?? {}

  expect(events?.sort()).toEqual(['A', 'B', false])
  expect(Object.values(skipped ?? {})).toEqual([1])
  expect(Math.min(...seen.map(({ at }) => at ?? 0))).toBeGreaterThan(Date.UTC(2026, 0))
  expect(await readTraffic(path, { name: 'two' })).toMatchObject({ events: ['B'] })
  await expect(readTraffic(path, { name: 'tow' })).rejects.toThrow(/\btow\b.*'two'/)
})

it.each<[string, () => Promise<string>, RegExp]>([
  ['does not exist', async () => join(folder, 'missing'), /SOURCE.*missing/],
  ['is a directory', async () => folder, /SOURCE.*directory/],
  ['is empty', () => write(''), /SOURCE.*\.txt.*empty/],
  ['is another URL', async () => 'https://ada:x@example.com/', /^(?!.*ada)SOURCE/],
  ['is a broken URL', async () => 'redis:/x', /^SOURCE.*URL/],
  ['is a damaged database', () => write(`SQLite format 3\0${'x'.repeat(100)}`), /\.txt.*not a SQLite database/],
  ['is a history without messages', emptyQueue, /SOURCE.*\.txt.*empty.*history/],
])('a source that %s is wrong usage', async (_what, create, message) => {
  const failed = readTraffic(await create())
  await expect(failed).rejects.toThrow(UsageError)
  await expect(failed).rejects.toThrow(message)
})

async function emptyQueue(): Promise<string> {
  const path = newPath()
  await createEmptyQueue(path)
  return path
}
