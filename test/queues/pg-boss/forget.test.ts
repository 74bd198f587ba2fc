/** What is left of a user in PostgreSQL when a queue has forgotten them. */

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from 'vitest'
import { createConnection } from '../../../src/queues/pg-boss/connection.ts'
import { type PgBossQueueOptions, pgBossQueue } from '../../../src/queues/pg-boss/index.ts'
import { readOptions } from '../../../src/queues/pg-boss/options.ts'
import { prepareQueues } from '../../../src/queues/pg-boss/prepare.ts'
import { createPgBossStore } from '../../../src/queues/pg-boss/store.ts'
import type { StoredJob } from '../../../src/queues/queue.ts'
import { needs } from '../../support/needs.ts'
import { createSchema, type Schema, startVirtualBoss, type VirtualBoss } from '../../support/postgres.ts'
import { complete, type Decide, jobOf, work } from '../../support/queues.ts'
import { until } from '../../support/until.ts'

const databaseUrl = inject('databaseUrl')
const isOfAda = ({ body }: StoredJob) => Buffer.from(body).includes('ada')

describe('a queue on pg-boss that forgets', needs('PostgreSQL'), () => {
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

  function setUp(options: Partial<PgBossQueueOptions> = {}) {
    const { boss, clock, now, advance } = virtual
    const name = randomUUID()
    const queue = pgBossQueue({ name, boss, clock, schema: schema.name, pollMs: 20, ...options })
    onTestFinished(async () => void (await queue.close({ graceMs: 0 })))
    /** Every table of pg-boss as text. */
    const everything = async () => {
      const tables = await schema.run('SELECT tablename AS name FROM pg_tables WHERE schemaname = $1', [schema.name])
      const texts = tables.map(({ name }) => schema.run(`SELECT t::text FROM schema.${name} AS t`))
      return JSON.stringify(await Promise.all(texts))
    }
    return { queue, work: (decide: Decide) => work(queue, decide), boss, name, now, advance, everything }
  }

  const trace = (text: string) => Buffer.from(text).toString('base64').slice(0, -4)

  it('keeps nothing of a body, of a retry state or of a reason, also of complete jobs', async () => {
    const { queue, work, now, everything } = setUp()
    const retryState = Buffer.from('why: ada')
    const seen = work(({ body }) => {
      if (`${body}`.endsWith('done')) return complete
      if (`${body}`.endsWith('fails')) return { deadLetter: 'reason: ada', retryState }
      return { retryAt: new Date(now() + 60_000), retryState }
    })
    await queue.push(['ada is done', 'ada fails', 'ada waits', 'bob is done', 'bob waits'].map((body) => jobOf(body)))
    await until(() => seen.length === 5)
    await queue.drain()
    queue.pause()
    await queue.push([jobOf('ada is due'), { ...jobOf('ada is later'), notBefore: new Date(now() + 60_000) }])
    const traces = ['ada is done', 'ada fails', 'ada waits', 'ada is due', 'ada is later', 'reason: ada']
    const before = await everything()
    for (const text of traces) expect(before).toContain(trace(text))
    expect(await queue.forget(isOfAda)).toEqual({ deleted: 5, active: 0 })
    const after = await everything()
    for (const text of traces) expect(after).not.toContain(trace(text))
    expect(after).toContain(trace('bob is done'))
    expect(after).toContain(trace('bob waits'))
    expect(await queue.forget(isOfAda)).toEqual({ deleted: 0, active: 0 })
  })

  it('knows the id of a complete job still, for the dedupe window', async () => {
    const dedupeWindowMs = 60_000
    const { queue, work, boss, name, advance } = setUp({ dedupeWindowMs })
    const seen = work(() => complete)
    const job = jobOf('ada')
    await queue.push([job])
    await until(() => seen.length === 1)
    await queue.drain()
    expect(await queue.forget(isOfAda)).toEqual({ deleted: 1, active: 0 })
    await queue.push([job])
    await queue.drain()
    expect(seen).toHaveLength(1)
    await advance(dedupeWindowMs + 1000)
    await boss.supervise(name)
    await queue.push([job])
    await until(() => seen.length === 2)
    await queue.close({ graceMs: 1000 })
  })

  it('misses none of the jobs that were pushed together, while they are handled', async () => {
    const { boss, clock } = virtual
    const settings = readOptions({ name: randomUUID(), boss, clock, schema: schema.name })
    const connection = createConnection(settings, (boss) => prepareQueues(boss, settings))
    const store = createPgBossStore(connection, settings)
    const pushed = Array.from({ length: 500 }, (_, index) => jobOf(`${index}`))
    await store.push(pushed)
    const listed = new Set<string>()
    for await (const jobs of store.jobs()) {
      for (const { id } of jobs) listed.add(id)
      const claims = await store.claim(500)
      const retryAt = new Date(virtual.now() + 60_000)
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

  it('shares the work with others that do the same', async () => {
    const { queue, boss, name } = setUp()
    await boss.createQueue(name)
    await queue.push(Array.from({ length: 120 }, (_, index) => jobOf(`ada ${index}`)))
    await boss.send(name, { userId: 'ada' })
    const results = await Promise.all([queue.forget(isOfAda), queue.forget(isOfAda)])
    expect(results.reduce((sum, { deleted }) => sum + deleted, 0)).toBe(121)
    expect((await queue.forget(() => true)).deleted).toBe(0)
  })
})
