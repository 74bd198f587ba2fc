/** Rows that release 0.1 wrote with pg-boss 12.35.0: `release-0.1.json` holds them as `row_to_json` printed them. */

import { readFileSync } from 'node:fs'
import { PgBoss } from 'pg-boss'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { pgBossQueue } from '../../../src/queues/pg-boss/index.ts'
import type { ClaimedJob, Queue } from '../../../src/queues/queue.ts'
import { needs } from '../../support/needs.ts'
import { createSchema, type Schema } from '../../support/postgres.ts'
import { until } from '../../support/until.ts'

const databaseUrl = inject('databaseUrl')
const rows: { readonly state: string }[] = JSON.parse(
  readFileSync(new URL('release-0.1.json', import.meta.url), 'utf8'),
)
const idOf = (number: number) => `00000000-0000-4000-8000-00000000000${number}`
const job = (number: number) => ({ id: idOf(number), body: Buffer.from(`job ${number}`) })

describe('the rows of release 0.1 on pg-boss', needs('PostgreSQL'), () => {
  let schema: Schema
  beforeAll(async () => {
    schema = createSchema(databaseUrl as string)
    const boss = new PgBoss({ connectionString: databaseUrl as string, schema: schema.name, supervise: false })
    await boss.start()
    await boss.createQueue('orders')
    await insert(rows)
    await boss.stop({ graceful: false })
  })
  afterAll(() => schema.drop())

  function insert(added: readonly object[]) {
    const statement = 'INSERT INTO schema.job SELECT * FROM json_populate_recordset(NULL::schema.job, $1)'
    return schema.run(statement, [JSON.stringify(added)])
  }

  it('are read: what waits, retries with their state, dead letters, ids of completed jobs', async () => {
    const create = () =>
      pgBossQueue({
        name: 'orders',
        connectionString: databaseUrl as string,
        schema: schema.name,
        pollMs: 50,
        timeoutMs: 20_000,
      })
    const [queue, ...others] = [1, 2, 3].map(create) as [Queue, ...Queue[]]
    await Promise.all([queue, ...others].map((each) => each.push([job(1)]))) // Each moves the dead letters, at once.
    for (const other of others) await other.close({ graceMs: 0 })
    expect(await queue.counts()).toMatchObject({ waiting: 4, active: 0, deadLetters: 2 })
    const letters = await queue.deadLetters()
    expect(letters.map(({ body, ...letter }) => ({ ...letter, body: String(body) }))).toEqual([
      {
        id: idOf(3),
        body: 'job 3',
        reason: 'reason \u0000 3',
        retryState: Buffer.from('state 3'),
        failedAt: new Date('2026-11-21T21:44:06.519Z'),
      },
      {
        id: idOf(4), // Redriven once.
        body: 'job 4',
        reason: 'reason 4',
        retryState: undefined,
        failedAt: new Date('2026-11-21T21:44:07.024Z'),
      },
    ])

    await queue.push([1, 2, 3, 4, 5, 6, 7].map(job)) // All of them are known.
    const seen: ClaimedJob[] = []
    queue.work(
      async (claimed) => {
        seen.push(claimed)
        return { complete: true }
      },
      { concurrency: 10 },
    )
    await queue.drain()
    seen.sort((one, other) => (one.id < other.id ? -1 : 1))
    expect(seen.map(({ id, body, claimCount }) => [id, String(body), claimCount])).toEqual([
      [idOf(2), 'job 2', 27],
      [idOf(5), 'job 5', 1],
      [idOf(6), 'job 6', 1],
    ])
    expect(String(seen[0]?.retryState)).toBe('state \u0000 2')
    expect(seen[0]?.firstAt).toEqual(new Date(1795297446456))

    expect(await queue.redrive([idOf(4)])).toBe(1)
    await until(() => seen.length === 4)
    expect(seen[3]).toMatchObject({ id: idOf(4), claimCount: 1, retryState: undefined })
    expect(String(seen[3]?.body)).toBe('job 4')
    await queue.drain()
    expect(await queue.drop('all')).toBe(1)
    await queue.close({ graceMs: 0 })

    const next = create()
    expect(await next.deadLetters()).toEqual([])
    await next.close({ graceMs: 0 })
    const left = await schema.run("SELECT id, state FROM schema.job WHERE name = 'orders' ORDER BY id")
    const states = [1, 2, 4, 5, 6].map((number) => ({ id: idOf(number), state: 'completed' }))
    expect(left).toEqual([...states, { id: idOf(7), state: 'created' }])
  })

  it('that become dead letters while both releases run are listed and redriven', async () => {
    const options = { name: 'users', connectionString: databaseUrl, schema: schema.name, pollMs: 50 }
    const queue = pgBossQueue(options)
    await queue.push([job(1)])
    const [dead] = rows.filter(({ state }) => state === 'failed')
    const bury = (number: number) => insert([{ ...dead, id: idOf(number), name: 'users' }])
    await bury(8)
    expect(await queue.deadLetters()).toMatchObject([{ id: idOf(8) }])
    await bury(9)
    expect(await queue.redrive('all')).toBe(2)
    await queue.close({ graceMs: 0 })
  })
})
