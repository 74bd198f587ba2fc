import { randomUUID } from 'node:crypto'
import { PgBoss } from 'pg-boss'
import { describe, expect, it } from 'vitest'
import { pgBossQueue } from '../../../src/queues/pg-boss/index.ts'

const connectionString = 'postgres://user:swordfish@127.0.0.1:1/db'
const boss = new PgBoss(connectionString)
const withoutTransactions = new PgBoss({ db: { executeSql: async () => ({ rows: [] }) } })

describe('pgBossQueue refuses wrong options', () => {
  it.each([
    ['pgBossQueue: options', null],
    ['pgBossQueue: options', 'orders'],
    ['name', { connectionString }],
    ['name', { connectionString, name: '' }],
    ['name', { connectionString, name: '__proto__' }],
    ['name', { connectionString, name: 'constructor' }],
    ['name', { connectionString, name: "it's" }],
    ['name', { connectionString, name: 'orders-dead' }],
    ['connectionString', { name: 'x' }],
    ['connectionString', { name: 'x', connectionString: '' }],
    ['connectionString', { name: 'x', connectionString: 5 }],
    ['connectionString', { name: 'x', connectionString: 'user:swordfish@127.0.0.1' }],
    ['connectionString', { name: 'x', connectionString: 'postgres://user:swordfish@:x' }],
    ['boss', { name: 'x', connectionString, boss }],
    ['boss', { name: 'x', boss: null }],
    ['boss', { name: 'x', boss: {} }],
    ['boss', { name: 'x', boss: withoutTransactions }],
    ['max', { name: 'x', boss, max: 3 }],
    ['max', { name: 'x', connectionString, max: 0 }],
    ['schema', { name: 'x', connectionString, schema: '1st' }],
    ['schema', { name: 'x', connectionString, schema: 'a;b' }],
    ['schema', { name: 'x', connectionString, schema: 5 }],
    ['pollMs', { name: 'x', connectionString, pollMs: 0 }],
    ['deadLetterRetentionMs', { name: 'x', connectionString, deadLetterRetentionMs: 0.5 }],
    ['leaseMs', { name: 'x', connectionString, leaseMs: 9_999 }],
    ['leaseMs', { name: 'x', connectionString, leaseMs: 24 * 60 * 60_000 + 1 }],
    ['dedupeWindowMs', { name: 'x', connectionString, dedupeWindowMs: 1.5 }],
    ['timeoutMs', { name: 'x', connectionString, timeoutMs: Number.POSITIVE_INFINITY }],
    ['onError', { name: 'x', connectionString, onError: 'log' }],
    ['logger.error', { name: 'x', connectionString, logger: {} }],
    ['clock.now', { name: 'x', connectionString, clock: {} }],
    ['poolSize', { name: 'x', connectionString, poolSize: 3 }],
  ])('%s: %j', (option, options) => {
    const create = () => pgBossQueue(options as never)
    expect(create).toThrow(TypeError)
    expect(create).toThrow(`\`${option}\``)
    expect(create).not.toThrow('swordfish')
  })

  it('says of an address that is not set that it is required, and of two places that they are two', () => {
    expect(() => pgBossQueue({ name: 'x', connectionString: process.env.NO_SUCH_VARIABLE })).toThrow(
      '`connectionString` is required. Got undefined. Pass the address of PostgreSQL',
    )
    expect(() => pgBossQueue({ name: 'x', connectionString, boss })).toThrow(
      '`boss` must not be given with a `connectionString`. Got both. Pass one of the two.',
    )
  })

  it('says which range a lease must lie in', () => {
    expect(() => pgBossQueue({ name: 'x', connectionString, leaseMs: 1000 })).toThrow(
      '`leaseMs` must be a whole number from 10000 to 86400000. Got 1000. Pass a number in that range.',
    )
  })

  it('accepts a schema in double quotes, and a PostgreSQL that does not run: pushes say so', async () => {
    const queue = pgBossQueue({ name: 'x', connectionString, schema: '"My schema"', onError: () => {} })
    const error = await queue.push([{ id: randomUUID(), body: new Uint8Array() }]).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'queue_unavailable', status: 503, cause: { code: 'ECONNREFUSED' } })
    expect(String(error)).not.toContain('swordfish')
    await queue.close({ graceMs: 0 })
  })
})
