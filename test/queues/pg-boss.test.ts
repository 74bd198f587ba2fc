import { randomUUID } from 'node:crypto'
import { inspect } from 'node:util'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { type PgBossQueueOptions, pgBossQueue } from '../../src/queues/pg-boss.ts'
import type { ClaimedJob, Job, Outcome, Queue } from '../../src/queues/queue.ts'
import { testDurableQueue } from '../contracts/durable-queue.ts'
import { testQueue } from '../contracts/queue.ts'
import { createSchema, type Schema, startVirtualBoss, type VirtualBoss } from '../support/postgres.ts'
import { until } from '../support/until.ts'

const databaseUrl = inject('databaseUrl')
const done: Outcome = { done: true }
const jobOf = (text: string, more: Partial<Job> = {}): Job => ({ id: randomUUID(), body: Buffer.from(text), ...more })

describe.skipIf(databaseUrl === undefined)('pg-boss', () => {
  let schema: Schema
  let virtual: VirtualBoss

  beforeAll(async () => {
    schema = createSchema(databaseUrl as string)
    virtual = await startVirtualBoss(databaseUrl as string, schema)
  })
  afterAll(async () => {
    await virtual.stop()
    await schema.drop()
  })

  const knownForMs = 60_000

  function create(pollMs: number) {
    const { boss, clock, now, advance } = virtual
    const name = randomUUID()
    const another = () => pgBossQueue({ name, boss, clock, schema: schema.name, knownForMs, pollMs })
    return { queue: another(), another, now, advance, outlivesProcess: true, knownForMs }
  }

  testQueue('pg-boss', () => create(60 * 60_000))
  testDurableQueue('pg-boss', () => create(20))

  describe('its rows', () => {
    function setUp(options: Partial<PgBossQueueOptions> = {}) {
      const { boss, clock, now, advance } = virtual
      const name = randomUUID()
      const another = () => {
        const errors: unknown[] = []
        const onError = (error: unknown) => errors.push(error)
        const pollMs = 60 * 60_000
        const queue = pgBossQueue({ name, boss, clock, schema: schema.name, pollMs, onError, ...options })
        return { queue, errors, work: (decide: Decide, concurrency = 10) => work(queue, decide, concurrency) }
      }
      /** What pg-boss does once a minute. */
      const supervise = () => boss.supervise(name)
      const rows = () => schema.run('SELECT * FROM schema.job WHERE name = $1 ORDER BY created_on', [name])
      return { ...another(), another, name, boss, now, advance, supervise, rows }
    }

    it('keep of a job that is done its id, and neither body nor state', async () => {
      const { queue, work, now, rows } = setUp()
      work(({ deliveries }) => (deliveries === 1 ? { retryAt: now(), state: Buffer.from('state') } : done))
      const job = jobOf('body')
      await queue.push([job])
      await queue.drain()
      expect(await rows()).toMatchObject([{ id: job.id, state: 'completed', data: null, output: null }])
      await queue.close({ graceMs: 0 })
    })

    it('that somebody else wrote go to the list of the dead, again and again, and hold nobody up', async () => {
      const { queue, work, boss, name, errors } = setUp()
      await queue.push([])
      await queue.counts()
      const junk = [
        null,
        'text',
        [1],
        {},
        { at: 'x', body: '' },
        { at: 1, body: 'no base64!' },
        { at: 1, body: '', before: '' },
      ]
      await boss.insert(
        name,
        junk.map((data) => ({ data }) as object),
      )
      await queue.push([jobOf('good')])
      const seen = work(() => done, 2)
      await until(() => seen.length === 1)
      await untilDead(queue, junk.length)
      const dead = await queue.dead()
      expect(dead.map(({ body }) => JSON.parse(String(body)))).toEqual(expect.arrayContaining(junk))
      expect(new Set(dead.map(({ reason }) => reason))).toEqual(new Set(['its row in the database cannot be read']))
      expect(await queue.redrive([dead[0]?.id ?? ''])).toBe(1)
      await queue.drain()
      expect(String(seen[1]?.body)).toBe(String(dead[0]?.body)) // Now it can be read.
      expect(await queue.drop('all')).toBe(junk.length - 1)
      expect(errors).toEqual([])
      await queue.close({ graceMs: 0 })
    })

    it('that somebody else wrote rightly are handed out', async () => {
      const { queue, work, boss, name } = setUp()
      await queue.counts()
      await boss.insert(name, [{ data: { at: 1, body: 'Zm9yZWlnbg==' } }])
      const seen = work(() => done)
      await queue.drain()
      expect(seen.map(({ body, deliveries }) => [String(body), deliveries])).toEqual([['foreign', 1]])
      await queue.close({ graceMs: 0 })
    })

    it.each([null, {}, { reason: 5, body: 5 }])(
      'of the dead that somebody else wrote to are listed: %j',
      async (data) => {
        const { queue, work, name } = setUp()
        work(() => ({ dead: 'no' }))
        const job = jobOf('job')
        await queue.push([job])
        await queue.drain()
        await schema.run('UPDATE schema.job SET data = $2 WHERE name = $1', [name, JSON.stringify(data)])
        expect(await queue.dead()).toMatchObject([{ id: job.id, body: new Uint8Array(), reason: '', state: undefined }])
        await queue.close({ graceMs: 0 })
      },
    )

    it('that were handed out after the time was over are given back', async () => {
      const { boss, clock } = virtual
      const name = randomUUID()
      const answer = Promise.withResolvers<void>()
      let fetches = 0
      const slow = new Proxy(boss, {
        get(target, key) {
          const value: unknown = Reflect.get(target, key)
          if (typeof value !== 'function') return value
          if (key !== 'fetch' || fetches > 0) return value.bind(target)
          return async (...args: unknown[]) => {
            fetches += 1
            const rows: unknown = await value.apply(target, args)
            await answer.promise
            return rows
          }
        },
      })
      const errors: unknown[] = []
      const onError = (error: unknown) => errors.push(error)
      const queue = pgBossQueue({
        name,
        boss: slow,
        clock,
        schema: schema.name,
        timeoutMs: 300,
        pollMs: 60_000,
        onError,
      })
      await queue.push([jobOf('job')])
      const seen = work(queue, () => done, 10)
      await until(() => errors.length === 1)
      expect(await queue.counts()).toMatchObject({ waiting: 0, active: 1 })
      answer.resolve()
      while ((await queue.counts()).active > 0);
      await virtual.advance(1000)
      await until(() => seen.length === 1)
      expect(seen[0]?.deliveries).toBe(1)
      await queue.close({ graceMs: 1000 })
    })

    it('that cannot be written when they are done are written later; the fault is told once', async () => {
      const { queue, work, errors, advance } = setUp()
      const jobs = [jobOf('a'), jobOf('b'), jobOf('c')]
      await queue.push(jobs)
      await schema.run(`CREATE FUNCTION schema.no() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'not now' USING DETAIL = OLD.data::text; END $$`)
      await schema.run(`CREATE TRIGGER no BEFORE UPDATE ON schema.job_common FOR EACH ROW
        WHEN (NEW.state = 'completed') EXECUTE FUNCTION schema.no()`)
      const seen = work(() => done)
      await until(() => errors.length > 0)
      expect(errors).toMatchObject([{ code: 'queue_unavailable', message: expect.stringContaining('not now') }])
      expect(inspect(errors, { depth: 9, showHidden: true })).not.toContain('"at"')
      await schema.run('DROP TRIGGER no ON schema.job_common')
      await advance(500)
      await queue.drain()
      expect(seen).toHaveLength(3)
      expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0 })
      await queue.close({ graceMs: 0 })
    })

    it('stay, waiting or dead, however long', async () => {
      const { queue, another, work, now, advance, supervise, rows } = setUp()
      work(() => ({ dead: 'no' }))
      await queue.push([jobOf('dead'), jobOf('later', { notBefore: now() + 2 * YEAR })])
      await queue.drain()
      await queue.close({ graceMs: 0 })
      const other = another().queue
      await other.push([jobOf('due')])
      await other.close({ graceMs: 0 })
      await advance(YEAR)
      await supervise()
      expect((await rows()).map(({ state }) => state).sort()).toEqual(['created', 'created', 'failed'])
    })

    it('wait until dates have an end at most', async () => {
      const { queue } = setUp()
      await queue.push([jobOf('never', { notBefore: Number.MAX_VALUE })])
      expect(await queue.counts()).toMatchObject({ waiting: 1, oldestDueAt: undefined })
      await queue.close({ graceMs: 0 })
    })

    it('are held as long as a handler runs', async () => {
      const { queue, work, advance, supervise } = setUp({ leaseMs: 10_000 })
      const held = Promise.withResolvers<Outcome>()
      const seen = work(() => held.promise)
      await queue.push([jobOf('long')])
      await until(() => seen.length === 1)
      for (let round = 0; round < 5; round += 1) {
        await advance(9000)
        await supervise()
      }
      expect(await queue.counts()).toMatchObject({ waiting: 0, active: 1 })
      held.resolve(done)
      await queue.drain()
      expect(seen).toHaveLength(1)
      await queue.close({ graceMs: 0 })
    })

    it('come back when their worker died, counted, with the first time from then on', async () => {
      const { queue, work, boss, name, now, advance, supervise } = setUp({ leaseMs: 10_000 })
      await queue.push([jobOf('a', { notBefore: now() + 5000 }), jobOf('b')])
      await advance(5000)
      const firstAt = now()
      for (let round = 0; round < 5; round += 1) {
        await boss.fetch(name, { batchSize: 10 }) // As a worker does that dies then.
        await advance(11_000)
        await supervise()
      }
      const seen = work(({ deliveries }) => (deliveries === 6 ? { retryAt: now() } : done))
      await queue.drain()
      expect(seen.map(({ deliveries }) => deliveries)).toEqual([6, 6, 7, 7])
      for (const job of seen.slice(0, 2)) expect(Math.abs(job.firstAt - firstAt)).toBeLessThan(60_000)
      expect(
        seen
          .slice(2)
          .map((job) => job.firstAt)
          .sort(),
      ).toEqual(
        seen
          .slice(0, 2)
          .map((job) => job.firstAt)
          .sort(),
      )
      await queue.close({ graceMs: 0 })
    })

    it.each<[string, Outcome]>([
      ['done', done],
      ['retried', { retryAt: 0 }],
      ['dead', { dead: 'too late' }],
    ])('are not changed by a worker whose lease is over: %s', async (_what, outcome) => {
      const { queue, work, another, name, supervise, errors } = setUp()
      const [stale, held] = [Promise.withResolvers<Outcome>(), Promise.withResolvers<Outcome>()]
      const first = work(() => stale.promise)
      await queue.push([jobOf('job')])
      await until(() => first.length === 1)
      await schema.run(`UPDATE schema.job SET heartbeat_on = heartbeat_on - interval '1 hour' WHERE name = $1`, [name])
      await supervise()
      const other = another()
      const second = other.work(() => held.promise)
      await until(() => second.length === 1)
      stale.resolve(outcome)
      await queue.close({ graceMs: 1000 })
      expect(await other.queue.counts()).toMatchObject({ waiting: 0, active: 1, dead: 0 })
      held.resolve(done)
      await other.queue.drain()
      expect(await other.queue.counts()).toMatchObject({ waiting: 0, active: 0, dead: 0 })
      expect(second[0]?.deliveries).toBe(2)
      expect(errors).toEqual([])
      await other.queue.close({ graceMs: 0 })
    })

    it('that were re-driven are not changed by a worker from before', async () => {
      const { queue, work, another, name, supervise } = setUp()
      const stale = Promise.withResolvers<Outcome>()
      const first = work(() => stale.promise)
      await queue.push([jobOf('job')])
      await until(() => first.length === 1)
      await schema.run(`UPDATE schema.job SET heartbeat_on = heartbeat_on - interval '1 hour' WHERE name = $1`, [name])
      await supervise()
      const other = another()
      const held = Promise.withResolvers<Outcome>()
      const second = other.work(({ deliveries }) => (deliveries === 2 ? { dead: 'no' } : held.promise))
      await untilDead(other.queue, 1)
      await other.queue.redrive('all')
      await until(() => second.length === 2)
      expect(second[1]?.deliveries).toBe(1)
      stale.resolve(done)
      await queue.close({ graceMs: 1000 })
      expect(await other.queue.counts()).toMatchObject({ active: 1 })
      held.resolve(done)
      await other.queue.close({ graceMs: 1000 })
    })

    it('that are retried at once go behind many, in one order with those of their second', async () => {
      const { queue, work, now } = setUp()
      const jobs = Array.from({ length: 50 }, (_, index) => jobOf(`${index}`))
      await queue.push(jobs)
      const seen = work((job) => (job.deliveries === 1 && String(job.body) < '2' ? { retryAt: now() } : done), 7)
      await queue.drain()
      expect(seen.slice(0, 50).map(({ id }) => id)).toEqual(jobs.map(({ id }) => id))
      expect(seen).toHaveLength(62)
      await queue.close({ graceMs: 0 })
    })
  })
})

