/** The options of every engine: a wrong one is a TypeError that names it, and shows no password. */

import { Redis } from 'ioredis'
import { PgBoss } from 'pg-boss'
import { describe, expect, it } from 'vitest'
import { bullmqQueue } from '../../src/queues-bullmq.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { pgBossQueue } from '../../src/queues-pg-boss.ts'
import { sqliteQueue } from '../../src/queues-sqlite.ts'
import { jobOf } from '../support/queues.ts'

const connectionString = 'postgres://user:swordfish@127.0.0.1:1/db'
const connection = 'redis://:swordfish@127.0.0.1:6379'
const path = '/nowhere/jobs.sqlite'
const boss = new PgBoss(connectionString)
const withoutTransactions = new PgBoss({ db: { executeSql: async () => ({ rows: [] }) } })

type Wrong = readonly [name: string, options: object]

const inEach: readonly Wrong[] = [
  ['name', { name: '' }],
  ['name', { name: 5 }],
  ['dedupeWindowMs', { dedupeWindowMs: 0.5 }],
  ['deadLetterRetentionMs', { deadLetterRetentionMs: 0 }],
  ['concurrency', { concurrency: 5 }],
]
const inDurable: readonly Wrong[] = [
  ...inEach,
  ['pollMs', { pollMs: 0 }],
  ['observe', { observe: 'yes' }],
  ['timeoutMs', { timeoutMs: Number.POSITIVE_INFINITY }],
  ['onError', { onError: 'log' }],
  ['logger.error', { logger: {} }],
]
const clocks: readonly Wrong[] = [
  ['clock.now', { clock: null }],
  ['clock.setTimeout', { clock: { now: () => 0, monotonic: () => 0 } }],
]

const engines: Record<
  string,
  { readonly create: (options: never) => unknown; valid: object; wrong: readonly Wrong[] }
> = {
  memoryQueue: {
    create: memoryQueue,
    valid: {},
    wrong: [
      ...inEach,
      ...clocks,
      ['maxJobs', { maxJobs: Number.POSITIVE_INFINITY }],
      ['maxBytes', { maxBytes: 1.5 }],
      ['maxDeadLetters', { maxDeadLetters: '5' }],
      ['maxjobs', { maxjobs: 5 }],
    ],
  },
  sqliteQueue: {
    create: sqliteQueue,
    valid: { path },
    wrong: [
      ...inDurable,
      ...clocks,
      ['path', { path: undefined }],
      ['path', { path: ':memory:' }],
      ['path', { path: 'file:jobs.db' }],
      ['maxJobs', { maxJobs: 0 }],
      ['leaseMs', { leaseMs: 1000 }],
    ],
  },
  bullmqQueue: {
    create: bullmqQueue,
    valid: { name: 'a', connection },
    wrong: [
      ...inDurable,
      ['name', { name: 'a:b' }],
      ['connection', { connection: undefined }],
      ['connection', { connection: '' }],
      ['connection', { connection: 'http://:swordfish@127.0.0.1' }],
      ['connection', { connection: ':swordfish' }],
      ['connection', { connection: { keyPrefix: 'app:' } }],
      ['connection', { connection: new Redis({ keyPrefix: 'app:', lazyConnect: true }) }],
      ['prefix', { prefix: '' }],
      ['leaseMs', { leaseMs: 99 }],
      ['allowEviction', { allowEviction: 1 }],
    ],
  },
  pgBossQueue: {
    create: pgBossQueue,
    valid: { name: 'x', connectionString },
    wrong: [
      ...inDurable,
      ...clocks,
      ...['__proto__', 'constructor', "it's", 'orders-groups'].map((name): Wrong => ['name', { name }]),
      ...[undefined, '', 5, 'user:swordfish@127.0.0.1', 'postgres://user:swordfish@:x'].map(
        (address): Wrong => ['connectionString', { connectionString: address }],
      ),
      ['boss', { boss }],
      ...[null, {}, withoutTransactions].map((other): Wrong => ['boss', { connectionString: undefined, boss: other }]),
      ['max', { connectionString: undefined, boss, max: 3 }],
      ['max', { max: 0 }],
      ...['1st', 'a;b', 5].map((schema): Wrong => ['schema', { schema }]),
      ['leaseMs', { leaseMs: 9_999 }],
      ['leaseMs', { leaseMs: 24 * 60 * 60_000 + 1 }],
    ],
  },
}

describe.each(Object.entries(engines))('%s refuses', (name, { create, valid, wrong }) => {
  it.each(wrong)('a wrong %s: %j', (option, options) => {
    const createWrong = () => create({ ...valid, ...options } as never)
    expect(createWrong).toThrow(TypeError)
    expect(createWrong).toThrow(`\`${option}\``)
    expect(createWrong).not.toThrow('swordfish')
  })

  it.each([null, 'orders'])('%j in place of options', (options) => {
    expect(() => create(options as never)).toThrow(`\`${name}: options\``)
  })
})

it('a memoryQueue needs no options', async () => {
  const queue = memoryQueue()
  await queue.push([jobOf()])
  expect(await queue.close({ graceMs: 0 })).toHaveLength(1)
})

it('pgBossQueue accepts a schema in double quotes, and a PostgreSQL that does not run: pushes say so', async () => {
  const queue = pgBossQueue({ name: 'x', connectionString, schema: '"My schema"', onError: () => {} })
  const error = await queue.push([jobOf()]).catch((reason: unknown) => reason)
  expect(error).toMatchObject({ code: 'queue_unavailable', status: 503, cause: { code: 'ECONNREFUSED' } })
  expect(String(error)).not.toContain('swordfish')
  await queue.close({ graceMs: 0 })
})
