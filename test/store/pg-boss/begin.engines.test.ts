/** Handlers in a transaction of PostgreSQL: what they write is there exactly when their message is handled. */

import { randomUUID } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createReceiver } from '../../../src/index.ts'
import { type PgBossQueueOptions, pgBossQueue } from '../../../src/queues-pg-boss.ts'
import type { InboxOptions } from '../../../src/receive/inbox-options.ts'
import type { BatchHandler } from '../../../src/receive/message-batches.ts'
import type { Handler } from '../../../src/receive/selection.ts'
import { fixtures, signedRequest } from '../../../src/testing.ts'
import { needs } from '../../support/needs.ts'
import { until } from '../../support/until.ts'
import { databaseUrl as connectionString, useSchema } from './set-up.ts'

describe('handlers in a transaction', needs('PostgreSQL'), () => {
  const schema = useSchema()
  const pool = new pg.Pool({ connectionString })
  const open: { close(): Promise<unknown> }[] = []

  beforeAll(async () => {
    const first = pgBossQueue({ name: 'any', connectionString, schema: schema.name })
    await first.deadLetters() // It creates the schema.
    await first.close({ graceMs: 0 })
    await schema.run('CREATE TABLE schema.effects (id text)')
  })
  afterEach(async () => {
    await Promise.all(open.splice(0).map((each) => each.close()))
    await schema.run('TRUNCATE schema.effects')
  })
  afterAll(() => pool.end())

  const effects = async () => (await schema.run('SELECT id FROM schema.effects')).map(({ id }) => id)

  /** Has a claim of the queue end. */
  async function lapse(name: string): Promise<void> {
    const active = `SELECT id FROM ${schema.name}.job WHERE name = $1 AND state = 'active' LIMIT 1`
    await pool.query(`UPDATE ${schema.name}.job SET retry_count = retry_count + 1 WHERE id IN (${active})`, [name])
  }

  /** Writes the id of the message. */
  const write: Handler = async ({ messageId }, { db }) =>
    void (await db?.query(`INSERT INTO ${schema.name}.effects VALUES ($1)`, [messageId]))

  function setUp(inbox: Partial<InboxOptions> = {}, options: Partial<PgBossQueueOptions> = {}) {
    const name = randomUUID()
    const queue = pgBossQueue({ name, connectionString, schema: schema.name, pollMs: 20, ...options })
    const errors: Error[] = []
    const receiver = createReceiver({
      secret: 'secret',
      inbox: { queue, transactional: true, retries: [1, 1], ...inbox },
      onError: (error) => void errors.push(error),
    })
    open.push({ close: () => receiver.close({ graceMs: 0 }) })
    return {
      ...{ name, queue, receiver, errors },
      async start(...ids: string[]) {
        receiver.start()
        for (const messageId of ids.length > 0 ? ids : ['m']) {
          const { bytes, headers } = signedRequest({ ...fixtures.track, messageId }, 'secret')
          expect((await receiver.receive(bytes, headers)).status).toBe(200)
        }
      },
      /** Waits until something was written, and all is done. */
      async expectEffects(...ids: string[]) {
        await until(async () => (await effects()).length > 0)
        await queue.drain()
        expect((await effects()).sort()).toEqual(ids)
      },
      async deadLetter() {
        await until(async () => (await receiver.deadLetters()).length === 1)
        return (await receiver.deadLetters())[0]
      },
    }
  }

  it('commit what they write, also at the same moment, and the end of the message', async () => {
    const { receiver, start, expectEffects } = setUp({ retries: [] })
    receiver.on('track', write, { name: 'one' })
    receiver.on('track', (...given) => Promise.all([write(...given), write(...given)]))
    await start()
    await expectEffects('m', 'm', 'm')
  })

  it('roll all back when one fails, and all run again, also those with a name', async () => {
    const { receiver, start, expectEffects } = setUp()
    let attempts = 0
    receiver.on('track', write, { name: 'first' })
    receiver.on('track', async () => {
      attempts += 1
      if (attempts < 3) throw new Error('no')
      expect(await effects()).toEqual([]) // It is not committed.
    })

    await start()

    await expectEffects('m')
    expect(attempts).toBe(3)
  })

  it.each<[string, Handler, more: object]>([
    ['that fail', () => Promise.reject(new Error('no')), { handlers: { done: [], failed: ['second'] } }],
    [
      'with a statement that failed unseen',
      async (_, { db }) => void (await db?.query('SELECT 1 / 0').catch(() => {})),
      {},
    ],
    [
      'whose writes a constraint refuses at the end',
      async (_, { db }) => {
        await db?.query('CREATE TEMP TABLE once (id int UNIQUE DEFERRABLE INITIALLY DEFERRED) ON COMMIT DROP')
        await db?.query('INSERT INTO once VALUES (1), (1)')
      },
      { error: expect.objectContaining({ message: expect.stringContaining('23505') }) },
    ],
  ])('%s leave nothing of a message that becomes a dead letter', async (_what, handler, more) => {
    const { receiver, start, deadLetter } = setUp({ retries: [] })
    receiver.on('track', write, { name: 'first' }).on('track', handler, { name: 'second' })
    await start()
    expect(await deadLetter()).toMatchObject({ reason: 'handler_failed', ...more })
    expect(await effects()).toEqual([])
  })

  it('may use savepoints', async () => {
    const { receiver, start, expectEffects } = setUp({ retries: [] })
    receiver.on('track', async (message, delivery) => {
      const client = delivery.db as pg.PoolClient
      await client.query('SAVEPOINT here')
      await write(message, delivery)
      await client.query('SELECT 1 / 0').catch(() => {})
      await client.query('ROLLBACK TO SAVEPOINT here')
      await write(message, delivery)
    })

    await start()

    await expectEffects('m')
  })

  it('that ran out of time count for nothing, are ended in the database, and get queries refused in the form in which they ask', async () => {
    const { receiver, name, start, deadLetter } = setUp({ retries: [], timeoutMs: 1_000 })
    let refused: unknown
    receiver.on('track', async (message, delivery) => {
      const client = delivery.db as pg.PoolClient
      await write(message, delivery)
      client.query(`SELECT pg_sleep(60), '${name}'`).catch(() => {})
      await once(delivery.signal, 'abort')
      expect(() => client.query('SELECT 1', () => {})).toThrow()
      expect(() => client.query(new pg.Query('SELECT 1'))).toThrow()
      refused = await client.query('SELECT 1').catch((error: unknown) => error)
    })

    await start()

    expect(await deadLetter()).toMatchObject({ reason: 'handler_timeout' })
    await until(() => refused instanceof Error)
    const running = `SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep%${name}%' AND pid <> pg_backend_pid()`
    await until(async () => (await pool.query(running)).rowCount === 0)
    expect(await effects()).toEqual([])
  })

  it('that could not begin are no attempt', async () => {
    let isDown = true
    async function connect() {
      if (!isDown) return pool.connect()
      const client = new pg.Client({ connectionString })
      await client.connect()
      await client.end()
      return Object.assign(client, { release: () => {} })
    }
    const db = { connect }
    const { receiver, errors, start, expectEffects } = setUp({ retries: [] }, { db })
    receiver.on('track', write)

    await start()

    await until(() => errors.length > 0)
    isDown = false

    await expectEffects('m')
    expect(errors[0]).toMatchObject({ code: 'queue_unavailable' })
    expect(await receiver.deadLetters()).toEqual([])
  })

  it('leave a pool of yours as it was, also when they fail', async () => {
    const own = new pg.Pool({ connectionString })
    const failures: Error[] = []
    own.on('error', (error) => failures.push(error))
    const { receiver, start, expectEffects } = setUp({ retries: [1, 1, 1] }, { db: own })
    let attempts = 0
    receiver.on('track', async (message, delivery) => {
      await write(message, delivery)
      attempts += 1
      if (attempts < 3) throw new Error('no')
    })

    await start()

    await expectEffects('m')
    expect([attempts, failures, own.totalCount - own.idleCount, own.waitingCount]).toEqual([3, [], 0, 0])
    await receiver.close()
    await own.end()
  })

  describe('of batches', () => {
    const batchOf = (maxMessages: number) => ({ name: 'rows', maxMessages, maxWaitMs: 20_000 })

    /** Writes the ids of the messages with one statement. */
    const writeAll: BatchHandler = async (messages, _deliveries, { db }) => {
      const ids = messages.map(({ messageId }) => messageId)
      await db?.query(`INSERT INTO ${schema.name}.effects SELECT unnest($1::text[])`, [ids])
    }

    it('commit what they write, and the end of all messages', async () => {
      const { receiver, start, expectEffects } = setUp({ retries: [], history: { maxAgeMs: 60_000 } })
      receiver.onBatch('track', writeAll, batchOf(3))
      await start('one', 'two', 'three')
      await expectEffects('one', 'three', 'two')
      const done: unknown[] = []
      for await (const { handlers } of receiver.history()) done.push(handlers)
      expect(done).toEqual([['rows'], ['rows'], ['rows']])
    })

    it('write nothing when a claim of theirs is over', async () => {
      const { receiver, name, errors, start } = setUp({ retries: [60_000] })
      const writeLate: BatchHandler = async (...given) => {
        await writeAll(...given)
        await lapse(name)
      }
      receiver.onBatch('track', writeLate, batchOf(2))

      await start('one', 'two')

      await until(() => errors.length === 2)
      expect(errors).toMatchObject([{ code: 'lease_lapsed' }, { code: 'lease_lapsed' }])
      expect(await effects()).toEqual([])
    })
  })

  it('are rolled back when the receiver closes, and the message is handled later', async () => {
    const { receiver, name, start } = setUp()
    let hasBegun = false
    receiver.on('track', async (message, delivery) => {
      await write(message, delivery)
      hasBegun = true
      await new Promise(() => {})
    })

    await start()
    await until(() => hasBegun)

    await receiver.close({ graceMs: 0 })

    const next = setUp({}, { name })
    next.receiver.on('track', write).start()
    await next.expectEffects('m')
  })
})

it('survive a connection of your pool that ends before anyone listens to it', () => {
  const db = Object.assign(new EventEmitter(), { connect: () => Promise.reject(new Error('none')) })
  for (const name of ['one', 'two']) pgBossQueue({ name, connectionString: 'postgres://localhost/none', db })
  const client = new EventEmitter()
  db.emit('connect', client)
  expect(() => client.emit('error', new Error('ended'))).not.toThrow()
  expect(client.listenerCount('error')).toBe(1)
})
