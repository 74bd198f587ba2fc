/** Messages that are stored in a transaction of the caller's: they exist when its order does, through pg and through Kysely. */

import { randomUUID } from 'node:crypto'
import { CompiledQuery, Kysely, PostgresDialect, type Transaction } from 'kysely'
import pg from 'pg'
import { type Db, fromKysely } from 'pg-boss'
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest'
import { HooklineError } from '../../../src/protocol/error.ts'
import { idOfKey } from '../../../src/protocol/id.ts'
import type { TrackMessage } from '../../../src/protocol/message.ts'
import { pgBossQueue } from '../../../src/queues-pg-boss.ts'
import { createDestination } from '../../../src/send/create-destination.ts'
import type { Destination } from '../../../src/send/destination-types.ts'
import type { Queue } from '../../../src/store/queue-types.ts'
import { capture, fixtures } from '../../../src/testing.ts'
import { needs } from '../../support/needs.ts'
import { createSchema, type Schema } from '../../support/postgres.ts'
import { until } from '../../support/until.ts'

const databaseUrl = inject('databaseUrl')

type Run = (statement: string, values?: unknown[]) => Promise<unknown>

/** Commits when the function resolves; rolls back and rejects when it rejects. */
type InTransaction = (make: (db: object, run: Run) => Promise<void>) => Promise<void>

