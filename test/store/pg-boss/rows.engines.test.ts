import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import type { Outcome } from '../../../src/store/queue-types.ts'
import { needs } from '../../support/needs.ts'
import { bodiesOf, complete, jobOf, work } from '../../support/queues.ts'
import { until } from '../../support/until.ts'
import { useVirtualBoss } from './set-up.ts'

const YEAR = 365 * 24 * 60 * 60_000

describe('the rows of a queue on pg-boss', needs('PostgreSQL'), () => {
  const server = useVirtualBoss()
  const { setUp } = server

  it('that others wrote become dead letters with their data as body, and hold nothing up', async () => {
    const junk = [null, 'text', [1], {}, { at: 'x', body: '' }, { at: 1, body: 'not base64!!' }]
    const { queue, boss, name, errors } = setUp()
    await queue.counts() // Creates the queue.
    const rows = junk.map((data) => ({ data }) as object)
    await boss.insert(name, rows)
    await queue.push([jobOf('good')])
    const told: string[] = []
    const seen = work(queue, () => complete, 2, [], { onUnreadable: ({ id }) => void told.push(id) })
    await until(() => seen.length === 1)
    await until(async () => (await queue.counts()).deadLetters >= junk.length)
    const letters = await queue.deadLetters()
    expect(told.sort()).toEqual(letters.map(({ id }) => id).sort())
    expect(letters.map(({ body }) => JSON.parse(String(body)))).toEqual(expect.arrayContaining(junk))
    expect(await queue.redrive([letters[0]?.id ?? ''])).toBe(1)
    await until(() => seen.length === 2)
    expect(String(seen[1]?.body)).toBe(String(letters[0]?.body)) // Hookline wrote it now.
    expect(errors).toEqual([])
  })

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

  it('that are claimed together are handled in the order of their pushes, whatever order PostgreSQL returns them in', async () => {
    const { queue, work } = setUp()
    const jobs = ['a', 'b', 'c'].map((text) => jobOf(text))
    await queue.push(jobs)
    await server.schema.run('UPDATE schema.job SET priority = 0 WHERE id = $1', [jobs[0]?.id]) // Moves the row.
    const seen = work(() => complete)
    await queue.drain()
    expect(bodiesOf(seen)).toEqual(['a', 'b', 'c'])
  })

  it.each<[string, Outcome]>([
    ['completed', complete],
    ['retried', { retryAt: new Date(0), retryState: Buffer.from('stale') }],
    ['dead', { deadLetter: 'too late' }],
  ])('are not changed by an attempt that is over while another worker holds them: %s', async (_what, outcome) => {
    const { queue, work, another, lapse, errors, counts } = setUp()
    const [stale, held] = [Promise.withResolvers<Outcome>(), Promise.withResolvers<Outcome>()]
    const first = work(() => stale.promise)
    await queue.push([jobOf()])
    await until(() => first.length === 1)
    void queue.pause()
    await lapse()
    const other = another()
    const second = other.work(() => held.promise)
    await until(() => second.length === 1)
    stale.resolve(outcome)
    await queue.close({ graceMs: 1000 })
    expect(await counts(other.queue)).toMatchObject({ waiting: 0, active: 1, deadLetters: 0 })
    held.resolve(complete)
    await other.queue.drain()
    expect(await counts(other.queue)).toMatchObject({ waiting: 0, active: 0, deadLetters: 0 })
    expect([second[0]?.claimCount, errors]).toEqual([2, []])
  })

  it('that a call fails on are changed later; the fault is reported once, and without data', async () => {
    const { queue, work, errors, advance, counts } = setUp()
    await queue.push([jobOf('a'), jobOf('b'), jobOf('c')])
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

  it('of a queue that another version reserved are left alone', async () => {
    const { queue, another, name } = setUp()
    queue.reserve?.('inbox')
    await queue.counts()
    await server.schema.run('UPDATE schema.hookline_queue SET version = 1 WHERE name = $1', [name])
    for (const observe of [false, true])
      await expect(another({ observe }).queue.counts()).rejects.toThrow('format version 1,')
  })

  it('that were pushed together are all listed, also while they are handled', async () => {
    const { store } = server.createStore()
    const pushed = Array.from({ length: 500 }, (_, index) => jobOf(`${index}`))
    await store.push(pushed)
    const listed = new Set<string>()
    for await (const jobs of store.jobs()) {
      for (const { id } of jobs) listed.add(id)
      const claims = await store.claim(500)
      const retryAt = new Date(server.virtual.now() + 60_000)
      const last = claims.find(({ id }) => id === jobs.at(-1)?.id) // Its row is where the next page begins.
      if (last !== undefined) await store.finish(last, { retryAt })
      await store.release(
        claims.filter((claim) => claim !== last),
        { wereHandled: false },
      )
    }
    expect(listed).toEqual(new Set(pushed.map(({ id }) => id)))
    await store.close()
  }, 60_000)
})
