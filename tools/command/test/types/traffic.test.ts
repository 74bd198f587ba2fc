/** Messages of each kind of source, and what is said of one that holds none. */

import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Redis } from 'ioredis'
import { afterAll, describe, expect, inject, it, onTestFinished } from 'vitest'
import { bullmqQueue } from '../../../../src/queues-bullmq.ts'
import { pgBossQueue } from '../../../../src/queues-pg-boss.ts'
import { sqliteQueue } from '../../../../src/queues-sqlite.ts'
import { createReceiver } from '../../../../src/receive/create-receiver.ts'
import type { Queue } from '../../../../src/store/queue-types.ts'
import { fixtures } from '../../../../src/testing/fixtures.ts'
import { needs } from '../../../../test/support/needs.ts'
import { createSchema } from '../../../../test/support/postgres.ts'
import { deliver, secret } from '../../../../test/support/receive.ts'
import { removeQueue } from '../../../../test/support/redis.ts'
import { createStore } from '../../src/request-store.ts'
import { UsageError } from '../../src/terminal.ts'
import { createInference } from '../../src/types/infer.ts'
import { openTraffic, type TrafficOptions } from '../../src/types/traffic.ts'
import { keptRequest } from '../kept-request.ts'

const folder = await mkdtemp(join(tmpdir(), 'hookline-cli-traffic-'))
afterAll(() => rm(folder, { recursive: true, maxRetries: 9 }))

const DAY_MS = 86_400_000
let files = 0
const newPath = (end = '') => join(folder, `${files++}${end}`)

async function write(text: string | Uint8Array): Promise<string> {
  const path = newPath('.txt') // No name says what a file holds.
  await writeFile(path, text)
  return path
}

async function readAll(location: string, options: TrafficOptions = {}) {
  const traffic = await openTraffic(location, options)
  if (traffic === undefined) return undefined
  const skipped: Record<string, number> = {}
  const seen = []
  for await (const each of traffic.messages((reason) => (skipped[reason] = (skipped[reason] ?? 0) + 1))) seen.push(each)
  return { events: seen.map(({ message }) => 'event' in message && message.event), seen, skipped }
}

const track = (event: string, others: object = {}) => ({ type: 'track', userId: 'u1', event, ...others })
const line = (event: string, others: object = {}) => JSON.stringify(track(event, others))

describe('lines', () => {
  it('hold a message each, and when it was sent', async () => {
    const timestamps = ['2026-01-15T09:30:00.000Z', '2026-01-15', 'yesterday']
    const path = await write(
      `\ufeff${timestamps.map((timestamp) => line('A', { timestamp })).join('\r\n')}\n\n \n${line('B')}`,
    )
    const { events, seen, skipped } = (await readAll(path)) ?? {}
    expect([events, skipped]).toEqual([['A', 'A', 'A', 'B'], {}])
    expect(seen?.map(({ at }) => at)).toEqual([
      Date.UTC(2026, 0, 15, 9, 30),
      Date.UTC(2026, 0, 15),
      undefined,
      undefined,
    ])
  })

  it('may have empty and numeric ids, numeric times and null sections, as real senders write them', async () => {
    const fields = { userId: '', anonymousId: 5, timestamp: 1_768_469_400, properties: null }
    const { seen, skipped } = (await readAll(await write(line('A', fields)))) ?? {}
    expect(skipped).toEqual({})
    expect(seen).toMatchObject([{ at: Date.UTC(2026, 0, 15, 9, 30), message: { anonymousId: '5' } }])
    expect(seen?.[0]?.message).not.toHaveProperty('properties')
  })

  it('that are no message are counted by reason, and never quoted', async () => {
    const lines = [
      'ada@example.com, no JSON',
      '{"broken": ',
      Buffer.from([0x22, 0xff, 0x22]).toString('latin1'),
      '"ada@example.com"',
      '{"type":"ada@example.com"}',
      '{"type":"track","userId":"u1"}',
      `"${'x'.repeat(5_000_000)}"`,
      line('A'),
      `[${line('B')},3,${line('C')}]`,
    ]
    const { events, skipped } = (await readAll(await write(Buffer.from(lines.join('\n'), 'latin1')))) ?? {}
    expect(events).toEqual(['A', 'B', 'C'])
    expect(skipped).toEqual({
      'The body must be valid JSON.': 2,
      'The body must be valid UTF-8.': 1,
      'The body must be one JSON object, not a list.': 2,
      '`type` must be one of page, screen, identify, track, alias, group, delete.': 1,
      '`event` must be a non-empty string.': 1,
      'The body must have at most 5000000 bytes.': 1,
    })
  })

  it('come from stdin', async () => {
    const stdin = Object.getOwnPropertyDescriptor(process, 'stdin') as PropertyDescriptor
    onTestFinished(() => void Object.defineProperty(process, 'stdin', stdin))
    const give = (text: string) =>
      Object.defineProperty(process, 'stdin', { value: Readable.from([Buffer.from(text)]), configurable: true })
    give(`${line('A')}\n${line('B')}\n`)
    expect(await readAll('-')).toMatchObject({ events: ['A', 'B'] })
    give('\n')
    await expect(readAll('-')).rejects.toThrow('SOURCE must hold messages. stdin is empty.')
  })

  it('come from a pipe with a name', needs('POSIX'), async () => {
    const path = newPath()
    execFileSync('mkfifo', [path])
    const [read] = await Promise.all([readAll(path), writeFile(path, `${line('A')}\n${line('B')}\n`)])
    expect(read?.events).toEqual(['A', 'B'])
  })

  it('are read in flat memory', async () => {
    setFlagsFromString('--expose-gc')
    const gc = runInNewContext('gc') as () => void
    const path = newPath()
    const count = 60_000
    function* lines() {
      for (let index = 0; index < count; index += 1) {
        const items = [
          { sku: `sku-${index}`, price: index / 4 },
          { sku: 'x'.repeat(200), price: 1 },
        ]
        yield `${line(`Event ${index % 50}`, { properties: { orderId: randomUUID(), items, note: `n${index}` } })}\n`
      }
    }
    await pipeline(Readable.from(lines()), createWriteStream(path))
    const traffic = await openTraffic(path, {})
    const inference = createInference({ enums: true })
    const used: number[] = []
    let read = 0
    for await (const seen of traffic?.messages(() => {}) ?? []) {
      inference.add(seen)
      read += 1
      if (read % (count / 3) !== 0) continue
      gc()
      used.push(process.memoryUsage().heapUsed)
    }
    expect(inference.rules()).toHaveLength(50)
    const [first = 0, , last = 0] = used
    expect(last - first).toBeLessThan(2_000_000)
  })
})

