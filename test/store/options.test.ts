/** The options of every engine: a wrong one is a TypeError that names it, and shows no password. */

import { resolve } from 'node:path'
import { Redis } from 'ioredis'
import { PgBoss } from 'pg-boss'
import { describe, expect, it } from 'vitest'
import { systemClock as clock } from '../../src/kit/clock.ts'
import { bullmqQueue } from '../../src/queues-bullmq.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { pgBossQueue } from '../../src/queues-pg-boss.ts'
import { sqliteQueue } from '../../src/queues-sqlite.ts'
import { readOptions as readBullmq } from '../../src/store/bullmq/bullmq-options.ts'
import { readOptions as readPgBoss } from '../../src/store/pg-boss/pg-boss-options.ts'
import { readOptions as readSqlite } from '../../src/store/sqlite/sqlite-options.ts'
import { jobOf } from '../support/queues.ts'

const connectionString = 'postgres://user:swordfish@127.0.0.1:1/db'
const connection = 'redis://:swordfish@127.0.0.1:6379'
const boss = new PgBoss(connectionString)
const withoutTransactions = new PgBoss({ db: { executeSql: async () => ({ rows: [] }) } })

type Wrong = readonly [name: string, options: object]

const inEach: readonly Wrong[] = [
  ['name', { name: '' }],
  ['concurrency', { concurrency: 5 }],
]
const inDurable: readonly Wrong[] = [
  ...inEach,
  ['observe', { observe: 'yes' }],
  ['onError', { onError: 'log' }],
  ['logger.error', { logger: {} }],
]
const clockless: Wrong = ['clock.now', { clock: null }]

const [DAY, INTEGER, TIMER] = [24 * 60 * 60_000, Number.MAX_SAFE_INTEGER, 2 ** 31 - 1]
const counted = [1, INTEGER] as const
const timed = [1, TIMER] as const
const kept = { dedupeWindowMs: counted, deadLetterRetentionMs: counted }
const looked = { ...kept, pollMs: timed, timeoutMs: timed }
const byDefault = { dedupeWindowMs: DAY, observe: false, onError: expect.any(Function) }

interface Engine {
  readonly create: (options: never) => unknown
  readonly read: (options: never) => unknown
  readonly valid: object
  readonly defaults: object
  /** The least and the most of each number. */
  readonly bounds: Readonly<Record<string, readonly [least: number, most: number]>>
  readonly wrong: readonly Wrong[]
}

const engines: Record<string, Engine> = {
  memoryQueue: {
    create: memoryQueue,
    read: memoryQueue,
    valid: {},
    defaults: { isDurable: false, isTransactional: false, hasGroups: true, leaseMs: undefined },
    bounds: { ...kept, maxJobs: counted, maxBytes: counted, maxDeadLetters: counted },
    wrong: [...inEach, clockless, ['maxDeadLetters', { maxDeadLetters: '5' }], ['maxjobs', { maxjobs: 5 }]],
  },
  sqliteQueue: {
    create: sqliteQueue,
    read: readSqlite,
    valid: { path: resolve('/nowhere/jobs.sqlite') },
    defaults: { ...byDefault, name: 'default', pollMs: 500, maxJobs: INTEGER, timeoutMs: 2_000, clock },
    bounds: { ...looked, maxJobs: counted, timeoutMs: [0, 60_000] },
    wrong: [
      ...inDurable,
      clockless,
      ['path', { path: ':memory:' }],
      ['path', { path: 'file:jobs.db' }],
      ['leaseMs', { leaseMs: 1000 }],
    ],
  },
  bullmqQueue: {
    create: bullmqQueue,
    read: readBullmq,
    valid: { name: 'a', connection },
    defaults: { ...byDefault, prefix: 'bull', pollMs: 100, leaseMs: 20_000, timeoutMs: 3_000, allowEviction: false },
    bounds: { ...looked, leaseMs: [100, TIMER] },
    wrong: [
      ...inDurable,
      ['name', { name: 'a:b' }],
      ['connection', { connection: undefined }],
      ['connection', { connection: 'http://:swordfish@127.0.0.1' }],
      ['connection', { connection: ':swordfish' }],
      ['connection', { connection: new Redis({ keyPrefix: 'app:', lazyConnect: true }) }],
      ['prefix', { prefix: '' }],
      ['allowEviction', { allowEviction: 1 }],
    ],
  },
  pgBossQueue: {
    create: pgBossQueue,
    read: readPgBoss,
    valid: { name: 'x', connectionString },
    defaults: { ...byDefault, schema: 'pgboss', pollMs: 1_000, leaseMs: 15_000, max: 5, timeoutMs: 3_000, clock },
    bounds: { ...looked, dedupeWindowMs: [1_000, INTEGER], leaseMs: [10_000, DAY], max: timed },
    wrong: [
      ...inDurable,
      clockless,
      ...['__proto__', "it's", 'orders-groups'].map((name): Wrong => ['name', { name }]),
      ['connectionString', { connectionString: undefined }],
      ['connectionString', { connectionString: 'user:swordfish@127.0.0.1' }],
      ['connectionString', { connectionString: 'postgres://user:swordfish@:x' }],
      ['boss', { boss }],
      ['boss', { connectionString: undefined, boss: withoutTransactions }],
      ['max', { connectionString: undefined, boss, max: 3 }],
      ['schema', { schema: 'a;b' }],
    ],
  },
}

describe.each(Object.entries(engines))('%s', (name, { create, read, valid, defaults, bounds, wrong }) => {
  it('has defaults for what is left out or undefined', () => {
    const none = Object.fromEntries(Object.keys(bounds).map((option) => [option, undefined]))
    const all = expect.objectContaining({ ...valid, ...defaults })
    expect([valid, { ...none, ...valid }].map((given) => read(given as never))).toEqual([all, all])
  })

  it.each(Object.entries(bounds))('takes whole numbers as %s, in its bounds: %j', (option, [least, most]) => {
    const readWith = (value: number) => read({ ...valid, [option]: value } as never)
    for (const value of [least, most]) expect(readWith(value)).toBeDefined()
    for (const value of [least - 1, most + 1, least + 0.5]) expect(() => readWith(value)).toThrow(`\`${option}\``)
  })

  it.each(wrong)('refuses a wrong %s: %j', (option, options) => {
    const createWrong = () => create({ ...valid, ...options } as never)
    expect(createWrong).toThrow(TypeError)
    expect(createWrong).toThrow(`\`${option}\``)
    expect(createWrong).not.toThrow('swordfish')
  })

  it('refuses no object in place of options', () => {
    expect(() => create(null as never)).toThrow(`\`${name}: options\``)
  })
})

it('pgBossQueue accepts a schema in double quotes, and a PostgreSQL that does not run: pushes say so', async () => {
  const queue = pgBossQueue({ name: 'x', connectionString, schema: '"My schema"', onError: () => {} })
  const error = await queue.push([jobOf()]).catch((reason: unknown) => reason)
  expect(error).toMatchObject({ code: 'queue_unavailable', status: 503, cause: { code: 'ECONNREFUSED' } })
  expect(String(error)).not.toContain('swordfish')
  await queue.close({ graceMs: 0 })
})
