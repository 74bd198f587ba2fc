/** Handlers in a transaction of PostgreSQL: what they write is there exactly when their message is handled. */

import { randomUUID } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { Socket } from 'node:net'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest'
import { createReceiver } from '../../../src/index.ts'
import { memoryQueue } from '../../../src/queues-memory.ts'
import type { PgBossQueueOptions } from '../../../src/queues-pg-boss.ts'
import { pgBossQueue } from '../../../src/queues-pg-boss.ts'
import type { InboxOptions } from '../../../src/receive/inbox-options.ts'
import type { Handler } from '../../../src/receive/selection.ts'
import { fixtures, signedRequest } from '../../../src/testing.ts'
import { needs } from '../../support/needs.ts'
import { createSchema, type Schema } from '../../support/postgres.ts'
import { until } from '../../support/until.ts'

const connectionString = inject('databaseUrl') as string

describe('handlers in a transaction', needs('PostgreSQL'), () => {
  let schema: Schema
  let pool: pg.Pool
  const open: { close(): Promise<unknown> }[] = []

  beforeAll(async () => {
    schema = createSchema(connectionString)
    pool = new pg.Pool({ connectionString })
    const first = pgBossQueue({ name: 'any', connectionString, schema: schema.name })
    await first.deadLetters() // It creates the schema.
    await first.close({ graceMs: 0 })
    await schema.run('CREATE TABLE schema.effects (id text)')
  })
  afterEach(async () => {
    await Promise.all(open.splice(0).map((each) => each.close()))
    await schema.run('TRUNCATE schema.effects')
  })
  afterAll(async () => {
    await pool.end()
    await schema.drop()
  })

  const insert = `INSERT INTO ${'schema'}.effects VALUES ($1)`
  const effects = async () => (await schema.run('SELECT id FROM schema.effects')).map(({ id }) => id)

  function setUp(inbox: Partial<InboxOptions> = {}, queueOptions: Partial<PgBossQueueOptions> = {}) {
    const name = randomUUID()
    const queue = pgBossQueue({ name, connectionString, schema: schema.name, pollMs: 20, ...queueOptions })
    const errors: Error[] = []
    const receiver = createReceiver({
      secret: 'secret',
      inbox: { queue, transactional: true, retries: [1, 1], ...inbox },
      onError: (error) => void errors.push(error),
    })
    open.push({ close: () => receiver.close({ graceMs: 0 }) })
    /** Writes the id of the message. */
    const write: Handler = async ({ messageId }, { db }) =>
      void (await db?.query(insert.replace('schema', schema.name), [messageId]))
    async function send(messageId = 'm'): Promise<void> {
      const { bytes, headers } = signedRequest({ ...fixtures.track, messageId }, 'secret')
      expect((await receiver.receive(bytes, headers)).status).toBe(200)
    }
    return { name, queue, receiver, errors, write, send }
  }

  it('commit what they write, and the end of the message', async () => {
    const { receiver, queue, write, send } = setUp()
    receiver.on('track', write, { name: 'one' }).on('track', write).start()
    await send()
    await until(async () => (await effects()).length > 0)
    await queue.drain()
    expect(await effects()).toEqual(['m', 'm'])
  })

  it('roll all back when one fails, and all run again, also those with a name', async () => {
    const { receiver, queue, write, send } = setUp()
    let attempts = 0
    receiver.on('track', write, { name: 'first' })
    receiver.on('track', async () => {
      attempts += 1
      if (attempts < 3) throw new Error('no')
      expect(await effects()).toEqual([]) // It is not committed.
    })
    receiver.start()
    await send()
    await until(() => attempts === 3)
    await queue.drain()
    expect(await effects()).toEqual(['m'])
  })

  it('leave nothing of a message that becomes a dead letter', async () => {
    const { receiver, queue, write, send } = setUp({ retries: [] })
    receiver
      .on('track', write, { name: 'first' })
      .on('track', () => Promise.reject(new Error('no')), { name: 'second' })
    receiver.start()
    await send()
    await until(async () => (await receiver.deadLetters()).length === 1)
    await queue.drain()
    expect(await effects()).toEqual([])
    expect((await receiver.deadLetters())[0]?.handlers).toEqual({ done: [], failed: ['second'] })
  })

  it('need all of their statements: one that failed unseen is seen', async () => {
    const { receiver, write, send } = setUp({ retries: [] })
    receiver.on('track', async (message, delivery) => {
      await write(message, delivery)
      await delivery.db?.query('SELECT 1 / 0').catch(() => {})
    })
    receiver.start()
    await send()
    await until(async () => (await receiver.deadLetters()).length === 1)
    const [letter] = await receiver.deadLetters()
    expect([letter?.reason, letter?.error.message]).toEqual([
      'handler_failed',
      expect.stringContaining('a statement of a handler failed unseen'),
    ])
    expect(await effects()).toEqual([])
  })

  it('are refused what a constraint finds wrong at the end', async () => {
    const { receiver, write, send } = setUp({ retries: [] })
    receiver.on('track', async (message, delivery) => {
      await delivery.db?.query('CREATE TEMP TABLE once (id int UNIQUE DEFERRABLE INITIALLY DEFERRED) ON COMMIT DROP')
      await delivery.db?.query('INSERT INTO once VALUES (1), (1)')
      await write(message, delivery)
    })
    receiver.start()
    await send()
    await until(async () => (await receiver.deadLetters()).length === 1)
    const [letter] = await receiver.deadLetters()
    expect(letter?.error.message).toContain('PostgreSQL refused what the handlers wrote. Got SQLSTATE 23505.')
    expect(await effects()).toEqual([])
  })

  it('may use savepoints', async () => {
    const { receiver, queue, write, send } = setUp({ retries: [] })
    receiver.on('track', async (message, delivery) => {
      const { db } = delivery
      await db?.query('SAVEPOINT here')
      await write(message, delivery)
      await db?.query('SELECT 1 / 0').catch(() => {})
      await db?.query('ROLLBACK TO SAVEPOINT here')
      await write(message, delivery)
    })
    receiver.start()
    await send()
    await until(async () => (await effects()).length > 0)
    await queue.drain()
    expect(await effects()).toEqual(['m'])
  })

  it('cannot write after their end, nor into the transaction of another message', async () => {
    const { receiver, queue, write, send } = setUp({ retries: [], concurrency: 1 })
    const late: string[] = []
    const note = (query: unknown) =>
      Promise.resolve(query).then(
        () => late.push('resolved'),
        () => late.push('rejected'),
      )
    receiver.on('track', async (message, delivery) => {
      await write(message, delivery)
      ;(delivery.db as pg.PoolClient).release() // As a library may.
      await new Promise((resolve) => setTimeout(resolve, 20))
      const { query } = delivery.db as pg.PoolClient
      setTimeout(() => [write(message, delivery), query('SELECT 1')].map(note), 50)
    })
    receiver.start()
    for (const id of ['one', 'two']) await send(id)
    await until(() => late.length === 4)
    await queue.drain()
    expect(late).toEqual(late.map(() => 'rejected'))
    expect((await effects()).sort()).toEqual(['one', 'two'])
  })

  it('that ran out of time, or were closed, count for nothing: those with a name, too', async () => {
    const { receiver, queue, write, send } = setUp({ retries: [1], timeoutMs: 400 })
    let [first, second] = [0, 0]
    const count: Handler = (...given) => {
      first += 1
      return write(...given)
    }
    receiver.on('track', count, { name: 'first' })
    receiver.on(
      'track',
      async () => {
        second += 1
        if (second === 1) await new Promise(() => {})
      },
      { name: 'second' },
    )
    receiver.start()
    await send()
    await until(() => second === 2)
    await queue.drain()
    expect([first, await effects()]).toEqual([2, ['m']])
  })

  it.each([
    ['without a client', () => Promise.reject(new Error('no client'))],
    ['of a client that has ended', () => endedClient()],
  ])('that could not begin are no attempt: %s', async (_what, connectInVain) => {
    let isDown = true
    const db = { connect: () => (isDown ? connectInVain() : pool.connect()) }
    const { receiver, errors, write, send } = setUp({ retries: [] }, { db })
    receiver.on('track', write).start()
    await send()
    await until(() => errors.length > 0)
    isDown = false
    await until(async () => (await effects()).length > 0)
    expect(errors[0]).toMatchObject({ code: 'queue_unavailable' })
    expect(await receiver.deadLetters()).toEqual([])
  })

  async function endedClient() {
    const client = new pg.Client({ connectionString })
    await client.connect()
    await client.end()
    return Object.assign(client, { release: () => {} })
  }

  it('that fail leave a pool of yours as it was', async () => {
    const own = new pg.Pool({ connectionString })
    const failures: Error[] = []
    own.on('error', (error) => failures.push(error))
    const { receiver, write, send } = setUp({ retries: [1, 1, 1] }, { db: own })
    receiver
      .on('track', (...given) => Promise.resolve(write(...given)).then(() => Promise.reject(new Error('no'))))
      .start()
    await send()
    await until(async () => (await receiver.deadLetters()).length === 1)
    expect([failures, own.totalCount - own.idleCount]).toEqual([[], 0])
    await receiver.close()
    await own.end()
  })

  it('are ended in the database, too, when their time is over', async () => {
    const { receiver, name, write, send } = setUp({ retries: [], timeoutMs: 1_000 })
    receiver.on('track', async (message, delivery) => {
      await write(message, delivery)
      await delivery.db?.query(`SELECT pg_sleep(60), '${name}'`)
    })
    receiver.start()
    await send()
    await until(async () => (await receiver.deadLetters()).length === 1)
    expect((await receiver.deadLetters())[0]?.reason).toBe('handler_timeout')
    const running = `SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep%${name}%' AND pid <> pg_backend_pid()`
    await until(async () => (await pool.query(running)).rowCount === 0)
    expect(await effects()).toEqual([])
  })

  it('begin anew when their connection is lost', async () => {
    const { receiver, queue, write, send } = setUp()
    let attempts = 0
    receiver.on('track', async (message, delivery) => {
      attempts += 1
      await write(message, delivery)
      if (attempts > 1) return
      const { rows } = (await delivery.db?.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')) ?? { rows: [] }
      await pool.query('SELECT pg_terminate_backend($1)', [rows[0]?.pid])
    })
    receiver.start()
    await send()
    await until(() => attempts === 2)
    await queue.drain()
    expect(await effects()).toEqual(['m'])
  })

  it('change nothing when their claim is over', async () => {
    const { receiver, name, errors, write, send } = setUp()
    let attempts = 0
    receiver.on('track', async (message, delivery) => {
      attempts += 1
      await write(message, delivery)
      if (attempts > 1) return
      await pool.query(
        `UPDATE ${schema.name}.job SET retry_count = retry_count + 1 WHERE name = $1 AND state = 'active'`,
        [name],
      )
    })
    receiver.start()
    await send()
    await until(() => errors.length > 0)
    expect(errors[0]).toMatchObject({ code: 'lease_lapsed' })
    expect(await effects()).toEqual([])
  })

  it('may send queries at the same moment', async () => {
    const { receiver, queue, write, send } = setUp({ retries: [] })
    const warnings: Error[] = []
    const note = (warning: Error): void => void warnings.push(warning)
    process.on('warning', note)
    receiver.on('track', (...given) => Promise.all([write(...given), write(...given)])).on('track', write)
    receiver.start()
    await send()
    await until(async () => (await effects()).length > 0)
    await queue.drain()
    process.off('warning', note)
    expect([await effects(), warnings]).toEqual([['m', 'm', 'm'], []])
  })

  it('may use a callback or a cursor', async () => {
    const { receiver, queue, send } = setUp({ retries: [] })
    const rows: unknown[] = []
    receiver.on('track', async (_message, { db }) => {
      const client = db as pg.PoolClient
      await new Promise((resolve) =>
        client.query('SELECT 1 AS one', (_error, result) => resolve(rows.push(result.rows))),
      )
      const query = new pg.Query('SELECT 2 AS two')
      const ended = once(query, 'end')
      client.query(query).on('row', (row) => rows.push(row))
      await ended
    })
    receiver.start()
    await send()
    await until(() => rows.length === 2)
    await queue.drain()
    expect(rows).toEqual([[{ one: 1 }], { two: 2 }])
  })

  it('get a query refused after their time, in the form in which they asked', async () => {
    const { receiver, queue, send } = setUp({ retries: [], timeoutMs: 1_000 })
    const refused: unknown[] = []
    receiver.on('track', async (_message, { db, signal }) => {
      const client = db as pg.PoolClient
      if (!signal.aborted) await once(signal, 'abort')
      expect(() => client.query('SELECT 1', () => {})).toThrow('is over')
      expect(() => client.query(new pg.Query('SELECT 1'))).toThrow('is over')
      await client.query('SELECT 1').catch((error) => refused.push(error))
    })
    receiver.start()
    await send()
    await until(() => refused.length === 1)
    await queue.drain()
    expect(refused).toEqual([new Error('The transaction of this message is over. Await each query in the handler.')])
  })

  it('whose commit is given up leave the message to another attempt', async () => {
    let stalls = 1
    const db = {
      async connect() {
        const stream = new Socket()
        const client = new pg.Client({ connectionString, stream: () => stream })
        await client.connect()
        const ask = client.query.bind(client)
        function query(text: string, values?: unknown[]) {
          if (text.includes('completed_on') && stalls-- > 0) {
            stream.cork() // As a network that stalls.
            setTimeout(() => stream.uncork(), 1_300)
          }
          return ask(text, values)
        }
        return Object.assign(client, { query, release: () => client.end() })
      },
    }
    const { receiver, queue, errors, write, send } = setUp({}, { db, timeoutMs: 1_000 })
    receiver.on('track', write).start()
    await queue.counts() // It is open: the push is in time.
    await send()
    await until(async () => (await effects()).length > 0)
    await queue.drain()
    expect([await effects(), errors.length]).toEqual([['m'], 1])
  })

  it('are rolled back when the receiver closes, and the message is handled later', async () => {
    const { receiver, name, write, send } = setUp()
    let hasBegun = false
    receiver.on('track', async (message, delivery) => {
      await write(message, delivery)
      hasBegun = true
      await new Promise(() => {})
    })
    receiver.start()
    await send()
    await until(() => hasBegun)
    await receiver.close({ graceMs: 0 })
    const queue = pgBossQueue({ name, connectionString, schema: schema.name, pollMs: 20 })
    const next = createReceiver({ secret: 'secret', inbox: { queue, transactional: true } })
    open.push(next)
    next.on('track', write).start()
    await until(async () => (await effects()).length > 0)
    expect(await effects()).toEqual(['m'])
  })

  it('get clients of a pool of yours, for Kysely, too', async () => {
    const { receiver, queue, send } = setUp({}, { db: pool })
    receiver.on('track', async ({ messageId: id }, { db }) => {
      const dialect = new PostgresDialect({ pool: { connect: async () => db as pg.PoolClient, end: async () => {} } })
      const kysely = new Kysely<Record<string, { id: unknown }>>({ dialect })
      await kysely.insertInto(`${schema.name}.effects`).values({ id }).execute()
    })
    receiver.start()
    await send()
    await until(async () => (await effects()).length > 0)
    await queue.drain()
    expect(await effects()).toEqual(['m'])
    expect([pool.totalCount - pool.idleCount, pool.waitingCount]).toEqual([0, 0])
  })
})

it('need a queue that can: others are refused with a sentence', () => {
  const inbox = { queue: memoryQueue(), transactional: true }
  expect(() => createReceiver({ secret: 'secret', inbox })).toThrow(
    new TypeError(
      '`inbox.transactional` needs a queue on PostgreSQL. Got another one. Pass pgBossQueue of hookline/queues/pg-boss, with a `connectionString` or a `db`.',
    ),
  )
  expect(() => createReceiver({ secret: 'secret', inbox: { ...inbox, transactional: 1 as never } })).toThrow('must be')
})

it('survive a connection of your pool that ends before anyone listens to it', () => {
  const db = Object.assign(new EventEmitter(), { connect: () => Promise.reject(new Error('none')) })
  for (const name of ['one', 'two']) pgBossQueue({ name, connectionString: 'postgres://localhost/none', db })
  const client = new EventEmitter()
  db.emit('connect', client)
  expect(() => client.emit('error', new Error('ended'))).not.toThrow()
  expect(client.listenerCount('error')).toBe(1)
})