describe('a message in a transaction of the caller', needs('PostgreSQL'), () => {
  let schema: Schema
  let pool: pg.Pool
  let kysely: Kysely<object>
  const open: { close(options: { readonly graceMs: number }): Promise<unknown> }[] = []

  beforeAll(async () => {
    schema = createSchema(databaseUrl as string)
    pool = new pg.Pool({ connectionString: databaseUrl as string })
    kysely = new Kysely({ dialect: new PostgresDialect({ pool }) })
    await openQueue(createQueue()) // It creates the schema.
    await schema.run('CREATE TABLE schema.orders (id text PRIMARY KEY)')
  })
  afterEach(async () => {
    for (const each of open.splice(0)) await each.close({ graceMs: 0 })
  })
  afterAll(async () => {
    await kysely.destroy() // Ends the pool, too.
    await schema.drop()
  })

  function createQueue(name: string = randomUUID()): Queue {
    const queue = pgBossQueue({ name, connectionString: databaseUrl as string, schema: schema.name, pollMs: 20 })
    open.push(queue)
    return queue
  }

  async function openQueue(queue: Queue): Promise<void> {
    await queue.deadLetters()
  }

  async function setUp(): Promise<{ destination: Destination; name: string; events: () => string[] }> {
    const name = randomUUID()
    const captured = capture({ script: [200] })
    const destination = createDestination({
      webhooks: [{ url: 'https://shop.example/webhooks' }],
      dispatcher: captured.dispatcher,
      queue: createQueue(name),
      onAttempt: () => {},
    })
    open.push(destination)
    const events = () => captured.messages.map((message) => (message as TrackMessage).event)
    return { destination, name, events }
  }

  async function stored(name: string): Promise<number> {
    const rows = await schema.run(`SELECT id FROM schema.job WHERE name = $1 AND state <> 'cancelled'`, [name])
    return rows.length
  }

  async function orders(): Promise<unknown[]> {
    return (await schema.run('SELECT id FROM schema.orders')).map(({ id }) => id)
  }

  async function settled(destination: Destination, events: () => string[]): Promise<void> {
    const event = randomUUID()
    await destination.track({ userId: 'u', event })
    await until(() => events().includes(event))
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
      .execute((trx: Transaction<object>) =>
        make(fromKysely(trx), (statement, values = []) => trx.executeQuery(CompiledQuery.raw(statement, values))),
      )

  const insertOrder = (run: Run, id: string) => run(`INSERT INTO ${schema.name}.orders VALUES ($1)`, [id])

  describe.each<{ through: string; inTransaction: InTransaction }>([
    { through: 'pg', inTransaction: throughPg },
    { through: 'Kysely', inTransaction: throughKysely },
  ])('through $through', ({ inTransaction }) => {
    it('is posted once, and not before the commit', async () => {
      const { destination, name, events } = await setUp()
      const id = randomUUID()
      await inTransaction(async (db, run) => {
        await insertOrder(run, id)
        expect(await destination.track({ userId: 'u', event: id }, { db })).toMatchObject({ queued: true })
        await settled(destination, events)
        expect(events()).not.toContain(id)
      })
      await until(() => events().includes(id))
      await settled(destination, events)
      expect(events().filter((event) => event === id)).toEqual([id])
      expect(await orders()).toContain(id)
      expect(await stored(name)).toBe(3)
    })

    it('is neither stored nor posted when the transaction is rolled back; what others push meanwhile is', async () => {
      const { destination, name, events } = await setUp()
      const id = randomUUID()
      const rollback = inTransaction(async (db, run) => {
        await insertOrder(run, id)
        await Promise.all([
          destination.track({ userId: 'u', event: id }, { db }),
          destination.track({ userId: 'u', event: 'other' }),
        ])
        throw new Error('out of stock')
      })
      await expect(rollback).rejects.toThrow('out of stock')
      await until(() => events().includes('other'))
      await settled(destination, events)
      expect(events()).toHaveLength(2)
      expect(await stored(name)).toBe(2)
      expect(await orders()).not.toContain(id)
    })

    it('whose statement fails rejects with the error of the database as it is', async () => {
      const { destination, name } = await setUp()
      await openQueue(createQueue(name))
      const failing = inTransaction(async (db, run) => {
        await run('SELECT 1 / 0').catch(() => {})
        const error = await destination.track({ userId: 'u', event: 'E' }, { db }).catch((thrown) => thrown)
        expect(error).toMatchObject({ code: '25P02' })
        expect(error).not.toBeInstanceOf(HooklineError)
        throw error
      })
      await expect(failing).rejects.toMatchObject({ code: '25P02' })
      expect(await stored(name)).toBe(0)
    })

    it('is stored once under its key: in one transaction, in the next, and beside one outside', async () => {
      const { destination, name, events } = await setUp()
      const submissions = [{ key: 'order-1', message: { ...fixtures.track, event: 'once' } }]
      await inTransaction(async (db) => {
        await destination.submit(submissions, { db })
        await destination.submit([...submissions, ...submissions], { db })
      })
      await inTransaction(async (db, run) => {
        const id = randomUUID()
        await insertOrder(run, id)
        expect(await destination.submit(submissions, { db })).toEqual([{ queued: true, id: idOfKey('order-1') }])
      })
      await destination.submit(submissions)
      await settled(destination, events)
      expect(events().filter((event) => event === 'once')).toHaveLength(1)
      expect(await stored(name)).toBe(2)
    })
  })

  it('is in the place of its group', async () => {
    const queue = createQueue()
    const ids = Array.from({ length: 4 }, () => randomUUID())
    const push = (some: readonly string[], db?: object) =>
      queue.push(
        some.map((id) => ({ id, body: new Uint8Array(1), group: 'ada' })),
        db && { db },
      )
    await openQueue(queue)
    for (const id of ids) await throughPg((db) => push([id], db) as Promise<never>)
    const seen: string[] = []
    const handle = async ({ id }: { readonly id: string }) => {
      seen.push(id)
      return { complete: true } as const
    }
    queue.work(handle, { concurrency: 10 })
    await until(() => seen.length === ids.length)
    expect(seen).toEqual(ids)
  })

  it.each(['COMMIT', 'ROLLBACK'])('waits for another transaction with the same key, which ends in %s', async (end) => {
    const { destination, name, events } = await setUp()
    const submit = (event: string, db: object) =>
      destination.submit([{ key: 'order-2', message: { ...fixtures.track, event } }], { db })
    const first = await pool.connect()
    await first.query('BEGIN')
    await submit('first', first)
    let isStored = false
    const second = throughPg(async (db) => {
      await submit('second', db)
      isStored = true
    })
    await settled(destination, events)
    expect(isStored).toBe(false)
    await first.query(end)
    first.release()
    await second
    await until(() => events().length === 2)
    expect(events()).toContain(end === 'COMMIT' ? 'first' : 'second')
    expect(await stored(name)).toBe(2)
  })

  it('opens its queue first; a snapshot from before does not lose it', async () => {
    const { destination, name, events } = await setUp()
    const early = throughPg(async (db, run) => {
      await run('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ')
      await run('SELECT 1')
      const queue = createQueue(`${name}-new`)
      const error = await queue.push([{ id: randomUUID(), body: Buffer.from('') }], { db }).catch((thrown) => thrown)
      expect(error).toMatchObject({ code: 'queue_unavailable', message: expect.stringContaining('must see queue') })
      throw error
    })
    await expect(early).rejects.toMatchObject({ code: 'queue_unavailable' })
    await throughPg(async (db, run) => {
      await run('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ')
      await destination.track({ userId: 'u', event: 'E' }, { db })
    })
    await until(() => events().includes('E'))
  })

  it('is refused where `db` is no transaction, and not stored', async () => {
    const { destination, name } = await setUp()
    const client = await pool.connect()
    const rows = { executeSql: async () => [] }
    const nothing = { executeSql: async () => undefined }
    for (const [db, found] of [
      [pool, 'a pool'],
      [client, 'a client outside of a transaction'],
      [kysely, 'an object'],
      [rows, 'an empty list'],
      [nothing, 'undefined'],
    ] as const) {
      const error = await destination.track({ userId: 'u', event: 'E' }, { db }).catch((thrown) => thrown)
      expect(error).toBeInstanceOf(TypeError)
      expect(error.message).toMatch(/^`db` must .*\. Got .*\. Pass a client of pg after BEGIN, or an object/)
      expect(error.message).toContain(found)
    }
    client.release()
    expect(await stored(name)).toBe(0)
  })

  it('that is not queued makes no statement', async () => {
    const { destination, name } = await setUp()
    const statements: string[] = []
    const db: Db = {
      executeSql: async (text) => {
        statements.push(text)
        return { rows: [] }
      },
    }
    destination.disable()
    const skipped = { queued: false, reason: 'switched_off' }
    expect(await destination.track({ userId: 'u', event: 'E' }, { db })).toEqual(skipped)
    expect(statements).toEqual([])
    expect(await stored(name)).toBe(0)
  })

  it('is refused after close, and the transaction goes on', async () => {
    const { destination } = await setUp()
    const queue = createQueue()
    await Promise.all([destination.close(), queue.close({ graceMs: 0 })])
    await throughPg(async (db, run) => {
      const tracked = destination.track({ userId: 'u', event: 'E' }, { db })
      await expect(tracked).rejects.toMatchObject({ code: 'shutting_down' })
      await expect(queue.push([], { db })).rejects.toMatchObject({ code: 'shutting_down' })
      await run('SELECT 1')
    })
  })

  it('is refused while PostgreSQL cannot be reached by the queue itself', async () => {
    const queue = pgBossQueue({ name: 'away', connectionString: 'postgres://127.0.0.1:1/none', onError: () => {} })
    open.push(queue)
    await throughPg(async (db) => {
      const pushed = queue.push([{ id: randomUUID(), body: Buffer.from('') }], { db })
      await expect(pushed).rejects.toMatchObject({ code: 'queue_unavailable' })
    })
  })
})
