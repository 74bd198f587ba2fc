/** Queues on the PostgreSQL of the tests, in a schema and a time of their own. All are gone when the tests have ended. */

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, inject, onTestFinished } from 'vitest'
import { type PgBossQueueOptions, pgBossQueue } from '../../../src/queues-pg-boss.ts'
import { Connection } from '../../../src/store/pg-boss/pg-boss-connection.ts'
import { readOptions } from '../../../src/store/pg-boss/pg-boss-options.ts'
import { PgBossStore } from '../../../src/store/pg-boss/pg-boss-store.ts'
import { prepareQueues } from '../../../src/store/pg-boss/pg-boss-tables.ts'
import { createSchema, type Schema, startVirtualBoss, type VirtualBoss } from '../../support/postgres.ts'
import { type Decide, work } from '../../support/queues.ts'

export const databaseUrl: string = inject('databaseUrl') ?? ''

export function useSchema(): Schema {
  const schema = createSchema(databaseUrl)
  afterAll(schema.drop)
  return schema
}

export function useVirtualBoss() {
  const schema = useSchema()
  let virtual: VirtualBoss | undefined
  beforeAll(async () => {
    virtual = await startVirtualBoss(databaseUrl, schema)
  })
  afterAll(() => virtual?.stop())

  return {
    schema,
    get virtual() {
      return virtual as VirtualBoss
    },
    createStore() {
      const { boss, clock } = virtual as VirtualBoss
      const settings = readOptions({ name: randomUUID(), boss, clock, schema: schema.name })
      const connection = new Connection(settings, (opened) => prepareQueues(opened, settings))
      return { name: settings.name, store: new PgBossStore(connection, settings) }
    },
    setUp(options: Partial<PgBossQueueOptions> = {}) {
      const { boss, clock, now, advance, refresh } = virtual as VirtualBoss
      const { run } = schema
      const name = randomUUID()
      const another = (more: Partial<PgBossQueueOptions> = {}) => {
        const errors: unknown[] = []
        const onError = (error: unknown) => errors.push(error)
        const queue = pgBossQueue({ name, boss, clock, schema: schema.name, pollMs: 20, onError, ...options, ...more })
        onTestFinished(async () => void (await queue.close({ graceMs: 0 })))
        return { queue, errors, work: (decide: Decide, concurrency?: number) => work(queue, decide, concurrency) }
      }
      const first = another()
      const counts = async (of = first.queue) => {
        await refresh(name)
        return of.counts()
      }
      const rows = (queue = name) => run('SELECT * FROM schema.job WHERE name = $1 ORDER BY created_on', [queue])
      const supervise = () => boss.supervise(name)
      const lapse = async () => {
        await run(`UPDATE schema.job SET heartbeat_on = heartbeat_on - interval '1 hour' WHERE name = $1`, [name])
        await supervise()
      }
      return { ...first, another, name, boss, now, advance, counts, supervise, lapse, rows }
    },
  }
}