describe('a file of JSON', () => {
  it('holds one message, or an array of them, on many lines', async () => {
    const pretty = (value: unknown) => JSON.stringify(value, null, 2)
    expect(await readAll(await write(pretty(track('A'))))).toMatchObject({ events: ['A'] })
    const path = await write(pretty([track('A'), { type: 'track' }, track('B')]))
    expect(await readAll(path)).toMatchObject({
      events: ['A', 'B'],
      skipped: { '`userId` must be a non-empty string, or `anonymousId` in its place.': 1 },
    })
  })

  it.each([
    ['a plan', '{"events": [\n{"type": "track", "event": "A"}\n]}'],
    ['a plan on one line', '{"type":"track","event":"A","schema":{}}'],
    ['a plan with an example of a message on a line', `{"examples": [\n${line('A')}\n]}`],
    ['YAML', 'events:\n  - name: A\n'],
    ['text', 'a\n'.repeat(200)],
    ['an empty array', '[]'],
  ])('is no traffic: %s', async (_what, text) => {
    expect(await readAll(await write(text))).toBeUndefined()
  })
})

describe('the store of listen', () => {
  it('holds requests: those whose signature does not match are left out', async () => {
    const path = newPath()
    const store = createStore(path)
    onTestFinished(() => store.close())
    const add = (index: number, body: string, others = {}) =>
      store.append(
        keptRequest(index.toString(16).padStart(12, '0'), { body: Buffer.from(body), receivedAt: index, ...others }),
      )
    add(1, line('A', { timestamp: '2026-01-15' }))
    add(2, line('B'), { verification: 'mismatched' })
    add(3, `[${line('C')},${line('D')}]`, { verification: 'unchecked' })
    add(4, line('E').slice(0, 9), { isComplete: false, verification: 'unchecked' })
    add(5, '')
    const { events, seen, skipped } = (await readAll(path)) ?? {}
    expect(events).toEqual(['A', 'C', 'D'])
    expect(seen?.map(({ at }) => at)).toEqual([1, 3, 3])
    expect(skipped).toEqual({
      'The signature must match.': 1,
      'The upload must be complete.': 1,
      'The body must be valid JSON.': 1,
    })
  })

  it('may be empty', async () => {
    const path = newPath()
    createStore(path).close()
    await expect(readAll(path)).rejects.toThrow(new UsageError(`SOURCE must hold messages. ${path} is empty.`))
  })
})

