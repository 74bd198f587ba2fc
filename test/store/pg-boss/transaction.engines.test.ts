/** Messages that are stored in a transaction of the caller: they exist when it commits, through pg and through Kysely. */

import { randomUUID } from 'node:crypto'
import { CompiledQuery, Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { fromKysely } from 'pg-boss'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import type { TrackMessage } from '../../../src/protocol/message.ts'
import { pgBossQueue } from '../../../src/queues-pg-boss.ts'
import { createDestination } from '../../../src/send/create-destination.ts'
import type { Queue } from '../../../src/store/queue-types.ts'
import { capture, fixtures } from '../../../src/testing.ts'
import { needs } from '../../support/needs.ts'
import { until } from '../../support/until.ts'
import { databaseUrl, useSchema } from './set-up.ts'

type Run = (statement: string, values?: unknown[]) => Promise<unknown>

/** Commits when the function resolves; rolls back and rejects when it rejects. */
type InTransaction = (make: (db: object, run: Run) => Promise<unknown>) => Promise<void>

describe('a message in a transaction of the caller', needs('PostgreSQL'), () => {
  const schema = useSchema()
  const pool = new pg.Pool({ connectionString: databaseUrl })
  const kysely = new Kysely<object>({ dialect: new PostgresDialect({ pool }) })
  const open: { close(options: { readonly graceMs: number }): Promise<unknown> }[] = []

  beforeAll(() => createQueue().deadLetters()) // It creates the schema.
  afterEach(async () => {
    for (const each of open.splice(0)) await each.close({ graceMs: 0 })
  })
  afterAll(() => kysely.destroy()) // Ends the pool, too.

  function createQueue(name: string = randomUUID()): Queue {
    const queue = pgBossQueue({ name, connectionString: databaseUrl, schema: schema.name, pollMs: 20 })
    open.push(queue)
    return queue
  }

  function setUp() {
    const name = randomUUID()
    const captured = capture({ script: [200] })
    const { dispatcher } = captured
    const webhooks = [{ url: 'https://shop.example/webhooks' }]
    const destination = createDestination({ webhooks, dispatcher, queue: createQueue(name), onAttempt: () => {} })
    open.push(destination)
    const events = () => captured.messages.map((message) => (message as TrackMessage).event)
    const stored = async () =>
      (await schema.run(`SELECT id FROM schema.job WHERE name = $1 AND state <> 'cancelled'`, [name])).length
    /** Waits until a message is posted that was pushed now. */
    const settle = async () => {
      const event = randomUUID()
      await destination.track({ userId: 'u', event })
      await until(() => events().includes(event))
    }
    return { destination, name, events, stored, settle }
  }

  const throughPg: InTransaction = async (make) => {
    const client = await pool.connect()
    try {
      await client.query('BEGIN')
      await make(client, (statement, values) => client.query(statement, values))
      await client.query('COMMIT')
    } catch (error) {
      await client.query('ROLLBACK')
      throw error
    } finally {
      client.release()
    }
  }

  const throughKysely: InTransaction = (make) =>
    kysely
      .transaction()
      .execute((trx) =>
        make(fromKysely(trx), (statement, values = []) => trx.executeQuery(CompiledQuery.raw(statement, values))),
      ) as Promise<never>

  it.each([
    ['pg', throughPg],
    ['Kysely', throughKysely],
  ])('through %s is posted once, after the commit, and not at all after a rollback', async (_what, inTransaction) => {
    const { destination, events, stored, settle } = setUp()
    const [id, undone] = [randomUUID(), randomUUID()]

    await inTransaction(async (db) => {
      expect(await destination.track({ userId: 'u', event: id }, { db })).toMatchObject({ queued: true })
      await settle()
      expect(events()).not.toContain(id)
    })
    const rollback = inTransaction(async (db) => {
      await destination.track({ userId: 'u', event: undone }, { db })
      throw new Error('out of stock')
    })

    await expect(rollback).rejects.toThrow('out of stock')
    await until(() => events().includes(id))
    await settle()
    expect(events().filter((event) => event === id || event === undone)).toEqual([id])

    expect(await stored()).toBe(3)
  })

  it.each(['COMMIT', 'ROLLBACK'])('waits for another transaction with the same key, which ends in %s', async (end) => {
    const { destination, events, stored, settle } = setUp()
    const submit = (event: string, db: object) =>
      destination.submit([{ key: 'order-2', message: { ...fixtures.track, event } }], { db })
    const first = await pool.connect()
    await first.query('BEGIN')
    await submit('first', first)
    const stores = vi.fn()
    const second = throughPg((db) => submit('second', db).then(stores))
    await settle()
    expect(stores).not.toHaveBeenCalled()

    await first.query(end)
    first.release()
    await second

    await until(() => events().length === 2)
    expect(events()).toContain(end === 'COMMIT' ? 'first' : 'second')
    expect(await stored()).toBe(2)
  })

  it('is refused where `db` is no transaction, and not stored', async () => {
    const { destination, stored } = setUp()
    const client = await pool.connect()

    for (const db of [pool, client, kysely, { executeSql: async () => [] }])
      await expect(destination.track({ userId: 'u', event: 'E' }, { db })).rejects.toThrow('`db`')

    client.release()
    expect(await stored()).toBe(0)
  })
})