describe('pgBossQueue tells the developer', () => {
  const connectionString = 'postgres://user:swordfish@127.0.0.1:1/db'
  it.each([
    ['pgBossQueue', null],
    ['pgBossQueue', 'orders'],
    ['name', { connectionString }],
    ['name', { connectionString, name: '' }],
    ['name', { connectionString, name: '__proto__' }],
    ['name', { connectionString, name: 'constructor' }],
    ['name', { connectionString, name: "it's" }],
    ['connectionString', { name: 'x' }],
    ['connectionString', { name: 'x', connectionString: '' }],
    ['connectionString', { name: 'x', connectionString: 'user:swordfish@127.0.0.1' }],
    ['connectionString', { name: 'x', connectionString: 'postgres://user:swordfish@:x' }],
    ['connectionString', { name: 'x', connectionString, boss: { fetch() {} } }],
    ['boss.fetch', { name: 'x', boss: null }],
    ['boss.fetch', { name: 'x', boss: {} }],
    ['max', { name: 'x', boss: { fetch() {} }, max: 3 }],
    ['max', { name: 'x', connectionString, max: 0 }],
    ['schema', { name: 'x', connectionString, schema: '1st' }],
    ['schema', { name: 'x', connectionString, schema: 'a;b' }],
    ['schema', { name: 'x', connectionString, schema: 5 }],
    ['pollMs', { name: 'x', connectionString, pollMs: 0 }],
    ['leaseMs', { name: 'x', connectionString, leaseMs: 999 }],
    ['knownForMs', { name: 'x', connectionString, knownForMs: 1.5 }],
    ['timeoutMs', { name: 'x', connectionString, timeoutMs: Number.POSITIVE_INFINITY }],
    ['onError', { name: 'x', connectionString, onError: 'log' }],
    ['clock.now', { name: 'x', connectionString, clock: {} }],
    ['poolSize', { name: 'x', connectionString, poolSize: 3 }],
  ])('%s: %j', (option, options) => {
    const make = () => pgBossQueue(options as never)
    expect(make).toThrow(TypeError)
    expect(make).toThrow(option)
    expect(make).not.toThrow('swordfish')
  })

  it('nothing when PostgreSQL is not there yet, and says so at the first push', async () => {
    const queue = pgBossQueue({ name: 'x', connectionString, schema: '"My schema"', onError: () => {} })
    const away = { code: 'queue_unavailable', status: 503, cause: { code: 'ECONNREFUSED' } }
    await expect(queue.push([jobOf('job')])).rejects.toMatchObject(away)
    await expect(queue.push([jobOf('job')])).rejects.not.toThrow('swordfish')
    await queue.close({ graceMs: 0 })
  })
})

const YEAR = 365 * 24 * 60 * 60_000

type Decide = (job: ClaimedJob) => Outcome | Promise<Outcome>

function work(queue: Queue, decide: Decide, concurrency: number): ClaimedJob[] {
  const seen: ClaimedJob[] = []
  queue.work(
    async (job) => {
      seen.push(job)
      return decide(job)
    },
    { concurrency },
  )
  return seen
}

async function untilDead(queue: Queue, count: number): Promise<void> {
  while ((await queue.counts()).dead < count) await new Promise((resolve) => setImmediate(resolve))
}