async function handle(queue: Queue, messages: readonly object[]): Promise<void> {
  const receiver = createReceiver({ secret, inbox: { queue, history: { maxAgeMs: DAY_MS } }, custom: true })
  receiver.on('*', () => {}).start()
  for (const message of messages) await deliver(receiver, message)
  await queue.drain()
  await receiver.close()
}

const redisUrl = inject('redisUrl')
const databaseUrl = inject('databaseUrl')
const schema = databaseUrl === undefined ? undefined : createSchema(databaseUrl)
const redis = redisUrl === undefined ? undefined : new Redis(redisUrl)
const prefix = `traffic-${randomUUID()}`
afterAll(async () => {
  for (const name of ['one', 'two']) if (redis) await removeQueue(redis, name, prefix)
  redis?.disconnect()
  await schema?.drop()
})

const path = newPath('.sqlite')
const database = { connectionString: databaseUrl, schema: schema?.name ?? '', max: 2 }
const engines = [
  { engine: 'SQLite', needed: [], location: path, options: {}, create: (name: string) => sqliteQueue({ path, name }) },
  {
    engine: 'BullMQ',
    needed: ['Redis'] as const,
    location: redisUrl,
    options: { prefix },
    create: (name: string) => bullmqQueue({ name, connection: redisUrl, prefix }),
  },
  {
    engine: 'pg-boss',
    needed: ['PostgreSQL'] as const,
    location: databaseUrl,
    options: { schema: schema?.name ?? '' },
    create: (name: string) => pgBossQueue({ name, ...database }),
  },
]

for (const { engine, needed, location = '', options, create } of engines) {
  it(`the history of inboxes on ${engine}`, needs(...needed), async () => {
    await handle(create('one'), [
      track('A', { timestamp: '2020-01-15' }),
      fixtures.identify,
      { custom: 'ada@example.com' },
    ])
    await handle(create('two'), [track('B')])
    const { events, seen, skipped } = (await readAll(location, options)) ?? {}
    expect(events?.sort()).toEqual(['A', 'B', false])
    expect(Object.values(skipped ?? {})).toEqual([1])
    expect(Math.min(...(seen ?? []).map(({ at }) => at ?? 0))).toBeGreaterThan(Date.now() - DAY_MS)
    expect(await readAll(location, { ...options, name: 'two' })).toMatchObject({ events: ['B'] })
    const unknown = readAll(location, { ...options, name: 'tow' })
    await expect(unknown).rejects.toThrow(UsageError)
    await expect(unknown).rejects.toThrow(/Queue tow .*Got .*'two'/)
  })
}

it('a history without messages', async () => {
  const path = newPath('.sqlite')
  const queue = sqliteQueue({ path, name: 'inbox' })
  await queue.counts()
  await queue.close({ graceMs: 0 })
  await expect(readAll(path)).rejects.toThrow(
    `SOURCE must hold messages. ${path} is empty. The history of a queue is what is handled once`,
  )
})

describe('a source that cannot be read', () => {
  it.each([
    ['does not exist', async () => join(folder, 'missing'), /^SOURCE: \S+ cannot be read: it does not exist\.$/],
    ['is a directory', async () => folder, /^SOURCE: \S+ cannot be read: it is a directory\.$/],
    ['is empty', () => write(''), /^SOURCE must hold messages\. \S+ is empty\.$/],
    ['has only blank lines', () => write('\n \n'), /^SOURCE must hold messages\. \S+ is empty\.$/],
    [
      'is another URL',
      async () => 'https://ada:x@example.com/',
      /^SOURCE must be a file, .* Got another kind of URL\./,
    ],
    ['is a broken URL', async () => 'redis:/x', /^SOURCE must be a full URL\./],
    [
      'is a damaged database',
      () => write(`SQLite format 3\0${'x'.repeat(100)}`),
      /^The command cannot use \S+: it is not a SQLite database/,
    ],
    [
      'does not respond',
      async () => 'redis://ada:x@127.0.0.1:1',
      /^redis:\/\/127\.0\.0\.1:1: Redis did not respond .* that SOURCE points/,
    ],
  ])('%s', async (_what, create, message) => {
    const failed = readAll(await create())
    await expect(failed).rejects.toThrow(UsageError)
    await expect(failed).rejects.toThrow(message)
  })

  it('is a database of something else', async () => {
    const path = newPath()
    const { DatabaseSync } = await import('node:sqlite')
    const database = new DatabaseSync(path)
    database.exec('CREATE TABLE x (y)')
    database.close()
    await expect(readAll(path)).rejects.toThrow(
      new UsageError(
        `The command cannot use ${path}: it holds no queues. Got none of their tables. Check the path, or start what pushes to the queue first.`,
      ),
    )
  })
})
