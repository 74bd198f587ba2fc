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
const boss = new PgBoss(connectionString)
const withoutTransactions = new PgBoss({ db: { executeSql: async () => ({ rows: [] }) } })

type Wrong = readonly [name: string, options: object]

const inEach: readonly Wrong[] = [
  ['name', { name: '' }],
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
const clock: Wrong = ['clock.now', { clock: null }]

interface Engine {
  readonly create: (options: never) => unknown
  readonly valid: object
  readonly wrong: readonly Wrong[]
}

const engines: Record<string, Engine> = {
  memoryQueue: {
    create: memoryQueue,
    valid: {},
    wrong: [
      ...inEach,
      clock,
      ['maxJobs', { maxJobs: Number.POSITIVE_INFINITY }],
      ['maxBytes', { maxBytes: 1.5 }],
      ['maxDeadLetters', { maxDeadLetters: '5' }],
      ['maxjobs', { maxjobs: 5 }],
    ],
  },
  sqliteQueue: {
    create: sqliteQueue,
    valid: { path: '/nowhere/jobs.sqlite' },
    wrong: [
      ...inDurable,
      clock,
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
      ['connection', { connection: 'http://:swordfish@127.0.0.1' }],
      ['connection', { connection: ':swordfish' }],
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
      clock,
      ...['__proto__', "it's", 'orders-groups'].map((name): Wrong => ['name', { name }]),
      ['connectionString', { connectionString: undefined }],
      ['connectionString', { connectionString: 'user:swordfish@127.0.0.1' }],
      ['connectionString', { connectionString: 'postgres://user:swordfish@:x' }],
      ['boss', { boss }],
      ['boss', { connectionString: undefined, boss: withoutTransactions }],
      ['max', { connectionString: undefined, boss, max: 3 }],
      ['max', { max: 0 }],
      ['schema', { schema: 'a;b' }],
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

  it('no object in place of options', () => {
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
