import { randomUUID } from 'node:crypto'
import { inspect } from 'node:util'
import { PgBoss } from 'pg-boss'
import { describe, expect, it } from 'vitest'
import { pgBossQueue } from '../../../src/queues-pg-boss.ts'
import type { Outcome } from '../../../src/store/queue-types.ts'
import { needs } from '../../support/needs.ts'
import { complete, jobOf, work } from '../../support/queues.ts'
import { until } from '../../support/until.ts'
import { databaseUrl, useVirtualBoss } from './set-up.ts'

const YEAR = 365 * 24 * 60 * 60_000

describe('the rows of a queue on pg-boss', needs('PostgreSQL'), () => {
  const server = useVirtualBoss()
  const { setUp } = server

  describe('that others wrote', () => {
    const junk = [null, 'text', [1], {}, { at: 'x', body: '' }, { at: 1, body: 'not base64!!' }]

    it('become dead letters with their data as body, and hold nothing up', async () => {
      const { queue, boss, name, errors, advance } = setUp()
      await queue.counts() // Creates the queue.
      await boss.insert(
        name,
        junk.map((data) => ({ data }) as object),
      )
      await queue.push([jobOf('good')])
      const told: string[] = []
      const seen = work(queue, () => complete, 2, [], { onUnreadable: ({ id }) => void told.push(id) })
      await until(() => seen.length === 1)
      await until(async () => (await queue.counts()).deadLetters >= junk.length)
      const letters = await queue.deadLetters()
      expect(told.sort()).toEqual(letters.map(({ id }) => id).sort())
      expect(letters.map(({ body }) => JSON.parse(String(body)))).toEqual(expect.arrayContaining(junk))
      expect(await queue.redrive([letters[0]?.id ?? ''])).toBe(1)
      await queue.drain()
      await until(() => seen.length === 2)
      expect(String(seen[1]?.body)).toBe(String(letters[0]?.body)) // Hookline wrote it now.
      await advance(1)
      expect(await queue.drop('all')).toBe(junk.length - 1)
      expect(errors).toEqual([])
    })
  })

  describe('in time', () => {
    it('stay while they wait or are dead letters, however long; a completed one goes', async () => {
      const { queue, another, work, now, advance, supervise, rows } = setUp({ dedupeWindowMs: 1000 })
      work((job) => (String(job.body) === 'dead' ? { deadLetter: 'no' } : complete))
      await queue.push([jobOf('dead'), jobOf('done'), jobOf('later', { notBefore: new Date(now() + 2 * YEAR) })])
      await queue.drain()
      await queue.close({ graceMs: 0 })
      const other = another().queue
      await other.push([jobOf('due')])
      await advance(YEAR)
      await supervise()
      expect((await rows()).map(({ state }) => state).sort()).toEqual(['cancelled', 'created', 'created'])
      expect(await other.deadLetters()).toHaveLength(1)
    })

    it('are claimed for as long as a handler runs, up to 24 hours', async () => {
      const { queue, work, advance, supervise, counts } = setUp({ leaseMs: 10_000 })
      const held = Promise.withResolvers<Outcome>()
      const seen = work(() => held.promise)
      await queue.push([jobOf('long')])
      await until(() => seen.length === 1)
      for (let round = 0; round < 5; round += 1) {
        await advance(9000)
        await supervise()
      }
      expect(await counts()).toMatchObject({ waiting: 0, active: 1 })
      held.resolve(complete)
      await queue.drain()
      expect(seen).toHaveLength(1)
    })

    it('come back when their worker died, counted, with the time of the first claim from then on', async () => {
      const { queue, work, boss, name, now, advance, supervise } = setUp({ leaseMs: 10_000 })
      await queue.push([jobOf('a', { notBefore: new Date(now() + 5000) }), jobOf('b')])
      await advance(5000)
      const firstAt = now()
      for (let round = 0; round < 5; round += 1) {
        await boss.fetch(name, { batchSize: 10 }) // As a worker does that dies then.
        await advance(11_000)
        await supervise()
      }
      const seen = work(({ claimCount }) => (claimCount === 6 ? { retryAt: new Date(now()) } : complete))
      await until(() => seen.length === 4)
      await queue.drain()
      expect(seen.map(({ claimCount }) => claimCount)).toEqual([6, 6, 7, 7])
      for (const job of seen) expect(Math.abs(job.firstAt.getTime() - firstAt)).toBeLessThan(6000)
      const times = new Set(seen.map((job) => `${job.id} ${job.firstAt.getTime()}`))
      expect(times.size).toBe(2)
    })
  })

  it('that failed sooner than a lease have no first time before their push', async () => {
    const { queue, work, boss, name, now, advance } = setUp({ leaseMs: 60_000 })
    const pushedAt = now()
    await queue.push([jobOf()])
    for (let round = 0; round < 3; round += 1) {
      const [job] = await boss.fetch(name)
      await boss.fail(name, String(job?.id))
      await advance(1_000)
    }
    const seen = work(() => complete)
    await until(() => seen.length === 1)
    expect(seen[0]?.claimCount).toBe(4)
    expect(seen[0]?.firstAt.getTime()).toBeGreaterThanOrEqual(pushedAt - 1_000)
  })

  describe('that are claimed', () => {
    it('are all that is due only when fewer were found than were asked for, and only at that moment', async () => {
      const { name, store } = server.createStore()
      await store.push([jobOf('a'), jobOf('b')])
      expect(await store.claim(1)).toHaveLength(1)
      expect(await store.nextDueAt()).toBeInstanceOf(Date)
      expect(await store.claim(2)).toHaveLength(1)
      expect(await store.nextDueAt()).toBeUndefined()
      await server.virtual.boss.send(name, {})
      expect(await store.nextDueAt()).toBeInstanceOf(Date)
      await store.close()
    })

    it('stay with their worker when another process has opened the queue with a shorter lease', async () => {
      const { queue, work, another, advance, supervise } = setUp({ leaseMs: 24 * 60 * 60_000 })
      await queue.counts()
      const next = another({ leaseMs: 10_000, pollMs: 1_000 })
      await next.queue.push([jobOf('takes 40 seconds')])
      const held = Promise.withResolvers<Outcome>()
      const seen = work(() => held.promise)
      await until(() => seen.length === 1)
      const others = next.work(() => complete)
      for (let passed = 0; passed < 40_000; passed += 2_000) {
        await advance(2_000)
        await supervise()
      }
      held.resolve(complete)
      await queue.drain()
      expect([seen.length, others]).toEqual([1, []])
    })

    it('together are handled in the order of their pushes, whatever order PostgreSQL returns them in', async () => {
      const { queue, work } = setUp()
      const jobs = ['a', 'b', 'c'].map((text) => jobOf(text))
      await queue.push(jobs)
      await server.schema.run('UPDATE schema.job SET priority = 0 WHERE id = $1', [jobs[0]?.id]) // Moves the row.
      const seen = work(() => complete)
      await queue.drain()
      expect(seen.map(({ body }) => String(body))).toEqual(['a', 'b', 'c'])
    })
  })

  describe('of an attempt that is over', () => {
    /** A job whose lease has lapsed while its handler waits for `stale`. */
    async function setUpLapsed() {
      const tested = setUp()
      const stale = Promise.withResolvers<Outcome>()
      const first = tested.work(() => stale.promise)
      await tested.queue.push([jobOf('job')])
      await until(() => first.length === 1)
      void tested.queue.pause()
      await tested.lapse()
      return { ...tested, stale, other: tested.another() }
    }

    it.each<[string, Outcome]>([
      ['completed', complete],
      ['retried', { retryAt: new Date(0), retryState: Buffer.from('stale') }],
      ['dead', { deadLetter: 'too late' }],
    ])('are not changed while another worker holds them: %s', async (_what, outcome) => {
      const { queue, other, stale, errors, counts } = await setUpLapsed()
      const held = Promise.withResolvers<Outcome>()
      const second = other.work(() => held.promise)
      await until(() => second.length === 1)
      stale.resolve(outcome)
      await queue.close({ graceMs: 1000 })
      expect(await counts(other.queue)).toMatchObject({ waiting: 0, active: 1, deadLetters: 0 })
      held.resolve(complete)
      await other.queue.drain()
      expect(await counts(other.queue)).toMatchObject({ waiting: 0, active: 0, deadLetters: 0 })
      expect(second[0]?.claimCount).toBe(2)
      expect(errors).toEqual([])
    })

    it('are not changed while they wait for their next attempt', async () => {
      const { queue, other, stale, now, advance, counts } = await setUpLapsed()
      const retryState = Buffer.from('fresh')
      const second = other.work((job) =>
        job.claimCount === 2 ? { retryAt: new Date(now() + 5000), retryState } : complete,
      )
      await until(() => second.length === 1)
      await other.queue.drain()
      stale.resolve({ retryAt: new Date(0), retryState: Buffer.from('stale') })
      await queue.close({ graceMs: 1000 })
      expect(await counts(other.queue)).toMatchObject({ waiting: 1, deadLetters: 0, oldestDueAt: undefined })
      await advance(5000)
      await until(() => second.length === 2)
      expect(String(second[1]?.retryState)).toBe('fresh')
      await other.queue.close({ graceMs: 1000 })
    })
  })

  describe('that a call fails on', () => {
    it('are changed later; the fault is reported once, and without data', async () => {
      const { queue, work, errors, advance, counts } = setUp()
      const jobs = [jobOf('a'), jobOf('b'), jobOf('c')]
      await queue.push(jobs)
      await server.schema.run(`CREATE FUNCTION schema.no() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'not now' USING DETAIL = OLD.data::text; END $$`)
      await server.schema.run(`CREATE TRIGGER no BEFORE UPDATE ON schema.job_common FOR EACH ROW
        WHEN (NEW.state = 'completed') EXECUTE FUNCTION schema.no()`)
      const seen = work(() => complete)
      await until(() => errors.length > 0)
      expect(errors).toMatchObject([{ code: 'queue_unavailable', message: expect.stringContaining('not now') }])
      expect(inspect(errors, { depth: 9, showHidden: true })).not.toContain('"at"')
      await server.schema.run('DROP TRIGGER no ON schema.job_common')
      await advance(500)
      await queue.drain()
      expect(seen).toHaveLength(3)
      expect(await counts()).toMatchObject({ waiting: 0, active: 0 })
    })

    it('of which one is refused: the others become dead letters, and it is tried again', async () => {
      const { queue, work, errors, advance } = setUp()
      const jobs = [jobOf('a'), jobOf('b'), jobOf('c')]
      await queue.push(jobs)
      await server.schema.run(`CREATE FUNCTION schema.refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '22023'; END $$`)
      await server.schema.run(`CREATE TRIGGER refuse BEFORE INSERT ON schema.hookline_dead FOR EACH ROW
        WHEN (NEW.id = '${jobs[1]?.id}') EXECUTE FUNCTION schema.refuse()`)
      work(() => ({ deadLetter: 'no' }))
      await until(async () => (await queue.counts()).deadLetters >= 2)
      await until(() => errors.length > 0)
      expect(String(errors[0])).toContain('SQLSTATE 22023')
      await server.schema.run('DROP TRIGGER refuse ON schema.hookline_dead')
      await advance(500)
      await queue.drain()
      expect((await queue.deadLetters()).map(({ id }) => id).sort()).toEqual(jobs.map(({ id }) => id).sort())
    })
  })

  describe('that are dead letters', () => {
    async function setUpDead(count: number) {
      const tested = setUp()
      let outcome: Outcome = { deadLetter: 'no' }
      const seen = tested.work(() => outcome, 50)
      await tested.queue.push(Array.from({ length: count }, (_, index) => jobOf(`${index}`)))
      await until(async () => (await tested.queue.counts()).deadLetters >= count)
      await tested.advance(1)
      const decide = (next: Outcome) => {
        outcome = next
      }
      return { ...tested, seen, decide }
    }

    it('are redriven by two queues at the same time, each once', async () => {
      const { queue, another, seen, decide } = await setUpDead(120)
      decide(complete)
      const other = another().queue
      const counts = await Promise.all([queue.redrive('all'), other.redrive('all')])
      expect((counts[0] ?? 0) + (counts[1] ?? 0)).toBe(120)
      await until(() => seen.length === 240)
      await queue.drain()
      expect(seen).toHaveLength(240)
    })

    it('that become ones again during a redrive of all are left alone', async () => {
      const { queue, seen } = await setUpDead(60)
      expect(await queue.redrive('all')).toBe(60)
      await until(async () => (await queue.counts()).deadLetters >= 60)
      expect(seen).toHaveLength(120)
    })

    it('are redriven also when the row of the job is gone', async () => {
      const { queue, seen, decide, boss, name } = await setUpDead(1)
      decide(complete)
      await boss.deleteJob(name, seen[0]?.id ?? '')
      expect(await queue.redrive('all')).toBe(1)
      await until(() => seen.length === 2)
      expect(seen[1]).toMatchObject({ id: seen[0]?.id, claimCount: 1 })
      await queue.close({ graceMs: 1000 })
    })
  })

  it('of a queue that another version reserved are left alone', async () => {
    const { queue, another, name } = setUp()
    queue.reserve?.('inbox')
    await queue.counts()
    await server.schema.run('UPDATE schema.hookline_queue SET version = 1 WHERE name = $1', [name])
    for (const observe of [false, true]) {
      await expect(another({ observe }).queue.counts()).rejects.toThrow('format version 1,')
    }
  })

  describe('that are counted', () => {
    it('are not counted yet by a boss that keeps statistics: asOf says so', async () => {
      const boss = new PgBoss({
        connectionString: databaseUrl,
        schema: server.schema.name,
        supervise: false,
        persistQueueStats: true,
      })
      await boss.start()
      const queue = pgBossQueue({ name: randomUUID(), boss, schema: server.schema.name })
      expect(await queue.counts()).toMatchObject({ waiting: 0, asOf: new Date(0) })
      await queue.close({ graceMs: 0 })
      await boss.stop({ graceful: false })
    })

    it('are counted when pg-boss counted last: asOf says when', async () => {
      const { queue, advance, now, counts } = setUp()
      await queue.counts()
      const countedAt = now()
      await queue.push([jobOf('a')])
      await advance(30_000)
      expect(await queue.counts()).toMatchObject({ waiting: 0, asOf: new Date(countedAt) })
      expect(await counts()).toMatchObject({ waiting: 1, asOf: new Date(now()) })
    })
  })
})
